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
// As long as there is one, starts are planned node by node (conservative_backfill.go).

// advanceReservation is a reservation with the nodes that it is of.
type advanceReservation struct {
	*account.Reservation
	window account.Window
	nodes  []bool // by position
}

// compileReservations takes up the reservations of a policy.
func (c *Core) compileReservations() {
	c.reservations = nil
	if c.policy == nil {
		return
	}
	for i := range c.policy.Reservations {
		r := &c.policy.Reservations[i]
		if w, ok := r.Window(); ok {
			c.reservations = append(c.reservations, &advanceReservation{Reservation: r, window: w})
		}
	}
	c.locateReservations()
}

// locateReservations finds the nodes of reservations.
func (c *Core) locateReservations() {
	for _, a := range c.reservations {
		a.nodes = make([]bool, c.fleet.table.Len())
		for pos := range a.nodes {
			a.nodes[pos] = len(a.Nodes) == 0 || slices.ContainsFunc(a.Nodes, c.fleet.table.Node(pos).Is)
		}
	}
}

// reservationByName returns a reservation; nil: there is none.
func (c *Core) reservationByName(name string) *advanceReservation {
	for _, a := range c.reservations {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// ownReservation is the reservation that a class's jobs run in; nil: none.
func (l *jobClass) ownReservation() *advanceReservation { return l.key.policy.reservation }

// nextOccurrence is the first occurrence that has not ended by an instant; at never where there
// is none.
func (a *advanceReservation) nextOccurrence(from Instant) (begin, end Instant) {
	b, e, ok := a.window.Next(int64(from))
	if !ok {
		return never, never
	}
	return Instant(b), Instant(e)
}

// latestEnd is when a class's first job ends at the latest if it begins at an instant.
func (l *jobClass) latestEnd(from Instant) Instant {
	until := endAfter(from, l.limit)
	if a := l.ownReservation(); a != nil && !a.Flex {
		if begin, end := a.nextOccurrence(from); begin <= from {
			until = min(until, end)
		}
	}
	return until
}

// outlastsReservation reports whether a run is to end after the reservation that it runs in.
func (r *run) outlastsReservation(now Instant) bool {
	a := r.policy.reservation
	if a == nil || a.Flex {
		return false
	}
	_, end := a.nextOccurrence(now)
	return r.until > end
}

// reservedFrom is the first instant from at on at which a class's first job could not begin
// on a node because of reservations.
func (c *Core) reservedFrom(l *jobClass, pos int, at, limit Instant) Instant {
	first := never
	if a := l.ownReservation(); a != nil && !a.Flex {
		begin, end := a.nextOccurrence(at)
		if !a.nodes[pos] || begin > at {
			return at
		}
		first = end
		if limit == 0 || limit > end-at {
			limit = end - at
		}
	}
	for _, a := range c.reservations {
		if a == l.ownReservation() || !a.nodes[pos] || l.ownReservation() != nil && a.Overlap {
			continue
		}
		begin, _ := a.nextOccurrence(at)
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

// isReservedOff reports whether reservations keep a class's first job off a node for a time.
func (c *Core) isReservedOff(l *jobClass, pos int, at, until Instant) bool {
	if len(c.reservations) == 0 || at == never {
		return false
	}
	limit := Instant(0)
	if until != never {
		limit = until - at
	}
	return c.reservedFrom(l, pos, at, limit) <= at
}

// nextOpening is when a node may be open again for a class's jobs after an instant at which
// it is not.
func (c *Core) nextOpening(l *jobClass, pos int, at Instant) Instant {
	next := never
	for _, a := range c.reservations {
		begin, end := a.nextOccurrence(at)
		switch {
		case !a.nodes[pos] || begin == never:
		case a.window.Ahead > 0: // it keeps off what is longer: what its reservation ends is short at last
			if own := l.ownReservation(); own != nil && own != a && !own.Flex {
				if begin, end := own.nextOccurrence(at); end != never {
					if from := max(begin, end-Instant(a.window.Ahead)); from > at {
						next = min(next, from)
					}
				}
			}
		case a == l.ownReservation() && begin > at:
			next = min(next, begin)
		default:
			next = min(next, end)
		}
	}
	return next
}

// hasReservation reports whether a reservation says anything of a node.
func (c *Core) hasReservation(l *jobClass, pos int) bool {
	if l.ownReservation() != nil {
		return true
	}
	return slices.ContainsFunc(c.reservations, func(a *advanceReservation) bool { return a.nodes[pos] })
}

// closeReserved takes the nodes of a state away that reservations keep a class off.
func (p *schedulingCycle) closeReserved(s *index.State, l *jobClass, at, until Instant) {
	if len(p.reservations) == 0 {
		return
	}
	for pos := range p.fleet.nodes {
		if p.isReservedOff(l, pos, at, until) {
			row := *s.Row(pos)
			row.Whole = max(row.Whole, 1)
			s.Put(pos, &row)
		}
	}
}

// nextReservationChange is the next instant at which a reservation begins or ends, or at which what
// runs inside of it until its end is short enough for one that floats ahead; 0: none.
func (c *Core) nextReservationChange() Instant {
	next := never
	for _, a := range c.reservations {
		if a.window.Ahead > 0 {
			continue
		}
		begin, end := a.nextOccurrence(c.clock.lastCycle)
		if begin > c.clock.lastCycle {
			next = min(next, begin)
		} else {
			next = min(next, end)
		}
		for _, o := range c.reservations {
			if at := end - Instant(o.window.Ahead); o.window.Ahead > 0 && end != never && at > c.clock.lastCycle {
				next = min(next, at)
			}
		}
	}
	if next == never {
		return 0
	}
	return next
}

// wakeForReservations has everything looked at again that waits for a reservation to begin or to
// end.
func (c *Core) wakeForReservations() {
	for _, l := range c.queue.classes {
		if l.waiting == forReservation {
			c.wakeBarred(l)
		}
	}
	c.generation++ // others may be taken on nodes that are open now
	c.planDirty, c.cycleDue = true, true
}

// reservationGate says what keeps a class's jobs waiting that are to run in a reservation.
func (p *schedulingCycle) reservationGate(l *jobClass) (waitState, reason.Reason) {
	name := l.key.policy.key.reservation
	if name == "" {
		return toLookAt, reason.Reason{}
	}
	a := l.ownReservation()
	if a == nil {
		return forReservation, reason.Reason{Code: reason.Reservation, Want: name}
	}
	begin, _ := a.nextOccurrence(p.now)
	switch {
	case begin == never:
		return forReservation, reason.Reason{Code: reason.Reservation, Want: name}
	case begin > p.now && !a.Flex:
		return forReservation, reason.Reason{Code: reason.Reservation, Want: name, Until: int64(begin) / int64(time.Second)}
	}
	return toLookAt, reason.Reason{}
}

// excludingReservation is the reservation that keeps a class's first job off a node where it would
// fit now.
func (p *schedulingCycle) excludingReservation(l *jobClass) (reason.Reason, bool) {
	if len(p.reservations) == 0 {
		return reason.Reason{}, false
	}
	until := l.latestEnd(p.now)
	for _, claim := range p.placeFree(l.kind) {
		pos := p.fleet.table.Find(claim.Key())
		if !p.isReservedOff(l, pos, p.now, until) {
			continue
		}
		for _, a := range p.reservations {
			begin, end := a.nextOccurrence(p.now)
			if a != l.ownReservation() && a.nodes[pos] && begin < until {
				return reason.Reason{Code: reason.Reservation, Want: a.Name, Until: int64(end) / int64(time.Second)}, true
			}
		}
	}
	return reason.Reason{}, false
}
