package state

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// timers is a heap of times at which to ask eligible of a job again.
type timers []timer

type timer struct {
	at int64 // nanoseconds since the Unix epoch
	id job.ID
}

func (h timers) Len() int { return len(h) }

func (h timers) Less(i, j int) bool { return h[i].at < h[j].at }

func (h timers) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *timers) Push(x any) { *h = append(*h, x.(timer)) }

func (h *timers) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// NextTimer is when the first timer expires, in nanoseconds since the Unix epoch; false: there
// is none.
func (s *State) NextTimer() (int64, bool) {
	if len(s.timers) == 0 {
		return 0, false
	}
	return s.timers[0].at, true
}

// AddTimer has the eligibility of a job checked at a time.
func (s *State) AddTimer(id job.ID, at int64) { heap.Push(&s.timers, timer{at, id}) }

// EachRecheck calls check for each job whose eligibility may have changed by now, in the
// order of their numbers, until no such job is left.
func (s *State) EachRecheck(now time.Time, check func(*JobRecord)) {
	for len(s.timers) > 0 && s.timers[0].at <= now.UnixNano() {
		if e := s.Jobs[heap.Pop(&s.timers).(timer).id]; e != nil {
			s.RecheckEligible(e)
		}
	}
	for len(s.gating) > 0 || len(s.Arrays.dirty) > 0 {
		list := s.gating
		s.gating = nil
		slices.SortFunc(list, func(a, b *JobRecord) int { return cmp.Compare(a.ID, b.ID) })
		for _, e := range list {
			e.gating = false
			if !e.Gone {
				check(e)
			}
		}
		s.roomInArrays()
	}
}

// AwaitArray has the eligibility of a task checked when fewer tasks of its array run.
func (s *State) AwaitArray(e *JobRecord) { heap.Push(&e.Array.waiting, e.ID) }

// roomInArrays has the first waiting tasks of arrays with room asked again.
func (s *State) roomInArrays() {
	list := s.Arrays.dirty
	s.Arrays.dirty = nil
	for _, a := range list {
		a.dirty = false
		for room := int(a.Limit) - a.Open; (room > 0 || a.Limit == 0) && len(a.waiting) > 0; {
			e := s.Jobs[heap.Pop(&a.waiting).(job.ID)]
			if e != nil && e.State == job.Pending && e.Gate != nil && e.Gate.Code == reason.ArrayLimit {
				s.RecheckEligible(e)
				room--
			}
		}
	}
}

// StatePointer returns a pointer to a copy of a job state, as payloads have it.
func StatePointer(s job.State) *job.State { return &s }
