package sched

import "github.com/coxswain-sched/coxswain/model/job"

// Classes that rest for the plan where starts are planned node by node are looked at again
// when they could find more than before: a node has changed, or what is planned on it,
// and it could take part now.

// wakeVerdict is whether jobs of a kind with a limit may find more than before.
type wakeVerdict struct {
	limit Instant
	more  bool
}

// planWatch is what has been reckoned with.
type planWatch struct {
	cycles            uint64
	logged, replanned uint64 // fleetState.changedEpoch and backfillState.replannedEpoch then
	seen, followed    int    // entries of fleetState.changed and backfillState.replanned
	first             [2]job.ID
}

// wakeBesidePlan wakes the classes that rest for the plan and may find more than before.
// All of them are told another reason if the first ones are others now for which
// something is planned.
func (p *schedulingCycle) wakeBesidePlan() {
	c, w := p.Core, &p.Core.backfill.watch
	w.cycles++
	first := p.firstPlanned()
	all := w.first != first || w.logged != c.fleet.changedEpoch || w.replanned != c.backfill.replannedEpoch || len(p.reservations) > 0
	logged, restood := c.fleet.changed, c.backfill.replanned
	if !all {
		logged, restood = c.fleet.changed[w.seen:], c.backfill.replanned[w.followed:]
	}
	*w = planWatch{w.cycles, c.fleet.changedEpoch, c.backfill.replannedEpoch, len(c.fleet.changed), len(c.backfill.replanned), first}
	if all {
		p.wakePlanned()
		return
	}
	rest := c.queue.forPlan[:0]
	for _, l := range c.queue.forPlan {
		switch {
		case l.waiting != forPlan:
		case l.waitsForHead || l.key.least > 0 || l.quotaDemand != nil && l.quotaDemand.queue.triesNextFlavor || p.findsMore(l, logged, restood):
			c.wakeClass(l)
		default:
			rest = append(rest, l)
		}
	}
	clear(c.queue.forPlan[len(rest):])
	c.queue.forPlan = rest
}

// firstPlanned is whom those are told who wait for what is planned: the first one, or
// the second if they are the first one themselves.
func (p *schedulingCycle) firstPlanned() (first [2]job.ID) {
	n := 0
	for _, s := range p.backfill.starts {
		if s.onNodes && n < len(first) {
			first[n] = s.e.id
			n++
		}
	}
	return first
}

// findsMore reports whether a node has changed so that it could take part of a class's first
// job now, or its kind does not fit any longer whatever is planned.
func (p *schedulingCycle) findsMore(l *jobClass, changed ...[]int32) bool {
	k := l.kind
	if k.roused != p.backfill.watch.cycles {
		k.roused, k.verdicts = p.backfill.watch.cycles, k.verdicts[:0]
	}
	limit := Instant(l.limit)
	for _, v := range k.verdicts {
		if v.limit == limit {
			return v.more
		}
	}
	v := wakeVerdict{limit, p.changedNodeServes(l, changed)}
	k.verdicts = append(k.verdicts, v)
	return v.more
}

func (p *schedulingCycle) changedNodeServes(l *jobClass, changed [][]int32) bool {
	q := p.quickPlacement(l.kind)
	if l.kind.full || q == nil || !q.Even() {
		return true
	}
	if fits, sure := q.Fits(nil); sure && !fits {
		l.kind.full = true
		return true
	}
	until := l.latestEnd(p.now)
	for _, list := range changed {
		for _, pos := range list {
			cell := p.fleet.cells.Of(int(pos))
			if cell >= 0 && len(p.fleet.nodes[pos].planned) > 0 {
				cell = p.timelineOf(int(pos)).cellFor(p.now, p.now, until)
			}
			if q.Serves(cell) {
				return true
			}
		}
	}
	return false
}
