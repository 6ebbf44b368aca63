package nodenet

import (
	"errors"
	"fmt"
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
// machine and from its nodes; it replaces what was said before. Connections that are open go on. An
// error says why the ports are open to all. It is not for two goroutines at once.
func (n *Network) Fence(ports []Port) error {
	r := n.record
	tool, single := findTool("iptables-restore"), findTool("iptables")
	if tool == "" || single == "" {
		return errors.New("this needs the program iptables-restore (Debian: apt-get install iptables)")
	}
	if err := n.noteFence(); err != nil {
		return err
	}
	var errs []error
	errs = append(errs, r.writeFence(tool, single, ports))
	for _, node := range r.Nodes {
		errs = append(errs, inNamespace(r.namespaceFile(node), func() error { return r.writeFence(tool, single, ports) }))
	}
	return errors.Join(errs...)
}

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

// fenceText is the chain, as iptables-restore reads it. Only the first packet of a connection is
// looked at: those that the kernel sends after a program's end are nobody's.
func (r *record) fenceText(ports []Port) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*filter\n:%s - [0:0]\n", r.fenceChain()) // it is emptied, or made
	for _, p := range ports {
		owner := "-m owner ! --uid-owner 0"
		if p.UID != 0 {
			owner += fmt.Sprintf(" -m owner ! --uid-owner %d", p.UID)
		}
		fmt.Fprintf(&b, "-A %s -d %s -p tcp --dport %d --syn %s -j REJECT --reject-with tcp-reset\n", r.fenceChain(), p.Address, p.Number, owner)
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// writeFence writes the chain in the network of the calling thread, and has it looked at.
func (r *record) writeFence(tool, single string, ports []Port) error {
	if err := restoreRules(tool, r.fenceText(ports)); err != nil {
		return err
	}
	if exec.Command(single, r.fenceJump("-C")...).Run() == nil {
		return nil
	}
	if out, err := exec.Command(single, r.fenceJump("-I")...).CombinedOutput(); err != nil {
		return fmt.Errorf("iptables: %s (%w)", strings.TrimSpace(string(out)), err)
	}
	return nil
}

// fenceJump is the rule that leads to the chain, as words of iptables.
func (r *record) fenceJump(verb string) []string {
	return []string{"-w", verb, "OUTPUT", "-d", r.Subnet, "-p", "tcp", "-j", r.fenceChain()}
}

// removeFence removes the chain of the machine's network. Those of the nodes go with their namespaces.
func (r *record) removeFence() {
	single := findTool("iptables")
	if !r.Fenced || single == "" {
		return
	}
	for _, args := range [][]string{r.fenceJump("-D"), {"-w", "-F", r.fenceChain()}, {"-w", "-X", r.fenceChain()}} {
		_ = exec.Command(single, args...).Run() // somebody else's start of a firewall flushes all
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
