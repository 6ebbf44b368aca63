package step

import (
	"os"
	"sync"
)

// feed carries input to one task without making others wait: input is queued and
// written by its own goroutine. The queue is bounded by srun, which sends only what
// was acknowledged.
type feed struct {
	w *os.File

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
func newFeed(w *os.File) *feed {
	f := &feed{w: w}
	f.some = sync.NewCond(&f.mu)
	return f
}

// put queues a chunk.
func (f *feed) put(c chunk) {
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
func (f *feed) run() {
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
		_, err := f.w.Write(c.data)
		c.done()
		if err != nil || len(c.data) == 0 {
			f.close()
			return
		}
	}
}

// close ends the task's input. What was not written is dropped.
func (f *feed) close() {
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

// input hands input from srun to the tasks that it is for. It is acknowledged when
// all of them have taken it. false: there is more than srun, which counts what is
// acknowledged, would send.
func (s *nodeStep) input(f frame) bool {
	var to []*feed
	for _, t := range s.tasks {
		if t.in != nil && (f.rank < 0 || f.rank == t.state.Rank) {
			to = append(to, t.in)
		}
	}
	left := len(to)
	if left == 0 {
		s.acknowledge(len(f.body))
		return true
	}
	cost := len(f.body) + chunkCost*len(to)
	if !s.queue(len(f.body), cost) {
		return false
	}
	var mu sync.Mutex
	done := func() {
		mu.Lock()
		left--
		last := left == 0
		mu.Unlock()
		if last {
			s.unqueue(len(f.body), cost)
			s.acknowledge(len(f.body))
		}
	}
	for _, t := range to {
		t.put(chunk{f.body, done})
	}
	return true
}

// chunkCost is what a chunk takes for each task beside its bytes.
const chunkCost = 128

// queue counts input that waits; false: srun's window is overrun, or the node has no
// more room for it.
func (s *nodeStep) queue(n, cost int) bool {
	s.mu.Lock()
	s.queued += n
	over := s.queued > 2*inputWindow
	s.mu.Unlock()
	return s.node.purse.spend(cost) && !over
}

func (s *nodeStep) unqueue(n, cost int) {
	s.node.purse.spend(-cost)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued -= n
}

// acknowledge tells srun that input was taken.
func (s *nodeStep) acknowledge(bytes int) {
	_ = s.link.send(frame{kind: mStdinAck, number: bytes})
}
