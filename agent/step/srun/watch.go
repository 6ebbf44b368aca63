package srun

import (
	"sync"
	"sync/atomic"

	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// watchers are those who follow the step from elsewhere (sattach), by way of the first node.
type watchers struct {
	head *wire.Link
	any  atomic.Bool
	over chan struct{} // closed when the first node has nothing more to say

	mu    sync.Mutex
	more  *sync.Cond
	typed []wire.Frame // input of watchers that no task has been sent yet
	ended bool
}

// serveWatchers begins to listen to the first node, until its connection ends.
func (c *client) serveWatchers() *watchers {
	w := &watchers{head: c.head, over: make(chan struct{})}
	w.more = sync.NewCond(&w.mu)
	go w.listenToHead()
	return w
}

// listenToHead takes what the first node says. It waits for nobody else: the node would wait for it.
func (w *watchers) listenToHead() {
	defer close(w.over)
	for {
		f, err := w.head.Receive()
		w.mu.Lock()
		switch {
		case err != nil:
			w.ended = true
		case f.Kind == wire.MsgWatch:
			w.any.Store(f.Number > 0)
		case f.Kind == wire.MsgStdin:
			w.typed = append(w.typed, f)
		}
		w.more.Signal()
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// repeatFrame tells watchers what a node said.
func (w *watchers) repeatFrame(f wire.Frame) {
	if !w.any.Load() {
		return
	}
	switch f.Kind {
	case wire.MsgOutput, wire.MsgExit, wire.MsgNotice:
		_ = w.head.Send(f) // without the first node there is nobody who watches
	}
}

// nextTyped waits for input of a watcher; false: there will be none.
func (w *watchers) nextTyped() (wire.Frame, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.typed) == 0 {
		if w.ended {
			return wire.Frame{}, false
		}
		w.more.Wait()
	}
	f := w.typed[0]
	w.typed = w.typed[1:]
	return f, true
}

// copyTyped gives the tasks what watchers type, like srun's own input.
func (c *client) copyTyped(w *watchers) {
	for {
		f, ok := w.nextTyped()
		if !ok {
			return
		}
		if len(f.Body) > 0 {
			c.sendInput(f.Rank, f.Body)
		}
		_ = w.head.Send(wire.Frame{Kind: wire.MsgStdinAck, Number: f.Number})
	}
}

// sendInput gives tasks input, as soon as their nodes have room for it.
func (c *client) sendInput(rank int, b []byte) {
	for _, r := range c.nodes {
		r.window.takeRoom(len(b))
		_ = r.link.Send(wire.Frame{Kind: wire.MsgStdin, Rank: rank, Body: b})
	}
}
