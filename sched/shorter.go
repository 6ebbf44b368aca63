package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
)

// maxShorter bounds how many ends are tried for one job.
const maxShorter = 8

// shorter places a line's first job now with a shortened limit (sbatch --time-min):
// as long as it is in nobody's way, but at least so long as it says.
func (p *pass) shorter(l *line) (claims []fleet.Claim, until Instant) {
	if l.key.least == 0 || l.kind.full {
		return nil, 0
	}
	soonest, latest := ending(p.now, l.key.least), l.finish(p.now)
	if !p.wasNamed {
		if at := p.plan.at; p.plan.job != 0 && soonest <= at && at < latest {
			return p.fit(l.kind), at
		}
		return nil, 0
	}
	tries := 0
	for _, until := range p.beginnings(soonest, latest) {
		if tries++; tries > maxShorter {
			break
		}
		if claims := p.beginNow(l, until); claims != nil {
			return claims, until
		}
	}
	return nil, 0
}

// beginnings lists the instants in a time at which something planned begins, the last
// one first.
func (p *pass) beginnings(from, before Instant) []Instant {
	var out []Instant
	for _, s := range p.slots {
		if begin, _ := s.span(p.now); s.rooted && s != p.but && begin >= from && begin < before {
			out = append(out, begin)
		}
	}
	for _, a := range p.advances {
		if begin, _ := a.next(p.now); begin >= from && begin < before {
			out = append(out, begin)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return slices.Compact(out)
}
