package node

import (
	"fmt"
	"sync"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// watchBacklog is how many frames a watcher of a step may be behind. One that does not read
// is cut off: it must not hold the step up.
const watchBacklog = 1024

// stepWatch is the connection of a step's srun, and who else watches the step (sattach).
type stepWatch struct {
	srun *wire.Link
	info *step.Info // set before anybody can watch

	mu       sync.Mutex
	watchers map[int]*watcher // by number
	next     int              // number of the next one
	over     bool
}

// watcher is who watches a step: what it has not been sent yet. The queue is closed when the
// step is over or when the watcher is too far behind.
type watcher struct {
	number int
	queue  chan wire.Frame
	behind bool // set before the queue is closed
}

// newStepWatch has no watchers.
func newStepWatch(srun *wire.Link) *stepWatch {
	return &stepWatch{srun: srun, watchers: make(map[int]*watcher)}
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

// queueFrame queues a frame for one watcher. w.mu is held.
func (w *stepWatch) queueFrame(x *watcher, f wire.Frame) {
	select {
	case x.queue <- f:
	default:
		x.behind = true
		w.removeWatcher(x)
	}
}

// addWatcher adds one; nil: the step is over. The first one makes srun repeat what it hears.
func (w *stepWatch) addWatcher() *watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return nil
	}
	w.next++
	x := &watcher{number: w.next, queue: make(chan wire.Frame, watchBacklog)}
	if w.watchers[x.number] = x; len(w.watchers) == 1 {
		_ = w.srun.Send(wire.Frame{Kind: wire.MsgWatch, Number: 1}) // an srun that is gone ends the step
	}
	return x
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

// watchStep lets others watch a step that was allocated.
func (n *Node) watchStep(info *step.Info, w *stepWatch) {
	w.info = info
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watched[info.Step] = w
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
	if w != nil {
		x = w.addWatcher()
	}
	if x == nil {
		_ = l.Send(wire.Frame{Kind: wire.MsgRefused, Body: fmt.Appendf(nil, "step %s.%d does not run", n.cfg.Alloc.Job, number)})
		return
	}
	var reading sync.WaitGroup
	reading.Go(func() { w.takeInput(l, x) })
	if l.SendJSON(wire.MsgCreated, w.info) == nil {
		sendQueue(l, x)
	}
	w.dropWatcher(x)
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
func sendQueue(l *wire.Link, x *watcher) {
	for f := range x.queue {
		if l.Send(f) != nil {
			return
		}
	}
	last := wire.Frame{Kind: wire.MsgOver}
	if x.behind {
		last = wire.Frame{Kind: wire.MsgRefused, Body: []byte("the step's output is read too slowly here; attach again to see what comes next")}
	}
	_ = l.Send(last)
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
