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
// turn; these are parked (parked.go), and go on when its turn is over, which parks it. So
// each waits for the other's turn at most, and as soon as one has ended the other runs
// alone. On one device there are never more than two.
//
// Source: Slurm's OverSubscribe=FORCE:2 with PreemptMode=GANG (gang_scheduling.html), which shares no
// devices; here they change hands too.

// alternatesWith reports whether jobs of two standings take turns.
func (s *standing) alternatesWith(o *standing) bool {
	return s != nil && o != nil && s.slice > 0 && o.slice > 0 && s.partition == o.partition
}

// mayJoin reports whether the job may take turns with a running one now.
func (s *search) mayJoin(r *run) bool {
	if r.parking != nil || r.isElastic() || r.isAggregate() || s.entry.spec.Elastic() || !s.entry.line.key.terms.standing.alternatesWith(r.terms.standing) {
		return false
	}
	for _, id := range s.parked {
		if o := s.running[id]; o != nil && o.parking != nil && s.claimsContend(o.parking.full, r.claims) {
			return false // there are two
		}
	}
	if end := addDuration(r.turn, time.Duration(r.terms.standing.slice)); end > s.now {
		if s.exempted == 0 || end < s.exempted {
			s.exempted = end
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
			if !c.table.Meet(&a[i], &b[j]) {
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

// tailOf is how long those may go on that wait for a parked job's place, after it.
func (c *Core) tailOf(r *run) (tail Instant) {
	for _, o := range c.suspendedRuns() {
		if o != r && o.terms.standing.alternatesWith(r.terms.standing) && c.claimsContend(o.parking.full, r.parking.full) {
			tail = max(tail, o.parking.left)
		}
	}
	return tail
}

// alternateTurns has running jobs whose turn is over give way to parked ones, and notes when
// the next turn ends.
func (p *pass) alternateTurns() {
	p.Core.turnEnds = 0
	if len(p.parked) == 0 {
		return
	}
	for _, r := range p.suspendedRuns() {
		if r.stopping || r.terms.standing == nil || r.terms.standing.slice == 0 {
			continue
		}
		holders, at := p.holdersOf(r)
		switch {
		case len(holders) == 0:
		case at > p.now:
			if p.turnEnds == 0 || at < p.turnEnds {
				p.Core.turnEnds = at
			}
		default:
			for _, o := range holders {
				p.giveWay(o, r.id)
			}
		}
	}
}

// giveWay has a running job suspended for a parked one.
func (p *pass) giveWay(r *run, by job.ID) {
	if r.stopping {
		return
	}
	p.markStopping(r.id)
	p.out = append(p.out, p.Core.preemptDecision(r, by))
	r.suspending, r.givesWay = true, true
}

// holdersOf lists the running jobs that have what a parked one lacks, if it takes turns
// with all of them, and when the last of their turns ends.
func (p *pass) holdersOf(r *run) (out []*run, at Instant) {
	for i, pos := range r.at {
		if pos < 0 {
			continue
		}
		want, has := &r.parking.full[i], &r.claims[i]
		cpu := want.Take.CPU - has.Take.CPU - max(p.state.Row(int(pos)).Free.CPU, 0)
		lacks := func(d fleet.DeviceClaim) bool {
			return slices.Contains(want.Devices, d) && !slices.Contains(has.Devices, d)
		}
		var on []*run
		for _, h := range p.nodes[pos].held {
			o, c := h.run, &h.run.claims[h.claim]
			switch {
			case o == r || o.parking != nil || slices.Contains(on, o):
			case slices.ContainsFunc(c.Devices, func(d fleet.DeviceClaim) bool {
				return slices.ContainsFunc(want.Devices, func(w fleet.DeviceClaim) bool { return w.Index == d.Index && lacks(w) })
			}):
				if o.nominee != nil || o.mayChangeSize() || !r.terms.standing.alternatesWith(o.terms.standing) {
					return nil, 0
				}
				on = append(on, o)
				cpu -= c.Take.CPU
			}
		}
		more := p.onNode(r, pos, on)
		for len(more) > 0 && cpu > 0 {
			for k, h := range p.nodes[pos].held {
				if h.run == more[0] {
					cpu -= p.nodes[pos].held[k].run.claims[h.claim].Take.CPU
				}
			}
			on, more = append(on, more[0]), more[1:]
		}
		for _, o := range on {
			if !slices.Contains(out, o) {
				out = append(out, o)
				at = max(at, addDuration(o.turn, time.Duration(o.terms.standing.slice)))
			}
		}
	}
	return out, at
}

// onNode lists other running jobs of a node with which a parked one takes turns, the one
// whose turn is longest first.
func (p *pass) onNode(r *run, pos int32, but []*run) (out []*run) {
	for _, h := range p.nodes[pos].held {
		o := h.run
		if o != r && o.parking == nil && o.nominee == nil && !o.mayChangeSize() && r.terms.standing.alternatesWith(o.terms.standing) && !slices.Contains(but, o) && !slices.Contains(out, o) && o.claims[h.claim].Take.CPU > 0 {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b *run) int { return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.id, b.id)) })
	return out
}
