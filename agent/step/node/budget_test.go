package node

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/agent/step/srun"
	"github.com/coxswain-sched/coxswain/agent/step/steptest"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// TestMain lets the test binary stand for srun and a held task.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "srun":
		os.Exit(srun.Main(os.Args[1:], step.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	case len(os.Args) > 1 && os.Args[1] == "task-init":
		os.Exit(barrier.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// serveNode serves the only node of an allocation.
func serveNode(t *testing.T) (*Node, *step.Alloc) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cox") // short: a socket's path is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := steptest.Uniform(1, 1, 4, 0)
	a.Dir, a.Bin, a.WorkDir, a.SubmitDir = dir, dir, dir, dir
	a.Nodes[0].Socket = filepath.Join(dir, "s")
	if err := a.Save(); err != nil {
		t.Fatal(err)
	}
	spawner := &steptest.Spawner{}
	n, err := New(Config{Alloc: a, Spawner: spawner, TaskInit: []string{self, "task-init"}})
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
		spawner.Wait()
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

// TestConnectionsAreBounded opens more connections than a node serves. The one too many is closed;
// once there is room again, srun runs a step to its end.
//
// Seen to fail with: no bound, and a bound that is never below what it counted once.
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
	if out, err := runSrun(t, a, "echo", "refused"); err == nil || strings.Contains(out, "refused\n") {
		t.Errorf("a step without room: %q, %v", out, err)
	}
	n.mu.Lock()
	clear(n.links)
	n.mu.Unlock()
	if out, err := runSrun(t, a, "-n1", "echo", "fine"); err != nil || out != "fine\n" {
		t.Errorf("afterwards: %q, %v", out, err)
	}
}

// runSrun runs srun on the first node of an allocation and returns what it printed.
func runSrun(t *testing.T, a *step.Alloc, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args = append([]string{"srun"}, args...)
	cmd.Dir, cmd.Env = a.Dir, env.Batch(a, os.Environ(), 0)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
