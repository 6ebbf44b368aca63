package nodenet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/hostsfile"
)

// newRoot is an engine's directory with an identity, of a test that needs root.
func newRoot(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may make network namespaces")
	}
	root := filepath.Join(t.TempDir(), "engine")
	if err := attempt.DrawIdentity(root); err != nil {
		t.Fatal(err)
	}
	return root
}

func open(t *testing.T, r Request) *Network {
	t.Helper()
	n, err := Open(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if busy, err := n.Close(); err != nil || busy != nil {
			t.Errorf("close the network: %v, busy: %v", err, busy)
		}
	})
	return n
}

// inside runs f on a thread in a node's namespace.
func inside(t *testing.T, n *Network, node string, f func() error) {
	t.Helper()
	ns, err := os.Open(n.Prefix() + node)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		back, err := netns.Get()
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = f()
		}
		if errors.Join(netns.Set(back), back.Close()) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatalf("on %s: %v", node, err)
	}
}

// serve answers with a word at a port of every address of a node.
func serve(t *testing.T, n *Network, node, port string) {
	t.Helper()
	inside(t, n, node, func() error {
		l, err := net.Listen("tcp", ":"+port)
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, node)
				_ = c.Close()
			}
		}()
		return nil
	})
}

func ask(address string) (string, error) {
	c, err := net.Dial("tcp4", address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	return string(b), err
}

// Two nodes use one port, reach each other and the machine, and are reached from it.
func TestPortsOfNodes(t *testing.T) {
	n := open(t, Request{Root: newRoot(t), Nodes: []string{"a", "b"}})
	for _, node := range []string{"a", "b"} {
		serve(t, n, node, "29500")
		if got, err := ask(net.JoinHostPort(n.Address(node), "29500")); err != nil || got != node {
			t.Errorf("from the machine %s is %q, %v", node, got, err)
		}
	}
	l, err := net.Listen("tcp4", n.Machine().Address+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.WriteString(c, "machine")
			_ = c.Close()
		}
	}()
	inside(t, n, "a", func() error {
		for address, want := range map[string]string{
			n.Address("b") + ":29500": "b", "127.0.0.1:29500": "a", l.Addr().String(): "machine",
		} {
			if got, err := ask(address); err != nil || got != want {
				t.Errorf("from a %s is %q, %v; want %q", address, got, err, want)
			}
		}
		return nil
	})
}

// What is there is adopted, also where a part is missing; nodes keep their addresses.
func TestAdopt(t *testing.T) {
	root := newRoot(t)
	first := open(t, Request{Root: root, Nodes: []string{"a", "b", "c"}})
	was := inode(t, first.Prefix()+"c")
	if err := first.record.removeNode(first.record.Nodes[0]); err != nil {
		t.Fatal(err)
	}
	again := open(t, Request{Root: root, Nodes: []string{"c", "d", "a"}})
	if again.Prefix() != first.Prefix() || again.Address("c") != first.Address("c") || again.Address("a") != first.Address("a") {
		t.Errorf("a, c are %s, %s at %s; they were %s, %s at %s", again.Address("a"), again.Address("c"), again.Prefix(), first.Address("a"), first.Address("c"), first.Prefix())
	}
	if is := inode(t, again.Prefix()+"c"); is != was {
		t.Error("the namespace of c is another one, and its jobs are cut off")
	}
	if again.Address("d") != first.Address("b") || again.Address("b") != "" {
		t.Errorf("d is %s; the address of b (%s), which is gone, is free", again.Address("d"), first.Address("b"))
	}
	serve(t, again, "a", "5000")
	if got, err := ask(again.Address("a") + ":5000"); err != nil || got != "a" {
		t.Errorf("a was made anew, and is %q, %v", got, err)
	}
}

