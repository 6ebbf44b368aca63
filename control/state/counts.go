package state

import (
	"slices"
	"time"

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
	Begin                        [len(SizeClasses)]Histogram // from eligible to running, by SizeClasses
}

// SizeClasses are sizes of jobs by the number of their devices, for metrics.
var SizeClasses = [...]string{"0", "1", "2-8", "9-64", "65+"}

// sizeClassOf is the index in SizeClasses of a number of devices.
func sizeClassOf(devices int) int {
	for i, most := range [...]int{0, 1, 8, 64} {
		if devices <= most {
			return i
		}
	}
	return len(SizeClasses) - 1
}

// countBegin counts how long a job waited from when it was eligible until it ran.
func (c *Counts) countBegin(e *JobRecord) {
	if e.Eligible <= 0 || e.Last.started <= 0 {
		return
	}
	devices, _ := e.Last.heldDevices()
	c.Begin[sizeClassOf(devices)].Observe(time.Duration(max(e.Last.started-e.Eligible, 0)).Seconds())
}

func newCounts() Counts {
	out := Counts{
		States: map[job.State]int{}, Ended: map[job.State]uint64{},
		Wait:     newWaits(),
		Decision: newHistogram(.0001, .0005, .001, .005, .01, .05, .1, .5, 1),
		Write:    newHistogram(.0005, .001, .002, .005, .01, .05, .1, .5, 1, 5),
		Batch:    newHistogram(1, 2, 4, 8, 16, 64, 256, 1024, 4096),
	}
	for i := range out.Begin {
		out.Begin[i] = newWaits()
	}
	return out
}

// newWaits counts seconds for which jobs wait.
func newWaits() Histogram {
	return newHistogram(.01, .1, 1, 10, 60, 600, 3600, 6*3600, 24*3600, 7*24*3600)
}

// resetCounts begins to count again, but for how many jobs there are.
func (c Counts) resetCounts() Counts {
	out := newCounts()
	out.States = c.States
	return out
}
