package node

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/job"
)

// noSpawner starts nothing.
type noSpawner struct{}

func (noSpawner) Spawn(*barrier.Cmd) (int, <-chan barrier.Exit, error) {
	return 0, nil, errors.New("not here")
}

// serveNode serves the only node of an allocation.
func serveNode(t *testing.T) (*Node, *step.Alloc) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cox") // short: a socket's path is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &step.Alloc{
		Job: 1, Attempt: 1, Owner: job.Owner{UID: uint32(os.Getuid())},
		Nodes: []step.AllocNode{{Name: "v1", CPUs: 4, Socket: filepath.Join(dir, "s")}}, Groups: []step.AllocGroup{{Tasks: 1, Parts: []step.Part{{Tasks: 1, CPUs: 4}}}},
	}
	n, err := New(Config{Alloc: a, Spawner: noSpawner{}, TaskInit: []string{"none"}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", a.Nodes[0].Socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- n.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(n.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return n, a
}

// callNode connects to the node and says hello.
func callNode(t *testing.T, a *step.Alloc) *wire.Link {
	t.Helper()
	l, err := wire.Dial(a, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// TestKeptMessagesAreBoundedTogether fills the budget from many connections.
func TestKeptMessagesAreBoundedTogether(t *testing.T) {
	n, a := serveNode(t)
	n.budget.Spend(wire.MaxKept - 1<<10)
	big, err := json.Marshal(wire.Request{Name: strings.Repeat("x", 4<<10), Components: []wire.ComponentRequest{{Tasks: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	l := callNode(t, a)
	if err := l.Send(wire.Frame{Kind: wire.MsgCreate, Body: big}); err != nil {
		t.Fatal(err)
	}
	if f, err := l.Receive(); err == nil && (f.Kind != wire.MsgRefused || !strings.Contains(string(f.Body), "too many steps")) {
		t.Errorf("%d %s", f.Kind, f.Body)
	}
	n.budget.Spend(1<<10 - wire.MaxKept)
	for i := range 3 { // what a connection took is given back with it
		l := callNode(t, a)
		if err := l.Send(wire.Frame{Kind: wire.MsgCreate, Body: big}); err != nil {
			t.Fatal(err)
		}
		if f, err := l.Receive(); err != nil || f.Kind != wire.MsgCreated {
			t.Fatalf("%d: %d %s, %v", i, f.Kind, f.Body, err)
		}
		_ = l.Send(wire.Frame{Kind: wire.MsgDone})
		_, _ = l.Receive() // its end
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		all := n.budget.Spend(wire.MaxKept) // true where nothing was spent
		n.budget.Spend(-wire.MaxKept)
		if all {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the budget is not full again")
		}
	}
}

// TestConnectionsAreBounded opens more than a node serves.
func TestConnectionsAreBounded(t *testing.T) {
	n, a := serveNode(t)
	n.mu.Lock()
	for range wire.MaxLinks {
		n.links[new(wire.Link)] = true
	}
	n.mu.Unlock()
	conn, err := socket.Dial(a.Nodes[0].Socket, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("one too many: %v", err)
	}
	n.mu.Lock()
	clear(n.links)
	n.mu.Unlock()
	if err := callNode(t, a).Send(wire.Frame{Kind: wire.MsgWaitGone}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
