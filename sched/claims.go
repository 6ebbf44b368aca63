package sched

import "github.com/coxswain-sched/coxswain/model/fleet"

// EachClaims calls f with every list of claims in a snapshot, always in the same order.
func (s *Snapshot) EachClaims(f func([]fleet.Claim)) {
	for i := range s.Running {
		EachClaims(s.Running[i], f)
	}
	for i := range s.Added {
		EachClaims(s.Added[i], f)
	}
	m := &s.Memory
	for i := range m.Nominees {
		f(m.Nominees[i].Claims)
	}
	f(m.Plan.Claims)
	if m.ByName != nil {
		for i := range m.ByName.Slots {
			f(m.ByName.Slots[i].Claims)
		}
	}
	if m.Moves == nil {
		return
	}
	for i := range m.Moves.Homes {
		f(m.Moves.Homes[i].Claims)
	}
	if p := m.Moves.Proposal; p != nil {
		f(p.Claims)
		for i := range p.Moves {
			f(p.Moves[i].Home)
		}
	}
}

// EachClaims calls f with every list of claims in an event, always in the same order.
func EachClaims(e Event, f func([]fleet.Claim)) {
	switch e := e.(type) {
	case Restored:
		f(e.Claims)
		f(e.Home)
		if e.Parked != nil {
			f(e.Parked.Keeps)
		}
	case Added:
		f(e.Claims)
	case Approved:
		f(e.Claims)
		for i := range e.Moves {
			f(e.Moves[i].Home)
		}
	}
}
