package node

import (
	"fmt"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// watchBacklog is how many frames a watcher of a step may be behind. One that does not read
// is cut off: it must not hold the step up.
const watchBacklog = 1024

// maxWatchers is how many may watch a step at once.
const maxWatchers = 8

// watchCost is what a queued frame takes beside its bytes.
const watchCost = 128

// watchGrace is how long a watcher that was cut off may take to read the frame it is sent and why.
const watchGrace = 5 * time.Second

// stepWatch is the connection of a step's srun, and who else watches the step (sattach).
type stepWatch struct {
	srun   *wire.Link
	budget *wire.Budget // of the node: what is queued counts
	info   *step.Info   // set before anybody can watch

	mu       sync.Mutex
	watchers map[int]*watcher // by number
	next     int              // number of the next one
	over     bool
}

// watcher is who watches a step: what it has not been sent yet. The queue is closed when the
// step is over or when the watcher is too far behind. Each frame in it is paid for until it is sent.
type watcher struct {
	number int
	link   *wire.Link
	queue  chan wire.Frame
	behind bool // set before the queue is closed
}

// newStepWatch has no watchers.
func newStepWatch(srun *wire.Link, b *wire.Budget) *stepWatch {
	return &stepWatch{srun: srun, budget: b, watchers: make(map[int]*watcher)}
}

// relayFrames passes on what srun says of its step, and reports whether it said at last that
// the step is over everywhere.
func (w *stepWatch) relayFrames() bool {
	for {
		f, err := w.srun.Receive()
		switch {
		case err != nil:
			return false
		case f.Kind == wire.MsgOutput, f.Kind == wire.MsgExit, f.Kind == wire.MsgNotice:
			w.tellWatchers(f)
		case f.Kind == wire.MsgStdinAck:
			w.mu.Lock()
			if x := w.watchers[f.Number]; x != nil {
				w.queueFrame(x, f)
			}
			w.mu.Unlock()
		default:
			return f.Kind == wire.MsgDone
		}
	}
}

// tellWatchers queues a frame for everybody.
func (w *stepWatch) tellWatchers(f wire.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.watchers {
		w.queueFrame(x, f)
	}
}

// queueFrame queues a frame for one watcher, or cuts it off where there is no room. w.mu is held.
func (w *stepWatch) queueFrame(x *watcher, f wire.Frame) {
	cost := len(f.Body) + watchCost
	if w.budget.Spend(cost) {
		select {
		case x.queue <- f:
			return
		default:
		}
	}
	w.budget.Spend(-cost)
	x.behind = true
	w.removeWatcher(x)
	x.link.LimitWrites(watchGrace)
	w.dropQueue(x)
}

// dropQueue gives back what a queue that was closed holds.
func (w *stepWatch) dropQueue(x *watcher) {
	for f := range x.queue {
		w.budget.Spend(-len(f.Body) - watchCost)
	}
}

// addWatcher adds one; nil: the step is over or has enough. The first one makes srun repeat what
// it hears.
func (w *stepWatch) addWatcher(l *wire.Link) (x *watcher, refused string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
		return nil, "has ended"
	case len(w.watchers) >= maxWatchers:
		return nil, fmt.Sprintf("is attached to %d times already; end one of these first", maxWatchers)
	}
	w.next++
	x = &watcher{number: w.next, link: l, queue: make(chan wire.Frame, watchBacklog)}
	if w.watchers[x.number] = x; len(w.watchers) == 1 {
		_ = w.srun.Send(wire.Frame{Kind: wire.MsgWatch, Number: 1}) // an srun that is gone ends the step
	}
	return x, ""
}

// dropWatcher removes one that may be removed already.
func (w *stepWatch) dropWatcher(x *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeWatcher(x)
}

// removeWatcher ends a watcher's queue. w.mu is held.
func (w *stepWatch) removeWatcher(x *watcher) {
	if w.watchers[x.number] == nil {
		return
	}
	delete(w.watchers, x.number)
	close(x.queue)
	if len(w.watchers) == 0 && !w.over {
		_ = w.srun.Send(wire.Frame{Kind: wire.MsgWatch})
	}
}

// endWatch ends every watcher's queue; there are no more.
func (w *stepWatch) endWatch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, x := range w.watchers {
		w.removeWatcher(x)
	}
}

// watchStep says to srun that its step was created, and lets others watch it. srun hears of the step
// before it hears of a watcher: it takes no other word for an answer.
func (n *Node) watchStep(info *step.Info, w *stepWatch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.info = info
	n.mu.Lock()
	n.watched[info.Step] = w
	n.mu.Unlock()
	return w.srun.SendJSON(wire.MsgCreated, info)
}

// unwatchStep ends that.
func (n *Node) unwatchStep(info *step.Info, w *stepWatch) {
	n.mu.Lock()
	delete(n.watched, info.Step)
	n.mu.Unlock()
	w.endWatch()
}

// serveAttach lets the other end watch a step until it is over, and type into it.
func (n *Node) serveAttach(l *wire.Link, number int) {
	n.mu.Lock()
	w := n.watched[number]
	n.mu.Unlock()
	var x *watcher
	refused := "does not run"
	if w != nil {
		x, refused = w.addWatcher(l)
	}
	if x == nil {
		_ = l.Send(wire.Frame{Kind: wire.MsgRefused, Body: fmt.Appendf(nil, "step %s.%d %s", n.cfg.Alloc.Job, number, refused)})
		return
	}
	var reading sync.WaitGroup
	reading.Go(func() { w.takeInput(l, x) })
	if l.SendJSON(wire.MsgCreated, w.info) == nil {
		w.sendQueue(x)
	}
	w.dropWatcher(x)
	w.dropQueue(x)
	l.Close()
	reading.Wait()
}

// takeInput passes on what a watcher types, until its connection ends. srun acknowledges each
// piece, and a watcher sends the next one only then.
func (w *stepWatch) takeInput(l *wire.Link, x *watcher) {
	for {
		f, err := l.Receive()
		if err != nil || f.Kind != wire.MsgStdin {
			w.dropWatcher(x)
			return
		}
		f.Number = x.number
		_ = w.srun.Send(f) // an srun that is gone ends the step
	}
}

// sendQueue sends a watcher what is queued for it, until its queue ends.
func (w *stepWatch) sendQueue(x *watcher) {
	for f := range x.queue {
		err := x.link.Send(f)
		w.budget.Spend(-len(f.Body) - watchCost)
		if err != nil {
			return
		}
	}
	last := wire.Frame{Kind: wire.MsgOver}
	if x.behind {
		last = wire.Frame{Kind: wire.MsgRefused, Body: []byte("the step's output is read too slowly here; attach again to see what comes next")}
	}
	_ = x.link.Send(last)
}

// Watchers counts who watches a step that was allocated here.
func (n *Node) Watchers(step int) int {
	n.mu.Lock()
	w := n.watched[step]
	n.mu.Unlock()
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watchers)
}
