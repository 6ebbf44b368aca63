package state

import (
	"github.com/coxswain-sched/coxswain/model/job"
)

// Array has the fields that all tasks of an array share.
type Array struct {
	Spec    *job.ArraySpec
	first   job.ID
	limited uint64      // Seq of the record that changed limit last
	Limit   uint32      // tasks that may run at once; 0: no limit
	tasks   int         // in memory
	Open    int         // tasks that hold an allocation or that the core may start
	waiting idHeap      // tasks that the limit keeps waiting, and some that it no longer does
	dirty   bool        // stands in state.arrays.dirty
	runs    [][3]uint32 // of spec.Indices; nil: not made yet
}

// Arrays has the arrays of which tasks are in memory.
type Arrays struct {
	m     map[job.ID]*Array
	dirty []*Array // with room for waiting tasks, perhaps
}

func (as *Arrays) add(first job.ID, spec *job.ArraySpec) *Array {
	a := as.m[first]
	if a == nil {
		a = &Array{Spec: spec, first: first, Limit: spec.MaxRunning}
		as.m[first] = a
	}
	return a
}

// ArrayByID returns the array of a number of which tasks are in memory, or nil.
func (s *State) ArrayByID(first job.ID) *Array { return s.Arrays.m[first] }

// First is the number of the array, and of its first task.
func (a *Array) First() job.ID { return a.first }

// hasTask reports whether a job is the task of an index.
func (a *Array) hasTask(id job.ID, index uint32) bool {
	return id >= a.first && uint64(id-a.first) < uint64(len(a.Spec.Indices)) && a.Spec.Indices[id-a.first] == index
}

// OpenTask counts a task as open: it holds an allocation, or the core may start it.
func (as *Arrays) OpenTask(e *JobRecord) {
	if e.Array != nil && !e.Open {
		e.Open = true
		e.Array.Open++
	}
}

// CloseTask counts a task as no longer open, and has the next one looked for.
func (as *Arrays) CloseTask(e *JobRecord) {
	if !e.Open {
		return
	}
	e.Open = false
	e.Array.Open--
	as.markRoom(e.Array)
}

// markRoom has the waiting tasks of an array looked through.
func (as *Arrays) markRoom(a *Array) {
	if !a.dirty && a.Limit > 0 {
		a.dirty = true
		as.dirty = append(as.dirty, a)
	}
}

// idHeap is a heap of job numbers, smallest first.
type idHeap []job.ID

func (h idHeap) Len() int { return len(h) }

func (h idHeap) Less(i, j int) bool { return h[i] < h[j] }

func (h idHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *idHeap) Push(x any) { *h = append(*h, x.(job.ID)) }

func (h *idHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// arrayRow is an array as the row of each of its tasks has it: with indices in runs, so
// that a thousand rows do not hold a million of them.
type arrayRow struct {
	First      job.ID      `json:"first"`
	Text       string      `json:"text,omitempty"`
	Runs       [][3]uint32 `json:"runs"` // first index, last index, step
	MaxRunning uint32      `json:"max_running,omitempty"`
	Step       uint32      `json:"step,omitempty"`
	Limited    uint64      `json:"limited,omitempty"` // Seq of the record that changed MaxRunning last
}

func (a *Array) tasksOf() *arrayRow {
	if a.runs == nil {
		a.runs = indexRuns(a.Spec.Indices)
	}
	return &arrayRow{First: a.first, Text: a.Spec.Text, Runs: a.runs, MaxRunning: a.Limit, Step: a.Spec.Step, Limited: a.limited}
}

func (t *arrayRow) arraySpec() *job.ArraySpec {
	s := &job.ArraySpec{Text: t.Text, MaxRunning: t.MaxRunning, Step: t.Step}
	for _, r := range t.Runs {
		for i := uint64(r[0]); i <= uint64(r[1]); i += uint64(max(r[2], 1)) {
			s.Indices = append(s.Indices, uint32(i))
		}
	}
	return s
}

// indexRuns writes ascending indices as arithmetic progressions.
func indexRuns(indices []uint32) (out [][3]uint32) {
	for i := 0; i < len(indices); {
		step, end := uint32(1), i
		if i+1 < len(indices) {
			step = indices[i+1] - indices[i]
			for end = i + 1; end+1 < len(indices) && indices[end+1]-indices[end] == step; end++ {
			}
		}
		out = append(out, [3]uint32{indices[i], indices[end], step})
		i = end + 1
	}
	return out
}
