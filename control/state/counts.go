package state

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Histogram counts observations. Bounds ascend; Counts has one more for what is
// above the last.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
	Count  uint64
}

// Observe counts a value.
func (h *Histogram) Observe(v float64) {
	i, _ := slices.BinarySearch(h.Bounds, v)
	h.Counts[i]++
	h.Sum += v
	h.Count++
}

func newHistogram(bounds ...float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

// Clone returns a copy with counts of its own.
func (h Histogram) Clone() Histogram {
	h.Counts = slices.Clone(h.Counts)
	return h
}

// Counts are the counters of the state, guarded by its lock.
type Counts struct {
	States                       map[job.State]int
	Ended                        map[job.State]uint64
	Submitted, Started, Refused  uint64
	Projected, Preempted         uint64
	PreemptedTime, LostTime      float64
	Wait, Decision, Write, Batch Histogram
}

func newCounts() Counts {
	return Counts{
		States: map[job.State]int{}, Ended: map[job.State]uint64{},
		Wait:     newHistogram(.01, .1, 1, 10, 60, 600, 3600, 6*3600, 24*3600, 7*24*3600),
		Decision: newHistogram(.0001, .0005, .001, .005, .01, .05, .1, .5, 1),
		Write:    newHistogram(.0005, .001, .002, .005, .01, .05, .1, .5, 1, 5),
		Batch:    newHistogram(1, 2, 4, 8, 16, 64, 256, 1024, 4096),
	}
}

// resetCounts begins to count again, but for how many jobs there are.
func (c Counts) resetCounts() Counts {
	out := newCounts()
	out.States = c.States
	return out
}
