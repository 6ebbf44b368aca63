package nodenet

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/hostsfile"
)

// openWayOut lets the nodes reach what the machine reaches. Where that cannot be done it says so:
// the nodes then reach each other and the machine.
func (n *Network) openWayOut(all []*record, out string) error {
	r := n.record
	closed := func(format string, args ...any) error {
		n.notes = append(n.notes, "the nodes have no way out of this machine: "+fmt.Sprintf(format, args...))
		return nil
	}
	if out == "" {
		return closed("it has no default route")
	}
	tool := findTool("iptables-restore")
	if tool == "" {
		return closed("NAT needs the program iptables-restore (Debian: apt-get install iptables)")
	}
	others := slices.DeleteFunc(slices.Clone(all), func(o *record) bool { return o.Number == r.Number })
	if r.Rules {
		if err := r.closeWayOut(others); err != nil { // it may lead elsewhere by now
			return err
		}
	}
	opened, err := r.enableForwarding(out, others)
	if err != nil {
		return closed("%v", err)
	}
	r.Out, r.Rules = out, true
	if err := r.saveRecord(); err != nil {
		return err
	}
	if err := restoreRules(tool, r.ruleText(true)); err != nil {
		return errors.Join(closed("%v", err), r.closeWayOut(others)) // a table may have its rules
	}
	n.changed = append(n.changed, fmt.Sprintf("rules %s in iptables (NAT through %s)", r.networkID(), out))
	if opened {
		n.changed = append(n.changed, fmt.Sprintf("net.ipv4.conf.%s.forwarding=1, for the nodes alone", out))
	}
	return nil
}

// enableForwarding turns forwarding on for the bridge and the interface of the way out.
func (r *record) enableForwarding(out string, others []*record) (changed bool, err error) {
	if err := os.WriteFile(forwardingOf(r.bridgeName()), []byte("1"), 0); err != nil {
		return false, fmt.Errorf("the kernel's settings cannot be changed: %w", err)
	}
	shared := slices.ContainsFunc(others, func(o *record) bool { return slices.Contains(o.Forwarded, out) })
	b, err := os.ReadFile(forwardingOf(out))
	if err != nil {
		return false, err
	}
	if shared || strings.TrimSpace(string(b)) == "0" {
		r.Forwarded = []string{out}
		if err := r.saveRecord(); err != nil {
			return false, err
		}
		if err := os.WriteFile(forwardingOf(out), []byte("1"), 0); err != nil {
			return false, fmt.Errorf("the kernel's settings cannot be changed: %w", err)
		}
	}
	return len(r.Forwarded) > 0, nil
}

// closeWayOut removes the rules and turns forwarding off again where nobody else needs it.
func (r *record) closeWayOut(others []*record) error {
	var errs []error
	if r.Rules {
		if err := r.deleteRules(); err != nil {
			errs = append(errs, err)
		} else {
			r.Rules = false
		}
	}
	forwards := forwardsAll()
	for _, name := range r.Forwarded {
		if forwards { // somebody else turned it on meanwhile, and needs it
			break
		}
		if slices.ContainsFunc(others, func(o *record) bool { return slices.Contains(o.Forwarded, name) }) {
			continue
		}
		if err := os.WriteFile(forwardingOf(name), []byte("0"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	r.Forwarded, r.Out = nil, ""
	return errors.Join(errs...)
}

// forwardsAll reports whether the machine forwards everywhere. What we turn on does not count.
func forwardsAll() bool {
	b, err := os.ReadFile(forwardingOf("all"))
	return err == nil && strings.TrimSpace(string(b)) != "0"
}

func forwardingOf(link string) string {
	return "/proc/sys/net/ipv4/conf/" + link + "/forwarding"
}

// ruleText is the rules, as iptables-restore reads them.
func (r *record) ruleText(add bool) string {
	first, last := "-I", "-A"
	if !add {
		first, last = "-D", "-D"
	}
	mark := `-m comment --comment "` + r.networkID() + `"`
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("*nat")
	line("%s POSTROUTING -s %s ! -o %s %s -j MASQUERADE", last, r.Subnet, r.bridgeName(), mark)
	line("COMMIT\n*filter")
	line("%s FORWARD -i %s %s -j ACCEPT", first, r.bridgeName(), mark)
	line("%s FORWARD -o %s -m conntrack --ctstate RELATED,ESTABLISHED %s -j ACCEPT", first, r.bridgeName(), mark)
	for _, out := range r.Forwarded {
		line("%s FORWARD -i %s %s -j DROP", last, out, mark)
	}
	line("COMMIT")
	return b.String()
}

// deleteRules removes the rules. Some may be gone: somebody else's start of a firewall flushes them.
func (r *record) deleteRules() error {
	tool := findTool("iptables-restore")
	if tool == "" {
		return errors.New("iptables-restore is gone: the rules cannot be removed")
	}
	if restoreRules(tool, r.ruleText(false)) == nil {
		return nil
	}
	single := findTool("iptables") // one by one, those that are there
	table := ""
	for line := range strings.Lines(r.ruleText(false)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "*"):
			table = line[1:]
		case line != "COMMIT":
			args := append([]string{"-w", "-t", table}, strings.Fields(strings.ReplaceAll(line, `"`, ""))...)
			_ = exec.Command(single, args...).Run() // it is gone
		}
	}
	return nil
}

// restoreRules gives rules to iptables-restore, which takes all or none of a table.
func restoreRules(tool, rules string) error {
	cmd := exec.Command(tool, "--noflush", "--wait")
	cmd.Stdin = strings.NewReader(rules)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		return fmt.Errorf("iptables: %s (%w)", text, err)
	}
	return nil
}

// findTool finds a program of an administrator's, also where PATH does not lead there.
func findTool(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if path := filepath.Join(dir, name); isExecutable(path) {
			return path
		}
	}
	return ""
}

func isExecutable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o111 != 0
}

// unnameNodes takes the nodes' names out of the machine's hosts file.
func (r *record) unnameNodes() error {
	if !r.Hosts {
		return nil
	}
	return hostsfile.Remove(hostsfile.Machine, r.networkID())
}
