package node

import (
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// newWatch is the watch of a step whose srun reads.
func newWatch(t *testing.T, n *Node) *stepWatch {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	go func() {
		for l := wire.NewLink(theirs); ; {
			if _, err := l.Receive(); err != nil {
				return
			}
		}
	}()
	return newStepWatch(wire.NewLink(ours), &n.budget)
}

// TestWatchersAreBounded: what waits for watchers counts as kept, a watcher that does not read is cut
// off, and a step has a few watchers.
//
// Seen to fail with: queues that nobody counts, and a sender that waits forever.
func TestWatchersAreBounded(t *testing.T) {
	n := &Node{}
	w := newWatch(t, n)
	var all []*watcher
	for range maxWatchers {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		x, refused := w.addWatcher(wire.NewLink(ours))
		if x == nil {
			t.Fatal(refused)
		}
		all = append(all, x)
	}
	if x, refused := w.addWatcher(nil); x != nil || !strings.Contains(refused, "8 times") {
		t.Errorf("one more: %q", refused)
	}
	f := wire.Frame{Kind: wire.MsgOutput, Body: make([]byte, 64<<10)}
	for range watchBacklog {
		w.tellWatchers(f)
	}
	if !slices.ContainsFunc(all, func(x *watcher) bool { return x.behind }) || len(w.watchers) == maxWatchers {
		t.Error("nobody was cut off")
	}
	if !n.budget.Spend(0) {
		t.Error("more is kept than may be")
	}
	w.endWatch()
	for _, x := range all {
		w.dropQueue(x)
	}
	if !n.budget.Spend(wire.MaxKept) {
		t.Error("not all was given back")
	}
}

// TestPMIxQueueIsBounded: what waits for a helper counts as kept, and too much ends the step.
//
// Seen to fail with: frames that are dropped in silence.
func TestPMIxQueueIsBounded(t *testing.T) {
	n := &Node{}
	ours, theirs := net.Pipe()
	defer theirs.Close()
	p := &pmixServer{step: &nodeStep{node: n, link: wire.NewLink(ours)}}
	p.some = sync.NewCond(&p.mu)
	p.starting.Do(func() {}) // no helper reads
	f := wire.Frame{Kind: wire.MsgPMIx, Body: make([]byte, 64<<10)}
	for range pmixQueueMax>>16 + 1 {
		p.take(f)
	}
	got, err := wire.NewLink(theirs).Receive()
	if err != nil || got.Kind != wire.MsgPMIx || !strings.Contains(string(got.Body), "does not read") {
		t.Errorf("srun hears %v %q: %v", got.Kind, got.Body, err)
	}
	n.serving.Wait()
	if n.budget.Spend(wire.MaxKept) {
		t.Error("the queue is not paid for")
	}
	n.budget.Spend(-wire.MaxKept)
	p.stopQueue()
	if !n.budget.Spend(wire.MaxKept) {
		t.Error("not all was given back")
	}
}

// TestStepBeforeItsWatchers: srun hears that its step was created before it hears of any watcher, however
// early that comes. srun takes the first message for the answer to its request and would miss the watcher.
//
// Seen to fail with: no lock of the watch while srun is told.
func TestStepBeforeItsWatchers(t *testing.T) {
	n := &Node{watched: make(map[int]*stepWatch)}
	ours, theirs := net.Pipe()
	var both sync.WaitGroup
	defer both.Wait() // after the connections are closed, which ends what still waits
	defer ours.Close()
	defer theirs.Close()
	w := newStepWatch(wire.NewLink(ours), &n.budget)
	both.Go(func() {
		if err := n.watchStep(&step.Info{Step: 1}, w); err != nil {
			t.Error(err)
		}
	})
	isWatched := func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.watched[1] != nil
	}
	for !isWatched() {
		runtime.Gosched()
	}
	both.Go(func() {
		if x, refused := w.addWatcher(nil); x == nil {
			t.Error(refused)
		}
	})
	srun := wire.NewLink(theirs)
	for _, want := range []wire.Kind{wire.MsgCreated, wire.MsgWatch} {
		if f, err := srun.Receive(); err != nil || f.Kind != want {
			t.Errorf("srun hears %d, %v, want %d", f.Kind, err, want)
		}
	}
}
