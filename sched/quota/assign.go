package quota

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Need is an amount of a resource that a job asks for, whatever the flavour.
type Need struct {
	Resource int32
	Amount   resource.Amount
}

// Mode says how a flavour would do, the worst first.
type Mode uint8

// The modes.
const (
	NoFit        Mode = iota // never, or only if a rule changes
	NoCandidates             // if something were stopped, but there is nothing that may be
	Preempts                 // if others of the same queue are stopped
	Reclaims                 // if only others' queues lose what they borrowed
	Fit                      // now
)

// Assignment is the flavours that a job would get.
type Assignment struct {
	Mode    Mode
	Level   int32    // how far away it comes from: 0 is the queue's own quota
	Flavors []int32  // one of each group of the queue that has something to give, ascending
	Charges []Charge // sorted by FR
	Lacks   []int32  // FRs that do not fit now
	Over    []int32  // FRs of which the job asks for more than could ever be had
}

// Try says whether so much of a resource of a flavour could be had for a job of a
// queue by stopping others: Preempts, Reclaims or NoCandidates, and at which level it
// would stand then.
type Try func(fr int32, a resource.Amount) (Mode, int32)

// Assign chooses flavours for a job of a queue, group by group, as Kueue does: the
// first flavour that the account's rules allow to stop at, else the best. needs are
// sorted by resource; those of which the queue has no quota are free. may says which
// flavours are considered at all; nil: each. try is nil where nothing may be stopped.
func (s *State) Assign(q int32, needs []Need, may func(flavor int32) bool, try Try) Assignment {
	return s.Reassign(&Assignment{}, q, needs, may, try)
}

// Reassign is Assign; the answer shares the memory of an earlier one where both say the
// same.
func (s *State) Reassign(last *Assignment, q int32, needs []Need, may func(flavor int32) bool, try Try) Assignment {
	w := &s.work
	*w = work{w.needs[:0], w.flavors[:0], w.charges[:0], w.lacks[:0], w.over[:0], w.judged[:0]}
	out := Assignment{Mode: Fit}
	for i := range s.nodes[q].groups {
		g := &s.nodes[q].groups[i]
		w.needs = g.appendNeeds(needs, w.needs[:0])
		if len(w.needs) == 0 {
			continue
		}
		c := s.chooseFlavor(q, g, w.needs, may, try)
		w.lacks, w.over = append(w.lacks, c.lacks...), append(w.over, c.over...)
		out.Mode, out.Level = min(out.Mode, c.mode), max(out.Level, c.level)
		if c.mode == NoFit {
			out.Level, w.flavors, w.charges = 0, w.flavors[:0], w.charges[:0]
			break
		}
		w.flavors = append(w.flavors, c.flavor)
		for _, n := range w.needs {
			w.charges = append(w.charges, Charge{s.frNumber(c.flavor, n.Resource), n.Amount})
		}
	}
	slices.Sort(w.flavors)
	slices.SortFunc(w.charges, func(a, b Charge) int { return cmp.Compare(a.FR, b.FR) })
	out.Flavors, out.Charges = reuseEqual(w.flavors, last.Flavors), reuseEqual(w.charges, last.Charges)
	out.Lacks, out.Over = reuseEqual(w.lacks, last.Lacks), reuseEqual(w.over, last.Over)
	return out
}

// work is memory for one assignment.
type work struct {
	needs       []Need
	flavors     []int32
	charges     []Charge
	lacks, over []int32
	judged      []int32 // FRs of choices
}

// reuseEqual is a copy of a list, or an earlier one that is the same.
func reuseEqual[T comparable](list, last []T) []T {
	switch {
	case len(list) == 0:
		return nil
	case slices.Equal(list, last):
		return last[:len(last):len(last)]
	}
	return slices.Clip(slices.Clone(list))
}

// Foremost is what a job of a queue would be charged in the flavours that the queue
// names first, however full they are.
func (s *State) Foremost(q int32, needs []Need) (out []Charge) {
	for i := range s.nodes[q].groups {
		g := &s.nodes[q].groups[i]
		for _, n := range g.appendNeeds(needs, nil) {
			out = append(out, Charge{s.frNumber(g.flavors[0], n.Resource), n.Amount})
		}
	}
	return out
}

// appendNeeds appends what a group has quotas of.
func (g *group) appendNeeds(needs, out []Need) []Need {
	for _, n := range needs {
		if g.hasQuotaOf(n) {
			out = append(out, n)
		}
	}
	return out
}

// hasQuotaOf reports whether a group has a quota of what is needed.
func (g *group) hasQuotaOf(n Need) bool {
	return n.Amount > 0 && slices.Contains(g.resources, n.Resource)
}

// choice is one flavour of a group as it would do.
type choice struct {
	flavor int32
	mode   Mode
	level  int32
	lacks  []int32
	over   []int32
}

