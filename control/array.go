package control

import (
	"github.com/coxswain-sched/coxswain/model/job"
)

// array is what the tasks of an array have in common.
type array struct {
	spec    *job.ArraySpec
	first   job.ID
	limited uint64      // Seq of the record that changed limit last
	limit   uint32      // tasks that may run at once; 0: no limit
	tasks   int         // in memory
	open    int         // tasks that hold an allocation or that the core may start
	waiting idHeap      // tasks that the limit keeps waiting, and some that it no longer does
	dirty   bool        // stands in state.arrays.dirty
	runs    [][3]uint32 // of spec.Indices; nil: not made yet
}

// arrays are the arrays of which tasks are in memory.
type arrays struct {
	m     map[job.ID]*array
	dirty []*array // with room for waiting tasks, perhaps
}

func (as *arrays) add(first job.ID, spec *job.ArraySpec) *array {
	a := as.m[first]
	if a == nil {
		a = &array{spec: spec, first: first, limit: spec.MaxRunning}
		as.m[first] = a
	}
	return a
}

// arrayByID returns the array of a number of which tasks are in memory, or nil.
func (s *state) arrayByID(first job.ID) *array { return s.arrays.m[first] }

// hasTask reports whether a job is the task of an index.
func (a *array) hasTask(id job.ID, index uint32) bool {
	return id >= a.first && uint64(id-a.first) < uint64(len(a.spec.Indices)) && a.spec.Indices[id-a.first] == index
}

// openTask counts a task among the open ones.
func (as *arrays) openTask(e *jobRecord) {
	if e.array != nil && !e.open {
		e.open = true
		e.array.open++
	}
}

// closeTask takes a task out of the open ones, and lets the next one be looked for.
func (as *arrays) closeTask(e *jobRecord) {
	if !e.open {
		return
	}
	e.open = false
	e.array.open--
	as.markRoom(e.array)
}

// markRoom has the waiting tasks of an array looked through.
func (as *arrays) markRoom(a *array) {
	if !a.dirty && a.limit > 0 {
		a.dirty = true
		as.dirty = append(as.dirty, a)
	}
}

// idHeap is a heap of job numbers, smallest first.
type idHeap []job.ID

func (h idHeap) Len() int           { return len(h) }
func (h idHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h idHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *idHeap) Push(x any)        { *h = append(*h, x.(job.ID)) }
func (h *idHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
