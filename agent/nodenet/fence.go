package nodenet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/vishvananda/netns"
)

// Port is a port of a node to which only one user of this machine, and root, may connect.
type Port struct {
	Address string // of the node
	Number  int
	UID     int
}

// fenceChain is the chain of iptables that has the rules for ports, in the machine's network and in
// those of the nodes.
func (r *record) fenceChain() string { return r.networkID() + "-ports" }

// Fence keeps all users but those of ports, and root, from connecting to these ports, from this
// machine and from its nodes, also by a node's loopback; it replaces what was said before. Connections
// that are open go on. An error says why the ports are open to all. It is not for two goroutines at once.
func (n *Network) Fence(ports []Port) error {
	r := n.record
	if findTool("iptables-restore") == "" || findTool("iptables") == "" {
		return errors.New("this needs the program iptables-restore (Debian: apt-get install iptables)")
	}
	if err := n.noteFence(); err != nil {
		return err
	}
	errs := []error{r.writeFence(ports, "")}
	for _, node := range r.Nodes {
		errs = append(errs, inNamespace(r.namespaceFile(node), func() error { return r.writeFence(ports, node.Address) }))
	}
	return errors.Join(errs...)
}

// HasFence says whether there were rules for ports before, of this process or another.
func (n *Network) HasFence() bool { return n.record.Fenced }

// noteFence notes in the record, before there are rules, that there will be.
func (n *Network) noteFence() error {
	if n.record.Fenced {
		return nil
	}
	unlock, err := lockRegistry()
	if err != nil {
		return err
	}
	defer unlock()
	n.record.Fenced = true
	return n.record.saveRecord()
}

// fenceText is the chain, as iptables-restore reads it, and as ip6tables-restore does (v6). own is the
// address of the node in whose network it is; "": the machine's. There the node's ports are those of
// every address of its own: a program listens on loopback too. Nodes have no addresses of IPv6 but those
// that the kernel makes, which are not known here. Only the first packet of a connection is looked at:
// those that the kernel sends after a program's end are nobody's.
func (r *record) fenceText(ports []Port, own string, v6 bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*filter\n:%s - [0:0]\n", r.fenceChain()) // it is emptied, or made
	for _, p := range ports {
		owner := "-m owner ! --uid-owner 0"
		if p.UID != 0 {
			owner += fmt.Sprintf(" -m owner ! --uid-owner %d", p.UID)
		}
		to := "-d " + p.Address
		switch {
		case own == p.Address:
			to = "-o lo"
		case v6 && own != "":
			to = "! -o lo"
		case v6:
			to = "-o " + r.bridgeName()
		}
		fmt.Fprintf(&b, "-A %s %s -p tcp --dport %d --syn %s -j REJECT --reject-with tcp-reset\n", r.fenceChain(), to, p.Number, owner)
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// writeFence writes the chains in the network of the calling thread, which is own's, and has them
// looked at.
func (r *record) writeFence(ports []Port, own string) error {
	err := r.writeChain(ports, own, false)
	if six := r.writeChain(ports, own, true); hasIPv6() {
		err = errors.Join(err, six)
	}
	return err
}

// hasIPv6 says whether the network of the calling thread has an address of IPv6.
func hasIPv6() bool {
	text, err := os.ReadFile("/proc/thread-self/net/if_inet6")
	return err == nil && len(text) > 0
}

// writeChain writes the chain of IPv4 or of IPv6.
func (r *record) writeChain(ports []Port, own string, v6 bool) error {
	name := fenceTool(v6)
	tool, single := findTool(name+"-restore"), findTool(name)
	if tool == "" || single == "" {
		return fmt.Errorf("this needs the program %s-restore (Debian: apt-get install iptables)", name)
	}
	if err := restoreRules(tool, r.fenceText(ports, own, v6)); err != nil {
		return err
	}
	if exec.Command(single, r.fenceJump("-C", own, v6)...).Run() == nil {
		return nil
	}
	if out, err := exec.Command(single, r.fenceJump("-I", own, v6)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %s (%w)", name, strings.TrimSpace(string(out)), err)
	}
	return nil
}

func fenceTool(v6 bool) string {
	if v6 {
		return "ip6tables"
	}
	return "iptables"
}

// fenceJump is the rule that leads to the chain, as words of iptables.
func (r *record) fenceJump(verb, own string, v6 bool) []string {
	args := []string{"-w", verb, "OUTPUT"}
	switch {
	case own != "":
	case v6:
		args = append(args, "-o", r.bridgeName())
	default:
		args = append(args, "-d", r.Subnet)
	}
	return append(args, "-p", "tcp", "-j", r.fenceChain())
}

// removeFence removes the chains of the machine's network. Those of the nodes go with their namespaces.
func (r *record) removeFence() {
	if !r.Fenced {
		return
	}
	for _, v6 := range []bool{false, true} {
		single := findTool(fenceTool(v6))
		if single == "" {
			continue
		}
		for _, args := range [][]string{r.fenceJump("-D", "", v6), {"-w", "-F", r.fenceChain()}, {"-w", "-X", r.fenceChain()}} {
			_ = exec.Command(single, args...).Run() // somebody else's start of a firewall flushes all
		}
	}
}

// inNamespace calls f in a network namespace.
func inNamespace(name string, f func() error) error {
	ns, err := netns.GetFromPath(name)
	if err != nil {
		return err
	}
	defer ns.Close()
	runtime.LockOSThread()
	own, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer own.Close()
	if err := netns.Set(ns); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = f()
	if back := netns.Set(own); back != nil {
		return errors.Join(err, back) // the thread stays locked: nobody else gets one of this network
	}
	runtime.UnlockOSThread()
	return err
}
