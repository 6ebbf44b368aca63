package query

import (
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

// Stats are counters since the start and gauges of now, for metrics.
type Stats struct {
	Jobs    map[string]int // by state; pending and holding ones, and those ended that are still in memory
	Waiting map[string]int // pending jobs by the code of their first reason; those that wait in another scheduler's queue by that alone
	Devices map[string]int // by state: free, used, shared, foreign, fenced, down
	Nodes   map[string]int // by state
	Fenced  map[string]int // by what failed checks keep from new work: node, device

	Pools   map[string]string  // state of each pool (api.PoolUp and its like) by its name
	Unsaved map[string]float64 // by pool: the most seconds since the last checkpoint of a running job that has reported one before

	Submitted uint64            // jobs, tasks of arrays each
	Started   uint64            // allocations made
	Ended     map[string]uint64 // jobs, by state

	Preempted     uint64  // attempts that ended to make room
	PreemptedTime float64 // seconds that these ran, times the devices that they held
	LostTime      float64 // of that, what was not saved

	Wait     state.Histogram   // seconds from eligible to allocated
	Begin    []state.Histogram // seconds from eligible to running, by state.SizeClasses
	Decision state.Histogram   // seconds that a decision of the core took
	Append   state.Histogram   // seconds that a write of the journal took
	Batch    state.Histogram   // records in a write of the journal

	Calls  map[string]uint64 // to the engine, by verb
	Errors map[string]uint64 // of these, without success

	Inbox     int    // requests and reports that wait for the loop
	Seq       uint64 // newest journal record
	Projected uint64 // newest journal record that the projection reflects
	Refused   uint64 // decisions of the core that the ledger refused
	Forms     int    // kinds of specification in memory
}

// Stats takes the present numbers. No disk is waited for.
func (rd *Reader) Stats() Stats {
	out := Stats{
		Jobs: map[string]int{}, Waiting: map[string]int{}, Devices: map[string]int{}, Nodes: map[string]int{}, Fenced: map[string]int{"node": 0, "device": 0},
		Pools: map[string]string{}, Unsaved: map[string]float64{},
		Ended: map[string]uint64{}, Calls: map[string]uint64{}, Errors: map[string]uint64{}, Inbox: rd.of.Inbox(),
	}
	now := rd.of.Clock.Now()
	for _, p := range rd.of.Pools.AllPools() {
		for verb, n := range p.Calls.Counts() {
			out.Calls[verb], out.Errors[verb] = out.Calls[verb]+n.Calls, out.Errors[verb]+n.Errors
		}
	}
	s := rd.of.State
	s.RLock()
	defer s.RUnlock()
	for state, n := range s.Counts.States {
		out.Jobs[state.String()] = n
	}
	for state, n := range s.Counts.Ended {
		out.Ended[state.String()] = n
	}
	for _, p := range rd.of.Pools.AllPools() {
		out.Pools[p.Name], _ = rd.poolState(p, now)
	}
	for _, e := range s.Live {
		if age, ok := e.UnsavedFor(state.ToNanos(now)); ok {
			out.Unsaved[e.Last.Pool] = max(out.Unsaved[e.Last.Pool], age.Seconds())
		}
		if e.State == job.Pending && e.Why != nil {
			out.Waiting[string(e.Why.Code)]++
		}
		if len(s.DelegatedPools) > 0 && e.WaitsInPool() { // as everywhere
			out.Jobs[job.Running.String()]--
			out.Jobs[job.Pending.String()]++
			out.Waiting[string(reason.Elsewhere(""))]++
		}
	}
	for k := range rd.of.State.Nodes.All() {
		if aggregate.Is(k.Name) {
			continue // its real nodes count
		}
		n, _ := rd.of.State.NodeWithDrain(k)
		out.Nodes[string(n.State)]++
		for _, f := range s.Health[k].Fences {
			what := "node"
			if f.Device != nil {
				what = "device"
			}
			out.Fenced[what]++
		}
		_, shares := s.Ledger.Used(k)
		for _, d := range n.Devices {
			out.Devices[deviceState(&n, &d, shares[d.Index])]++
		}
	}
	rd.countDelegatedNodes(&out)
	k := &s.Counts
	out.Submitted, out.Started, out.Refused = k.Submitted, k.Started, k.Refused
	out.Preempted, out.PreemptedTime, out.LostTime = k.Preempted, k.PreemptedTime, k.LostTime
	out.Wait, out.Decision, out.Append, out.Batch = k.Wait.Clone(), k.Decision.Clone(), k.Write.Clone(), k.Batch.Clone()
	for i := range k.Begin {
		out.Begin = append(out.Begin, k.Begin[i].Clone())
	}
	out.Seq, out.Projected = s.Seq, k.Projected
	out.Forms = s.Specs.Count()
	return out
}

// countDelegatedNodes counts the nodes and devices of pools whose own scheduler chooses the nodes. Which devices of a
// node a job has is not known there: as many as it has are in use, first of those that nobody else holds. The caller
// holds the lock.
func (rd *Reader) countDelegatedNodes(out *Stats) {
	s := rd.of.State
	if len(s.DelegatedPools) == 0 {
		return
	}
	held := map[fleet.NodeKey]int{}
	for _, e := range s.Live {
		if e.Last == nil || !e.State.Holds() || !state.IsDelegated(e.Last.Claims) {
			continue
		}
		for _, c := range e.Last.NodeClaims() {
			held[fleet.NodeKey{Pool: e.Last.Pool, Name: c.Node}] += len(c.Devices)
		}
	}
	for _, p := range rd.of.Pools.AllPools() {
		if !p.Delegated {
			continue
		}
		for i := range p.Real.Nodes {
			n := &p.Real.Nodes[i]
			out.Nodes[string(n.State)]++
			left := held[fleet.NodeKey{Pool: p.Name, Name: n.Name}]
			for k := range n.Devices {
				d, share := &n.Devices[k], resource.Share(0)
				if left > 0 && d.Foreign == 0 {
					share = resource.WholeDevice
					left--
				}
				out.Devices[deviceState(n, d, share)]++
			}
		}
	}
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
	case d.Fenced != "":
		return "fenced"
	}
	return "free"
}
