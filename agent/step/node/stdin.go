package node

import (
	"os"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// stdinFeed carries input to one task without making others wait: input is queued and
// written by its own goroutine. The queue is bounded by srun, which sends only what
// was acknowledged.
type stdinFeed struct {
	w        *os.File
	terminal bool // the end of the input is a key there

	mu     sync.Mutex
	some   *sync.Cond
	queue  []chunk
	closed bool
}

// chunk is a piece of input for one or more tasks; done is called once it was
// written or nobody wants it. A chunk without bytes is the end of the input.
type chunk struct {
	data []byte
	done func()
}

// newFeed feeds the write end of a pipe.
func newFeed(w *os.File) *stdinFeed {
	f := &stdinFeed{w: w}
	f.some = sync.NewCond(&f.mu)
	return f
}

// putChunk queues a chunk.
func (f *stdinFeed) putChunk(c chunk) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		c.done()
		return
	}
	f.queue = append(f.queue, c)
	f.some.Signal()
}

// run writes until the input ends or close is called.
func (f *stdinFeed) run() {
	for {
		f.mu.Lock()
		for len(f.queue) == 0 && !f.closed {
			f.some.Wait()
		}
		if f.closed {
			f.mu.Unlock()
			return
		}
		c := f.queue[0]
		f.queue = f.queue[1:]
		f.mu.Unlock()
		if f.terminal && len(c.data) == 0 {
			c.done()
			f.endTerminal()
			return
		}
		_, err := f.w.Write(c.data)
		c.done()
		if err != nil || len(c.data) == 0 {
			f.close()
			return
		}
	}
}

// endOfInput is Ctrl-D, by which a terminal ends its input. A program that changes the mode of its
// terminal, as shells do when they start, loses it: it is pressed again.
const (
	endOfInput = 4
	endAgain   = 500 * time.Millisecond
)

// endTerminal presses Ctrl-D until close is called.
func (f *stdinFeed) endTerminal() {
	for {
		f.mu.Lock()
		closed := f.closed
		f.mu.Unlock()
		if closed {
			return
		}
		if _, err := f.w.Write([]byte{endOfInput}); err != nil { // close ends a write that waits
			f.close()
			return
		}
		time.Sleep(endAgain)
	}
}

// close ends the task's input. What was not written is dropped.
func (f *stdinFeed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	_ = f.w.Close()
	for _, c := range f.queue {
		c.done()
	}
	f.queue = nil
	f.some.Broadcast()
}

// takeInput hands input from srun to the tasks that it is for. It is acknowledged when
// all of them have taken it. false: there is more than srun, which counts what is
// acknowledged, would send.
func (s *nodeStep) takeInput(f wire.Frame) bool {
	var to []*stdinFeed
	for _, t := range s.tasks {
		if t.in != nil && (f.Rank < 0 || f.Rank == t.state.Rank) {
			to = append(to, t.in)
		}
	}
	left := len(to)
	if left == 0 {
		s.acknowledgeInput(len(f.Body))
		return true
	}
	cost := len(f.Body) + chunkCost*len(to)
	if !s.countQueued(len(f.Body), cost) {
		return false
	}
	var mu sync.Mutex
	done := func() {
		mu.Lock()
		left--
		last := left == 0
		mu.Unlock()
		if last {
			s.uncountQueued(len(f.Body), cost)
			s.acknowledgeInput(len(f.Body))
		}
	}
	for _, t := range to {
		t.putChunk(chunk{f.Body, done})
	}
	return true
}

// chunkCost is what a chunk takes for each task beside its bytes.
const chunkCost = 128

// countQueued counts input that waits; false: srun's window is overrun, or the node has no
// more room for it.
func (s *nodeStep) countQueued(n, cost int) bool {
	s.mu.Lock()
	s.queued += n
	over := s.queued > 2*wire.InputWindow
	s.mu.Unlock()
	return s.node.budget.Spend(cost) && !over
}

func (s *nodeStep) uncountQueued(n, cost int) {
	s.node.budget.Spend(-cost)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued -= n
}

// acknowledgeInput tells srun that input was taken.
func (s *nodeStep) acknowledgeInput(bytes int) {
	_ = s.link.Send(wire.Frame{Kind: wire.MsgStdinAck, Number: bytes})
}
