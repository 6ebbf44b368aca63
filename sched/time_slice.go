package sched

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// This file lets two jobs of a partition with a time slice have the same CPUs and devices
// in turns. One that does not fit starts on what others of its partition have, after their
// turn; these are suspended (suspended.go), and go on when its turn is over, which suspends it. So
// each waits for the other's turn at most, and as soon as one has ended the other runs
// alone. On one device there are never more than two.
//
// Source: Slurm's OverSubscribe=FORCE:2 with PreemptMode=GANG (gang_scheduling.html), which shares no
// devices; here they change hands too.

// alternatesWith reports whether jobs of two preemption ranks take turns.
func (s *preemptionRank) alternatesWith(o *preemptionRank) bool {
	return s != nil && o != nil && s.slice > 0 && o.slice > 0 && s.partition == o.partition
}

// mayJoin reports whether the job may take turns with a running one now.
func (s *victimSearch) mayJoin(r *run) bool {
	if r.pause.suspended != nil || r.isElastic() || r.isAggregate() || s.entry.spec.Elastic() || !s.entry.class.key.policy.preemption.alternatesWith(r.policy.preemption) {
		return false
	}
	for _, id := range s.suspended.jobs {
		if o := s.runs.byJob[id]; o != nil && o.pause.suspended != nil && s.claimsContend(o.pause.suspended.full, r.claims) {
			return false // there are two
		}
	}
	if end := addDuration(r.pause.turn, time.Duration(r.policy.preemption.slice)); end > s.now {
		if s.preempt.exemptUntil == 0 || end < s.preempt.exemptUntil {
			s.preempt.exemptUntil = end
		}
		return false
	}
	return true
}

// claimsContend reports whether claims are about the same devices; of such without devices, whether
// they are about the same node.
func (c *Core) claimsContend(a, b []fleet.Claim) bool {
	for i := range a {
		for j := range b {
			if !c.fleet.table.Meet(&a[i], &b[j]) {
				continue
			}
			if len(a[i].Devices) == 0 || len(b[j].Devices) == 0 {
				return true
			}
			for _, d := range a[i].Devices {
				if slices.ContainsFunc(b[j].Devices, func(o fleet.DeviceClaim) bool { return o.Index == d.Index }) {
					return true
				}
			}
		}
	}
	return false
}

// tailOf is how long those may go on that wait for a suspended job's place, after it.
func (c *Core) tailOf(r *run) (tail Instant) {
	for _, o := range c.suspendedRuns() {
		if o != r && o.policy.preemption.alternatesWith(r.policy.preemption) && c.claimsContend(o.pause.suspended.full, r.pause.suspended.full) {
			tail = max(tail, o.pause.suspended.left)
		}
	}
	return tail
}

// alternateTurns has running jobs whose turn is over give way to suspended ones, and notes when
// the next turn ends.
func (p *schedulingCycle) alternateTurns() {
	p.Core.suspended.turnEnds = 0
	if len(p.suspended.jobs) == 0 {
		return
	}
	for _, r := range p.suspendedRuns() {
		if r.stopping || r.policy.preemption == nil || r.policy.preemption.slice == 0 {
			continue
		}
		holders, at := p.holdersOf(r)
		switch {
		case len(holders) == 0:
		case at > p.now:
			if p.suspended.turnEnds == 0 || at < p.suspended.turnEnds {
				p.Core.suspended.turnEnds = at
			}
		default:
			for _, o := range holders {
				p.giveWay(o, r.id)
			}
		}
	}
}

// giveWay has a running job suspended for a suspended one.
func (p *schedulingCycle) giveWay(r *run, by job.ID) {
	if r.stopping {
		return
	}
	p.markStopping(r.id)
	p.out = append(p.out, p.Core.preemptDecision(r, by))
	r.pause.asked, r.pause.givesWay = true, true
}

// holdersOf lists the running jobs that have what a suspended one lacks, if it takes turns
// with all of them, and when the last of their turns ends.
func (p *schedulingCycle) holdersOf(r *run) (out []*run, at Instant) {
	for i, pos := range r.at {
		if pos < 0 {
			continue
		}
		want, has := &r.pause.suspended.full[i], &r.claims[i]
		cpu := want.Take.CPU - has.Take.CPU - max(p.fleet.state.Row(int(pos)).Free.CPU, 0)
		lacks := func(d fleet.DeviceClaim) bool {
			return slices.Contains(want.Devices, d) && !slices.Contains(has.Devices, d)
		}
		var on []*run
		for _, h := range p.fleet.nodes[pos].held {
			o, c := h.run, &h.run.claims[h.claim]
			switch {
			case o == r || o.pause.suspended != nil || slices.Contains(on, o):
			case slices.ContainsFunc(c.Devices, func(d fleet.DeviceClaim) bool {
				return slices.ContainsFunc(want.Devices, func(w fleet.DeviceClaim) bool { return w.Index == d.Index && lacks(w) })
			}):
				if o.nominee != nil || o.mayChangeSize() || !r.policy.preemption.alternatesWith(o.policy.preemption) {
					return nil, 0
				}
				on = append(on, o)
				cpu -= c.Take.CPU
			}
		}
		more := p.onNode(r, pos, on)
		for len(more) > 0 && cpu > 0 {
			for k, h := range p.fleet.nodes[pos].held {
				if h.run == more[0] {
					cpu -= p.fleet.nodes[pos].held[k].run.claims[h.claim].Take.CPU
				}
			}
			on, more = append(on, more[0]), more[1:]
		}
		for _, o := range on {
			if !slices.Contains(out, o) {
				out = append(out, o)
				at = max(at, addDuration(o.pause.turn, time.Duration(o.policy.preemption.slice)))
			}
		}
	}
	return out, at
}

// onNode lists other running jobs of a node with which a suspended one takes turns, the one
// whose turn is longest first.
func (p *schedulingCycle) onNode(r *run, pos int32, but []*run) (out []*run) {
	for _, h := range p.fleet.nodes[pos].held {
		o := h.run
		if o != r && o.pause.suspended == nil && o.nominee == nil && !o.mayChangeSize() && r.policy.preemption.alternatesWith(o.policy.preemption) && !slices.Contains(but, o) && !slices.Contains(out, o) && o.claims[h.claim].Take.CPU > 0 {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b *run) int { return cmp.Or(cmp.Compare(a.pause.turn, b.pause.turn), cmp.Compare(a.id, b.id)) })
	return out
}
