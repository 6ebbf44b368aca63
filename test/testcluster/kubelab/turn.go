package lab

import (
	"slices"
	"sync"
)

// turns lets two clusters of this process be at once: more would be in each other's way on a
// small machine. Of those who wait the one with the most kubelets is next, as its tests take
// longest: it is not what the others are waited for with in the end.
var turns = queue{free: 2}

// queue gives turns. It is safe for concurrent use.
type queue struct {
	mu      sync.Mutex
	free    int
	waiting []*waiter
}

// waiter waits until its turn has come.
type waiter struct {
	size int
	come chan struct{}
}

// takeTurn waits for a turn, which the result ends. Larger ones are first, and of the same size who
// came first.
func (q *queue) takeTurn(size int) (end func()) {
	w := &waiter{size, make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	q.grantTurns()
	q.mu.Unlock()
	<-w.come
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.free++
		q.grantTurns()
	}
}

// grantTurns gives away the turns that are free. The lock is held.
func (q *queue) grantTurns() {
	for ; q.free > 0 && len(q.waiting) > 0; q.free-- {
		best := 0
		for i, w := range q.waiting {
			if w.size > q.waiting[best].size {
				best = i
			}
		}
		close(q.waiting[best].come)
		q.waiting = slices.Delete(q.waiting, best, best+1)
	}
}