// A namespace with a process stays, with all that the process needs.
func TestBusyStays(t *testing.T) {
	root := newRoot(t)
	n, err := Open(Request{Root: root, Nodes: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	work := exec.Command("sleep", "1000")
	inside(t, n, "b", work.Start)
	busy, err := n.Close()
	if err != nil || !slices.Equal(busy, []string{"b"}) {
		t.Errorf("busy: %v, %v; want b", busy, err)
	}
	other := open(t, Request{Root: newRoot(t), Nodes: []string{"x", "y"}})
	if other.record.Subnet == n.record.Subnet || other.Prefix() == n.Prefix() {
		t.Errorf("two networks are both %s %s", other.Prefix(), other.record.Subnet)
	}
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	if err := Sweep("", nil); err != nil || !isNamespace(n.Prefix()+"b") {
		t.Errorf("the state directory is gone, and the process with the namespace: %v", err)
	}
	_ = work.Process.Kill()
	_ = work.Wait()
	if err := Sweep("", nil); err != nil {
		t.Error(err)
	}
	expectNothing(t, n.record)
}

// Everything that was changed is put back, and said before.
func TestPutBack(t *testing.T) {
	hosts, err := os.ReadFile(hostsfile.Machine)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Open(Request{Root: newRoot(t), Nodes: []string{"cox-test-a", "cox-test-b"}, Names: true})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(n.Notes(), "\n")
	now, err := os.ReadFile(hostsfile.Machine)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(now, []byte(n.Address("cox-test-b")+"\tcox-test-b\n")) != strings.Contains(said, "a block "+n.record.networkID()+" in /etc/hosts") || bytes.Equal(now, hosts) {
		t.Errorf("%s\nand it is said:\n%s", now, said)
	}
	if n.record.Rules != strings.Contains(said, "rules "+n.record.networkID()+" in iptables") || n.record.Rules == strings.Contains(said, "no way out") {
		t.Errorf("rules: %v, and it is said:\n%s", n.record.Rules, said)
	}
	if out := n.record.Out; out != "" {
		if b, err := os.ReadFile(forwardingOf(out)); err != nil || strings.TrimSpace(string(b)) != "1" {
			t.Errorf("forwarding of %s is %q, %v", out, b, err)
		}
	}
	r := *n.record
	if busy, err := n.Close(); err != nil || busy != nil {
		t.Fatalf("%v, busy: %v", err, busy)
	}
	expectNothing(t, &r)
}

// expectNothing fails where something is left of a network.
func expectNothing(t *testing.T, r *record) {
	t.Helper()
	left, err := filepath.Glob(r.namespacePrefix() + "*")
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(recordName(r.Number)); err == nil || linkExists(r.bridgeName()) {
		t.Error("the record or the bridge is left")
	}
	if b, err := os.ReadFile(hostsfile.Machine); err != nil || bytes.Contains(b, []byte("coxswain begin "+r.networkID()+":")) {
		t.Errorf("a block is left: %s, %v", b, err)
	}
	if tool := findTool("iptables-save"); tool != "" {
		out, err := exec.Command(tool).Output()
		if err != nil || bytes.Contains(out, []byte(r.networkID()+" ")) || bytes.Contains(out, []byte(`"`+r.networkID()+`"`)) {
			t.Errorf("rules are left: %v\n%s", err, out)
		}
	}
	all, err := readRecords()
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range r.Forwarded {
		shared := slices.ContainsFunc(all, func(o *record) bool { return slices.Contains(o.Forwarded, out) })
		if b, err := os.ReadFile(forwardingOf(out)); err != nil || strings.TrimSpace(string(b)) != "0" && !shared {
			t.Errorf("forwarding of %s is still %q, %v", out, b, err)
		}
	}
}

func inode(t *testing.T, name string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

// Names that another line has already stay what they are.
func TestTakenNames(t *testing.T) {
	n := open(t, Request{Root: newRoot(t), Nodes: []string{"localhost", "cox-test-z"}, Names: true})
	if said := strings.Join(n.Notes(), "\n"); !strings.Contains(said, "has localhost already") {
		t.Errorf("nothing says that a name is taken:\n%s", said)
	}
	b, err := os.ReadFile(hostsfile.Machine)
	if err != nil || bytes.Contains(b, []byte(n.Address("localhost")+"\t")) {
		t.Errorf("localhost is somebody else now: %s, %v", b, err)
	}
}

// TestStaleBlocks: names of networks without a record go, and nobody else's.
func TestStaleBlocks(t *testing.T) {
	var text string
	for _, id := range []string{"cox0", "cox1", "coxswain", "other"} {
		text += hostsfile.Block(id, "x", nil)
	}
	if got := staleBlocks(text, []*record{{Number: 1}}); !slices.Equal(got, []string{"cox0"}) {
		t.Errorf("stale: %q", got)
	}
}
