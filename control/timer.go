package control

import (
	"container/heap"

	"github.com/coxswain-sched/coxswain/model/job"
)

// timers is a heap of times at which to ask eligible of a job again.
type timers []timer

type timer struct {
	at int64 // nanoseconds since the Unix epoch
	id job.ID
}

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timers) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timers) Push(x any)        { *h = append(*h, x.(timer)) }
func (h *timers) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// nextTimer is when the first timer expires, in nanoseconds since the Unix epoch; false:
// there is none.
func (s *state) nextTimer() (int64, bool) {
	if len(s.timers) == 0 {
		return 0, false
	}
	return s.timers[0].at, true
}

// addTimer has eligible asked of a job at a time.
func (s *state) addTimer(id job.ID, at int64) { heap.Push(&s.timers, timer{at, id}) }
