package sched

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// maxShortened bounds how many ends are tried for one job.
const maxShortened = 8

// placeShortened places a class's first job now with a shortened limit (sbatch --time-min):
// as long as it is in nobody's way, but at least so long as it says.
func (p *schedulingCycle) placeShortened(l *jobClass) (claims []fleet.Claim, until Instant) {
	if l.key.least == 0 || l.kind.full {
		return nil, 0
	}
	soonest, latest := endAfter(p.now, l.key.least), l.latestEnd(p.now)
	if !p.backfill.wasOn {
		if at := p.plan.at; p.plan.job != 0 && soonest <= at && at < latest {
			return p.placeFree(l.kind), at
		}
		return nil, 0
	}
	tries := 0
	for _, until := range p.plannedBeginnings(soonest, latest) {
		if tries++; tries > maxShortened {
			break
		}
		if claims := p.placeNow(l, until); claims != nil {
			return claims, until
		}
	}
	return nil, 0
}

// plannedBeginnings lists the instants in a time at which something planned begins, the last
// one first.
func (p *schedulingCycle) plannedBeginnings(from, before Instant) []Instant {
	var out []Instant
	for _, s := range p.backfill.starts {
		if begin, _ := s.timeSpan(p.now); s.onNodes && s != p.backfill.except && begin >= from && begin < before {
			out = append(out, begin)
		}
	}
	for _, a := range p.reservations {
		if begin, _ := a.nextOccurrence(p.now); begin >= from && begin < before {
			out = append(out, begin)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return slices.Compact(out)
}

// Jobs that serve and have no time limit (replicas of services) have no end. The rules are those for
// all jobs without a limit, but for these: such a job may start with an end granted, before something
// that is planned; limits on minutes charge it as it uses them; and a job that waits for it alone says so.

// leastOpen is the shortest time that a job without an end is started for, where it does not say itself
// (TimeMin). It is worth the start of a server, and its replacement begins before it is over.
const leastOpen = 5 * time.Minute

// setTimes notes how long a job of the class may take, and how much of that is enough.
func (k *classKey) setTimes(s *job.Spec) {
	k.limit = max(s.TimeLimit, 0)
	switch k.open = s.Endless(); {
	case k.open && s.TimeMin > 0:
		k.least = s.TimeMin
	case k.open:
		k.least = leastOpen
	case s.TimeMin > 0 && s.TimeMin < k.limit:
		k.least = s.TimeMin
	}
}

// waitsForEndless is the reason of a job that does not start however many of the jobs with a limit have
// ended: a job without an end has what is kept for it. ok is false where that is not a job that serves.
func (p *schedulingCycle) waitsForEndless(claims []fleet.Claim) (why reason.Reason, ok bool) {
	if p.runs.open == 0 {
		return why, false
	}
	kept := map[int]bool{} // by position
	for i := range claims {
		kept[p.fleet.table.Find(claims[i].Key())] = true
	}
	ends := p.runs.ends.allRuns()
	for i := len(ends) - 1; i >= 0 && ends[i].until == never; i-- {
		r := ends[i]
		if !r.spec.Endless() || r.nominee != nil || ok && job.ID(why.Job) < r.id {
			continue
		}
		for k := range r.claims {
			if kept[p.fleet.table.Find(r.claims[k].Key())] {
				why, ok = reason.Reason{Code: reason.Endless, Job: uint64(r.id)}, true
				break
			}
		}
	}
	return why, ok
}

// explainEndless sees to it, at the end of a cycle, that the head says so if it waits for a job without
// an end.
func (p *schedulingCycle) explainEndless() {
	head := p.queue.jobs[p.plan.job]
	if head == nil || head.blocked || head.nominee != nil || head.class.waiting != forNodes || head.class.jobs.firstJob() != head {
		return
	}
	l := head.class
	why, ok := reason.Reason{}, false
	if p.plan.at == never && l.why.Job == 0 || l.why.Code == reason.Endless {
		why, ok = p.waitsForEndless(p.reservedClaims())
		ok = ok && p.plan.at == never
	}
	switch {
	case !ok && l.why.Code == reason.Endless:
		why = p.missingReason(l)
	case !ok || why == l.why:
		return
	}
	l.why = why
	p.touchClass(l)
}
