package control

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Stats are counters since the start and gauges of now, for metrics.
type Stats struct {
	Jobs    map[string]int // by state; pending and holding ones, and those ended that are still in memory
	Waiting map[string]int // pending jobs by the code of their first reason; those that wait in another scheduler's queue by that alone
	Devices map[string]int // by state: free, used, shared, foreign, down
	Nodes   map[string]int // by state

	Submitted uint64            // jobs, tasks of arrays each
	Started   uint64            // allocations made
	Ended     map[string]uint64 // jobs, by state

	Preempted     uint64  // attempts that ended to make room
	PreemptedTime float64 // seconds that these ran, times the devices that they held
	LostTime      float64 // of that, what was not saved

	Wait     Histogram // seconds from eligible to allocated
	Decision Histogram // seconds that a decision of the core took
	Append   Histogram // seconds that a write of the journal took
	Batch    Histogram // records in a write of the journal

	Calls  map[string]uint64 // to the engine, by verb
	Errors map[string]uint64 // of these, without success

	Inbox     int    // requests and reports that wait for the loop
	Seq       uint64 // newest journal record
	Projected uint64 // newest journal record that the projection reflects
	Refused   uint64 // decisions of the core that the ledger refused
	Forms     int    // kinds of specification in memory
}

// Histogram counts observations. Bounds ascend; Counts has one more for what is
// above the last.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
	Count  uint64
}

func (h *Histogram) observe(v float64) {
	i, _ := slices.BinarySearch(h.Bounds, v)
	h.Counts[i]++
	h.Sum += v
	h.Count++
}

func newHistogram(bounds ...float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

func (h Histogram) clone() Histogram {
	h.Counts = slices.Clone(h.Counts)
	return h
}

// counts is what the loop counts, under the lock of the state.
type counts struct {
	states                       map[job.State]int
	ended                        map[job.State]uint64
	submitted, started, refused  uint64
	projected, preempted         uint64
	preemptedTime, lostTime      float64
	wait, decision, write, batch Histogram
}

func newCounts() counts {
	return counts{
		states: map[job.State]int{}, ended: map[job.State]uint64{},
		wait:     newHistogram(.01, .1, 1, 10, 60, 600, 3600, 6*3600, 24*3600, 7*24*3600),
		decision: newHistogram(.0001, .0005, .001, .005, .01, .05, .1, .5, 1),
		write:    newHistogram(.0005, .001, .002, .005, .01, .05, .1, .5, 1, 5),
		batch:    newHistogram(1, 2, 4, 8, 16, 64, 256, 1024, 4096),
	}
}

// resetCounts begins to count again, but for how many jobs there are.
func (c counts) resetCounts() counts {
	out := newCounts()
	out.states = c.states
	return out
}

// Stats takes the numbers of now. No disk is waited for.
func (c *Control) Stats() Stats {
	out := Stats{
		Jobs: map[string]int{}, Waiting: map[string]int{}, Devices: map[string]int{}, Nodes: map[string]int{},
		Ended: map[string]uint64{}, Calls: map[string]uint64{}, Errors: map[string]uint64{}, Inbox: len(c.inbox),
	}
	for _, p := range c.pools.allPools() {
		for verb, n := range p.calls.Counts() {
			out.Calls[verb], out.Errors[verb] = out.Calls[verb]+n.Calls, out.Errors[verb]+n.Errors
		}
	}
	s := c.state
	s.RLock()
	defer s.RUnlock()
	for state, n := range s.counts.states {
		out.Jobs[state.String()] = n
	}
	for state, n := range s.counts.ended {
		out.Ended[state.String()] = n
	}
	for _, e := range s.live {
		if e.state == job.Pending && e.why != nil {
			out.Waiting[string(e.why.Code)]++
		}
		if len(s.delegatedPools) > 0 && e.waitsInPool() { // as everywhere
			out.Jobs[job.Running.String()]--
			out.Jobs[job.Pending.String()]++
			out.Waiting[string(reason.Elsewhere(""))]++
		}
	}
	for k := range c.state.nodes.All() {
		n, _ := c.state.nodeWithDrain(k)
		out.Nodes[string(n.State)]++
		_, shares := s.ledger.Used(k)
		for _, d := range n.Devices {
			out.Devices[deviceState(&n, &d, shares[d.Index])]++
		}
	}
	k := &s.counts
	out.Submitted, out.Started, out.Refused = k.submitted, k.started, k.refused
	out.Preempted, out.PreemptedTime, out.LostTime = k.preempted, k.preemptedTime, k.lostTime
	out.Wait, out.Decision, out.Append, out.Batch = k.wait.clone(), k.decision.clone(), k.write.clone(), k.batch.clone()
	out.Seq, out.Projected = s.seq, k.projected
	out.Forms = s.specs.count()
	return out
}

func deviceState(n *fleet.Node, d *fleet.Device, share resource.Share) string {
	switch {
	case share >= resource.WholeDevice:
		return "used"
	case share > 0:
		return "shared"
	case n.State == fleet.Down || n.State == fleet.Unknown:
		return "down"
	case d.Foreign > 0:
		return "foreign"
	}
	return "free"
}
