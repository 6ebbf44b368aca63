package supervise

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/nodenet"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// Processes are born in the node's network, and what listens for them on 127.0.0.1 is there; the
// supervisor itself stays in the machine's.
func TestEnterNetwork(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may make network namespaces")
	}
	root := filepath.Join(t.TempDir(), "engine")
	if err := attempt.DrawIdentity(root); err != nil {
		t.Fatal(err)
	}
	n, err := nodenet.Open(nodenet.Request{Root: root, Nodes: []string{"a", "b"}, Temporary: true})
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	s := newSpawner()
	if err := s.enterNetwork(n.Prefix() + "a"); err != nil {
		t.Fatal(err)
	}
	var own net.Listener
	if err := s.InNetwork(func() (err error) {
		own, err = net.Listen("tcp4", "127.0.0.1:0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if c, err := net.Dial("tcp4", own.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("the machine's 127.0.0.1 is the node's")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, exited, err := s.Spawn(&barrier.Cmd{Path: "/bin/readlink", Args: []string{"readlink", "/proc/self/ns/net"}, Files: []*os.File{r, w, w}})
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	said := make([]byte, 100)
	count, _ := r.Read(said)
	<-exited
	var st unix.Stat_t
	if err := unix.Stat(n.Prefix()+"a", &st); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(string(said[:count])), fmt.Sprintf("net:[%d]", st.Ino); got != want {
		t.Errorf("a process is in %q, want %s", got, want)
	}
	if err := s.enterNetwork(n.Prefix() + "c"); err == nil || !strings.Contains(err.Error(), "is gone: start the server again") {
		t.Errorf("a namespace that is not there: %v", err)
	}
	if err := s.enterNetwork(fmt.Sprintf("/proc/self/fd/%d", here.Fd())); err != nil { // the thread leaves it, so that it can go
		t.Fatal(err)
	}
	if busy, err := n.Close(); err != nil || busy != nil {
		t.Errorf("close the network: %v, busy: %v", err, busy)
	}
}

func TestAsksLoopback(t *testing.T) {
	for text, want := range map[string]bool{
		"nameserver 127.0.0.53\noptions edns0\n":        true,
		"nameserver ::1\nnameserver 127.0.0.1\n":        true,
		"nameserver 10.0.0.2\nnameserver 127.0.0.1\n":   false,
		"# nameserver 127.0.0.53\nsearch example.org\n": false,
	} {
		if got := asksLoopback(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestHalfNamedNode: a node that could not be made whole takes no other attempt, and its name is not
// taken for given.
//
// Seen to fail with: the name noted before it is entered.
func TestHalfNamedNode(t *testing.T) {
	h := &supervisorSlot{Slot: attempt.Slot{Dir: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	long := fleet.Node{Name: strings.Repeat("x", 80), Virtual: true} // the kernel refuses it, also root's
	s := newSupervisor(h, &attempt.Launch{Naming: attempt.NamedByRoot, Nodes: []fleet.Node{long}}, 0)
	for range 2 {
		if err := s.nameNode(); err == nil || !h.unfit || h.called != "" {
			t.Errorf("named %q, unfit %t: %v", h.called, h.unfit, err)
		}
	}
}

// TestUsageIsCopied: the loop reads what a reaper writes.
func TestUsageIsCopied(t *testing.T) {
	s := &spawner{used: spawnerUsage{steps: map[int]rusage.Use{}}}
	u, _ := s.usageSoFar()
	s.used.steps[1] = rusage.Use{}
	if len(u.steps) != 0 {
		t.Error("the steps are shared")
	}
}