// chooseFlavor looks at the flavours of a group in their order.
func (s *State) chooseFlavor(q int32, g *group, needs []Need, may func(int32) bool, try Try) choice {
	rules := &s.nodes[q].rules
	best := choice{flavor: None}
	for _, f := range g.flavors {
		if may != nil && !may(f) {
			continue
		}
		c := s.judgeFlavor(q, f, needs, try)
		if rules.stopsAt(c) {
			return c
		}
		if best.flavor == None || rules.isBetter(c, best) {
			best = c
		}
	}
	return best
}

// judgeFlavor says how a flavour would do: as badly as the worst of its resources.
func (s *State) judgeFlavor(q, flavor int32, needs []Need, try Try) choice {
	c := choice{flavor: flavor, mode: Fit}
	rules := &s.nodes[q].rules
	all := &s.work.judged
	from := len(*all)
	for _, n := range needs {
		if fr := s.frNumber(flavor, n.Resource); n.Amount > s.Potential(q, fr) {
			*all = append(*all, fr)
		}
	}
	c.over = (*all)[from:len(*all):len(*all)]
	from = len(*all)
	for _, n := range needs {
		fr := s.frNumber(flavor, n.Resource)
		one := choice{}
		one.mode, one.level = s.reachAmount(q, fr, n.Amount, try)
		if one.mode != Fit {
			*all = append(*all, fr)
		}
		if rules.isBetter(c, one) {
			c.mode, c.level = one.mode, one.level
		}
	}
	c.lacks = (*all)[from:len(*all):len(*all)]
	return c
}

// reachAmount says how an amount of one resource of one flavour can be had.
func (s *State) reachAmount(q, fr int32, a resource.Amount, try Try) (Mode, int32) {
	if a > s.Potential(q, fr) {
		return NoFit, 0
	}
	level, inner := s.borrowLevel(q, fr, a)
	switch {
	case a <= s.Available(q, fr):
		return Fit, level
	case a > s.Nominal(q, fr) && !inner && !s.whileBorrowing(q):
		return NoFit, level
	case try == nil:
		return NoCandidates, level
	}
	return try(fr, a)
}

// whileBorrowing reports whether a queue may have others stopped to borrow more.
func (s *State) whileBorrowing(q int32) bool {
	r := &s.nodes[q].rules
	return r.Borrowing != account.NoVictims || s.Fair(q) && r.Reclaim != account.NoVictims
}

// rules is a queue's rules about flavours.
type rules account.Quota

// stopsAt reports whether no further flavour is looked at.
func (r *rules) stopsAt(c choice) bool {
	switch {
	case c.mode <= NoCandidates,
		c.mode < Fit && r.Preempt != account.StopHere,
		c.level > 0 && r.Borrow == account.NextFlavor:
		return false
	}
	return true
}

// isBetter reports whether one flavour does better than another.
func (r *rules) isBetter(a, b choice) bool {
	if a.mode == NoFit || b.mode == NoFit {
		return a.mode > b.mode
	}
	if (a.mode == NoCandidates) != (b.mode == NoCandidates) {
		return b.mode == NoCandidates
	}
	if r.Prefer == account.PreemptFirst {
		return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(a.mode, b.mode)) > 0
	}
	return cmp.Or(cmp.Compare(a.mode, b.mode), cmp.Compare(b.level, a.level)) > 0
}

// FlavorsOf picks, of each group of a queue of which something is used, the flavour that
// was had, else the first one that may be; the first one if none may.
func (t *Tree) FlavorsOf(q int32, used []Need, had []int32, may func(flavor int32) bool) []int32 {
	var out []int32
	for i := range t.nodes[q].groups {
		g := &t.nodes[q].groups[i]
		if len(g.appendNeeds(used, nil)) > 0 {
			i := slices.IndexFunc(g.flavors, func(f int32) bool { return slices.Contains(had, f) })
			if i < 0 {
				i = max(0, slices.IndexFunc(g.flavors, may))
			}
			out = append(out, g.flavors[i])
		}
	}
	slices.Sort(out)
	return out
}

// Charges is what is used as a queue is charged for it, in those of its flavours that
// are named.
func (t *Tree) Charges(q int32, used []Need, flavors []int32) []Charge {
	out := make([]Charge, 0, len(used))
	for i := range t.nodes[q].groups {
		g := &t.nodes[q].groups[i]
		f := g.flavors[max(0, slices.IndexFunc(g.flavors, func(f int32) bool { return slices.Contains(flavors, f) }))]
		for _, n := range used {
			if g.hasQuotaOf(n) {
				out = append(out, Charge{t.frNumber(f, n.Resource), n.Amount})
			}
		}
	}
	slices.SortFunc(out, func(a, b Charge) int { return cmp.Compare(a.FR, b.FR) })
	return out
}
