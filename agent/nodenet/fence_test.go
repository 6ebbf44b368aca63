package nodenet

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// connectAs connects as a user from the network of the calling thread.
func connectAs(uid int, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	cmd := exec.Command("bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/%s/%s && cat <&3", host, port)) //nolint:gosec // of a test
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}} //nolint:gosec // of a test
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// TestFence: from the machine, from another node and from the node itself, there by loopback and by IPv6
// too, a port takes connections of its user and of root, and of nobody else; another port does of all.
// Nothing is left at the end.
//
// Seen to fail with: a chain that nothing leads to; rules for the node's address alone.
func TestFence(t *testing.T) {
	n := open(t, Request{Root: newRoot(t), Nodes: []string{"a", "b"}})
	if findTool("iptables-restore") == "" {
		t.Skip("iptables-restore is not there")
	}
	const anna, bert = 61001, 61002
	serve(t, n, "a", "21500")
	serve(t, n, "a", "21501")
	try := func(part string, uid int, address string, taken bool) {
		t.Helper()
		if err := connectAs(uid, address); (err == nil) != taken {
			t.Errorf("%s: user %d at %s: %v", part, uid, address, err)
		}
	}
	all := func(bertIsTaken bool) {
		t.Helper()
		for _, from := range []string{"", "a", "b"} {
			look := func() error {
				hosts := []string{n.Address("a")}
				if from == "a" {
					if hosts = append(hosts, "127.0.0.1", "127.1.2.3"); hasIPv6() {
						hosts = append(hosts, "::1")
					}
				}
				for _, host := range hosts {
					fenced, free := net.JoinHostPort(host, "21500"), net.JoinHostPort(host, "21501")
					try("from "+from, 0, fenced, true)
					try("from "+from, anna, fenced, true)
					try("from "+from, bert, fenced, bertIsTaken)
					try("from "+from, bert, free, true)
				}
				return nil
			}
			if from == "" {
				_ = look()
				continue
			}
			inside(t, n, from, look)
		}
	}
	if err := n.Fence([]Port{{Address: n.Address("a"), Number: 21500, UID: anna}, {Address: n.Address("b"), Number: 21501, UID: 0}}); err != nil {
		t.Fatal(err)
	}
	all(false)
	if err := n.Fence(nil); err != nil {
		t.Fatal(err)
	}
	all(true)
	if err := n.Fence([]Port{{Address: n.Address("a"), Number: 21500, UID: anna}}); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(findTool("iptables-save")).Output()
	if err != nil || strings.Count(string(out), n.record.fenceChain()) != 3 {
		t.Errorf("the chain, the rule that leads to it and its only rule: %v\n%s", err, out)
	}
}

// TestFenceIsPutBack: the chain goes with the network.
func TestFenceIsPutBack(t *testing.T) {
	n, err := Open(Request{Root: newRoot(t), Nodes: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	fencing := n.Fence([]Port{{Address: n.Address("a"), Number: 21500, UID: 61001}})
	if busy, err := n.Close(); err != nil || busy != nil {
		t.Fatalf("%v, busy: %v", err, busy)
	}
	if fencing != nil {
		t.Skip(fencing)
	}
	for _, tool := range []string{"iptables-save", "ip6tables-save"} {
		out, err := exec.Command(findTool(tool)).Output()
		if err != nil || strings.Contains(string(out), n.record.fenceChain()) {
			t.Errorf("rules are left: %v\n%s", err, out)
		}
	}
}
