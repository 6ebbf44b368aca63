package sched

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// Advance reservations (Slurm's reservations.html): nodes that are kept for some jobs, or for
// none, for a time. They stand in the policy. Jobs outside of one never run on its
// nodes while it holds: a job whose limit reaches into it does not start there. Jobs
// inside run on its nodes alone, begin while it holds, and end with it. What runs on
// its nodes when it begins is left.
//
// As long as there is one, starts are planned by name (named.go).

// advance is a reservation with the nodes that it is of.
type advance struct {
	*account.Reservation
	window account.Window
	nodes  []bool // by position
}

// compileAdvances takes up the reservations of a policy.
func (c *Core) compileAdvances() {
	c.advances = nil
	if c.policy == nil {
		return
	}
	for i := range c.policy.Reservations {
		r := &c.policy.Reservations[i]
		if w, ok := r.Window(); ok {
			c.advances = append(c.advances, &advance{Reservation: r, window: w})
		}
	}
	c.placeAdvances()
}

// placeAdvances finds the nodes of reservations.
func (c *Core) placeAdvances() {
	for _, a := range c.advances {
		a.nodes = make([]bool, c.table.Len())
		for pos := range a.nodes {
			a.nodes[pos] = len(a.Nodes) == 0 || slices.ContainsFunc(a.Nodes, c.table.Node(pos).Is)
		}
	}
}

// advanceNamed returns a reservation; nil: there is none.
func (c *Core) advanceNamed(name string) *advance {
	for _, a := range c.advances {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// inside is the reservation that a line's jobs run in; nil: none.
func (l *line) inside() *advance { return l.key.terms.inside }

// next is the first occurrence that has not ended by an instant; at never where there
// is none.
func (a *advance) next(from Instant) (begin, end Instant) {
	b, e, ok := a.window.Next(int64(from))
	if !ok {
		return never, never
	}
	return Instant(b), Instant(e)
}

// finish is when a line's first job ends at the latest if it begins at an instant.
func (l *line) finish(from Instant) Instant {
	until := ending(from, l.limit)
	if a := l.inside(); a != nil && !a.Flex {
		if begin, end := a.next(from); begin <= from {
			until = min(until, end)
		}
	}
	return until
}

// outlasts reports whether a run is to end after the reservation that it runs in.
func (r *run) outlasts(now Instant) bool {
	a := r.terms.inside
	if a == nil || a.Flex {
		return false
	}
	_, end := a.next(now)
	return r.until > end
}

// closes is the first instant from at on at which a line's first job could not begin
// on a node because of reservations.
func (c *Core) closes(l *line, pos int, at, limit Instant) Instant {
	first := never
	if a := l.inside(); a != nil && !a.Flex {
		begin, end := a.next(at)
		if !a.nodes[pos] || begin > at {
			return at
		}
		first = end
		if limit == 0 || limit > end-at {
			limit = end - at
		}
	}
	for _, a := range c.advances {
		if a == l.inside() || !a.nodes[pos] || l.inside() != nil && a.Overlap {
			continue
		}
		begin, _ := a.next(at)
		switch {
		case begin == never:
		case begin <= at, (limit == 0 || limit > begin-at) && !planted.ReservationOpen:
			return at
		case a.window.Ahead == 0:
			first = min(first, begin-limit+1)
		}
	}
	return first
}

// shut reports whether reservations keep a line's first job off a node for a time.
func (c *Core) shut(l *line, pos int, at, until Instant) bool {
	if len(c.advances) == 0 || at == never {
		return false
	}
	limit := Instant(0)
	if until != never {
		limit = until - at
	}
	return c.closes(l, pos, at, limit) <= at
}

// opens is when a node may be open again for a line's jobs after an instant at which
// it is not.
func (c *Core) opens(l *line, pos int, at Instant) Instant {
	next := never
	for _, a := range c.advances {
		begin, end := a.next(at)
		switch {
		case !a.nodes[pos] || begin == never:
		case a.window.Ahead > 0: // it keeps off what is longer: what its reservation ends is short at last
			if own := l.inside(); own != nil && own != a && !own.Flex {
				if begin, end := own.next(at); end != never {
					if from := max(begin, end-Instant(a.window.Ahead)); from > at {
						next = min(next, from)
					}
				}
			}
		case a == l.inside() && begin > at:
			next = min(next, begin)
		default:
			next = min(next, end)
		}
	}
	return next
}

// bound reports whether a reservation says anything of a node.
func (c *Core) bound(l *line, pos int) bool {
	if l.inside() != nil {
		return true
	}
	return slices.ContainsFunc(c.advances, func(a *advance) bool { return a.nodes[pos] })
}

// close takes the nodes of a state away that reservations keep a line off.
func (p *pass) close(s *index.State, l *line, at, until Instant) {
	if len(p.advances) == 0 {
		return
	}
	for pos := range p.nodes {
		if p.shut(l, pos, at, until) {
			row := *s.Row(pos)
			row.Whole = max(row.Whole, 1)
			s.Put(pos, &row)
		}
	}
}

// nextTurn is the next instant at which a reservation begins or ends, or at which what
// runs inside of it until its end is short enough for one that floats ahead; 0: none.
func (c *Core) nextTurn() Instant {
	next := never
	for _, a := range c.advances {
		if a.window.Ahead > 0 {
			continue
		}
		begin, end := a.next(c.passed)
		if begin > c.passed {
			next = min(next, begin)
		} else {
			next = min(next, end)
		}
		for _, o := range c.advances {
			if at := end - Instant(o.window.Ahead); o.window.Ahead > 0 && end != never && at > c.passed {
				next = min(next, at)
			}
		}
	}
	if next == never {
		return 0
	}
	return next
}

// turnOver has everything looked at again that waits for a reservation to begin or to
// end.
func (c *Core) turnOver() {
	for _, l := range c.lines {
		if l.rest == forTime {
			c.admit(l)
		}
	}
	c.stirs++ // others may be taken on nodes that are open now
	c.shaken, c.dirty = true, true
}

// kept says what keeps a line's jobs waiting that are to run in a reservation.
func (p *pass) kept(l *line) (rest, reason.Reason) {
	name := l.key.terms.key.reservation
	if name == "" {
		return active, reason.Reason{}
	}
	a := l.inside()
	if a == nil {
		return forTime, reason.Reason{Code: reason.Reservation, Want: name}
	}
	begin, _ := a.next(p.now)
	switch {
	case begin == never:
		return forTime, reason.Reason{Code: reason.Reservation, Want: name}
	case begin > p.now && !a.Flex:
		return forTime, reason.Reason{Code: reason.Reservation, Want: name, Until: int64(begin) / int64(time.Second)}
	}
	return active, reason.Reason{}
}

// keeper is the reservation that keeps a line's first job off a node where it would
// fit now.
func (p *pass) keeper(l *line) (reason.Reason, bool) {
	if len(p.advances) == 0 {
		return reason.Reason{}, false
	}
	until := l.finish(p.now)
	for _, claim := range p.fit(l.kind) {
		pos := p.table.Find(claim.Key())
		if !p.shut(l, pos, p.now, until) {
			continue
		}
		for _, a := range p.advances {
			begin, end := a.next(p.now)
			if a != l.inside() && a.nodes[pos] && begin < until {
				return reason.Reason{Code: reason.Reservation, Want: a.Name, Until: int64(end) / int64(time.Second)}, true
			}
		}
	}
	return reason.Reason{}, false
}
