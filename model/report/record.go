package report

import (
	"cmp"

	"github.com/coxswain-sched/coxswain/model/rusage"
)

// Record is a job as reports count it. Times are Unix seconds; 0 is none.
type Record struct {
	User, Account, QOS, Pool string

	Service   string // ACCOUNT/NAME of the service of which it is a replica; empty: of none
	Submitted int64
	Eligible  int64 // since when nothing but the queue kept it waiting
	Waits     bool  // it waits now, for the first time or again
	Ended     int64 // of the job
	Limit     int64 // seconds; 0: it has no time limit
	Asked     Amounts
	Attempts  []Attempt // that began, in order
}

// Amounts are resources that are asked for or held.
type Amounts struct {
	Nodes   int
	CPUs    float64
	Memory  int64 // bytes, on all nodes
	Devices []Devices
}

// Devices are devices of one kind.
type Devices struct {
	Kind  string  // h100; empty: not known
	Count float64 // parts of devices are parts of 1
}

// GPUs is the number of all devices.
func (a *Amounts) GPUs() (n float64) {
	for _, d := range a.Devices {
		n += d.Count
	}
	return n
}

// AddDevice counts a device, or a part of one.
func (a *Amounts) AddDevice(kind string, count float64) {
	for i := range a.Devices {
		if a.Devices[i].Kind == kind {
			a.Devices[i].Count += count
			return
		}
	}
	a.Devices = append(a.Devices, Devices{kind, count})
}

// Attempt is one execution of a job.
type Attempt struct {
	Started, Ended int64 // Ended 0: it runs
	Suspended      int64 // seconds in all
	Held           Amounts
	Lost           bool           // its work came to nothing: it was ended early, failed, or ran out of time or memory
	CutShort       bool           // it did not end by itself: it was preempted or requeued, or its node failed
	Used           *rusage.Record // nil: nobody measured it, or it runs
}

// span is the part of an attempt that is in a window.
type span struct {
	held  float64 // seconds that it held its resources within the window
	whole float64 // seconds that it held them in all, until now if it runs
	part  float64 // held of whole; 1 for an attempt of no length within the window

	start, end int64   // of the part of it that is within the window
	rate       float64 // seconds that it held its resources in a second of that
}

// spanWithin is the part of an attempt in the window from (inclusive) to (exclusive). ok is false
// if it has none.
func (a *Attempt) spanWithin(from, to, now int64) (s span, ok bool) {
	end := cmp.Or(a.Ended, now)
	if a.Started == 0 || a.Started >= to || end < from || end == from && a.Started < from {
		return span{}, false
	}
	length := max(end-a.Started, 0)
	s.start, s.end = max(a.Started, from), min(end, to)
	inside := max(s.end-s.start, 0)
	if length == 0 {
		return span{part: 1}, true
	}
	s.part = float64(inside) / float64(length)
	s.whole = float64(max(length-a.Suspended, 0))
	s.held, s.rate = s.whole*s.part, s.whole/float64(length)
	return s, true
}

// waited is how long a job waited for the start of its last attempt, and how long it waits if it
// does. started is 0 for one that waits or ended without a start.
func (r *Record) waited(now int64) (seconds, started int64) {
	from := max(r.Eligible, r.Submitted)
	switch n := len(r.Attempts); {
	case r.Waits:
		return max(now-from, 0), 0
	case n > 0:
		return max(r.Attempts[n-1].Started-from, 0), r.Attempts[n-1].Started
	}
	return max(r.Ended-from, 0), 0
}
