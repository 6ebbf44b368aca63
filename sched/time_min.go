package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
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
