package simulate

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// gate is one step of something that goes outside, waiting for its turn: a write, a
// call on its way, an answer on its way, a timer. What it does runs in the goroutine
// of the scheduler, so nothing of a world is ever touched by two goroutines at once.
type gate struct {
	at     time.Duration // since the beginning of the world
	key    string        // unique in a run, and the same in each run of the seed
	server *server       // the gate is gone when it is; nil: the world's own
	open   func()
	closed bool // nobody waits for it any more
	quiet  bool // not worth a line of the story
}

type gates []*gate

func (h gates) Len() int { return len(h) }
func (h gates) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].key < h[j].key
}
func (h gates) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *gates) Push(x any)   { *h = append(*h, x.(*gate)) }
func (h *gates) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return x
}

// gateAfter sets up a gate that opens after a while. It may be called from any
// goroutine of the bubble. The key is made unique by counting.
func (w *World) gateAfter(s *server, key string, after time.Duration, open func(key string)) *gate {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gateAt(s, w.uniqueKey(key), w.elapsedTime()+after, open)
}

// uniqueKey makes a key unique. The caller holds the lock.
func (w *World) uniqueKey(key string) string {
	n := w.seen[key] + 1
	w.seen[key] = n
	if n == 1 {
		return key
	}
	return fmt.Sprintf("%s #%d", key, n)
}

func (w *World) gateAt(s *server, key string, at time.Duration, open func(key string)) *gate {
	g := &gate{at: at, key: key, server: s, open: func() { open(key) }}
	heap.Push(&w.gates, g)
	return g
}

// errGone is what the calls of a server hear after it died. Nobody is there to hear it.
var errGone = fault.New(fault.Unavailable, "this server was killed")

// reply is what a gate answered.
type reply struct {
	v   any
	err error
}

// passGate lets a goroutine of a server wait at a gate until do, run by the scheduler,
// answers; do may answer later, from another gate. What has left the machine (sent)
// goes on when the server dies.
func (w *World) passGate(ctx context.Context, s *server, key string, sent bool, do func(key string, answer func(any, error))) (any, error) {
	answered := make(chan reply, 1)
	w.mu.Lock()
	if s.dead {
		w.mu.Unlock()
		return nil, errGone
	}
	key = w.uniqueKey(key)
	owner := s
	if sent {
		owner = nil
	}
	w.gateAt(owner, key, w.elapsedTime()+w.drawLatency(key), func(key string) {
		do(key, func(v any, err error) {
			select {
			case answered <- reply{v, err}:
			default: // it was answered before
			}
		})
	})
	w.mu.Unlock()
	select {
	case r := <-answered:
		return r.v, r.err
	case <-s.gone:
		return nil, errGone
	case <-ctx.Done():
		return nil, fault.New(fault.Unavailable, "nobody waits any more: %w", ctx.Err())
	}
}

// next takes the gate that opens first off the list; nil if there is none.
func (w *World) next() *gate {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.gates) > 0 {
		g := w.gates[0]
		if !g.closed && (g.server == nil || !g.server.dead) {
			return g
		}
		heap.Pop(&w.gates)
	}
	return nil
}

func (w *World) takeGate(g *gate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.gates {
		if w.gates[i] == g {
			heap.Remove(&w.gates, i)
			return
		}
	}
}
