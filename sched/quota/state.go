package quota

import (
	"slices"

	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Charge is an amount of one resource of one flavour.
type Charge struct {
	FR     int32
	Amount resource.Amount
}

// State counts what is held. Copies share the Tree.
type State struct {
	*Tree
	usage []resource.Amount // by node, then by FR: held here, and by children beyond what is guaranteed to them
	work  work
}

// NewState returns a state in which nothing is held.
func (t *Tree) NewState() *State {
	return &State{Tree: t, usage: make([]resource.Amount, len(t.amount))}
}

// Clone copies a state.
func (s *State) Clone() *State { return &State{Tree: s.Tree, usage: slices.Clone(s.usage)} }

func (s *State) usedAmount(n, fr int32) *resource.Amount {
	return &s.usage[int(n)*len(s.FRs)+int(fr)]
}

// Used is what counts against a node's subtree quota.
func (s *State) Used(n, fr int32) resource.Amount { return *s.usedAmount(n, fr) }

// spareGuarantee is what is left of a node's guarantee.
func (s *State) spareGuarantee(n, fr int32) resource.Amount {
	return max(0, s.amountsAt(n, fr).guaranteed.Sub(*s.usedAmount(n, fr)))
}

// Add charges a node.
func (s *State) Add(n int32, charges []Charge) {
	for _, c := range charges {
		s.addUsage(n, c.FR, c.Amount)
	}
}

func (s *State) addUsage(n, fr int32, a resource.Amount) {
	for n != None && a > 0 {
		spare := s.spareGuarantee(n, fr)
		u := s.usedAmount(n, fr)
		*u = u.Add(a)
		a = a.Sub(spare)
		n = s.nodes[n].parent
	}
}

// Remove takes back what was charged to a node.
func (s *State) Remove(n int32, charges []Charge) {
	for _, c := range charges {
		s.removeUsage(n, c.FR, c.Amount)
	}
}

func (s *State) removeUsage(n, fr int32, a resource.Amount) {
	for n != None && a > 0 {
		u := s.usedAmount(n, fr)
		beyond := u.Sub(s.amountsAt(n, fr).guaranteed)
		*u = u.Sub(a)
		a = min(a, beyond)
		n = s.nodes[n].parent
	}
}

// Available is what a node may still take, from its own quota and by borrowing. It
// is 0 where more is held than there is.
func (s *State) Available(n, fr int32) resource.Amount { return max(0, s.availableAmount(n, fr)) }

func (s *State) availableAmount(n, fr int32) resource.Amount {
	a, used := s.amountsAt(n, fr), *s.usedAmount(n, fr)
	if s.nodes[n].parent == None {
		return a.subtree.Sub(used)
	}
	above := s.availableAmount(s.nodes[n].parent, fr)
	if a.borrow != resource.Unlimited && !planted.BorrowsAll {
		lent := a.subtree.Sub(a.guaranteed) // what of the own quota stands in the parent
		above = min(above, lent.Sub(max(0, used.Sub(a.guaranteed))).Add(a.borrow))
	}
	return s.spareGuarantee(n, fr).Add(above)
}

// Fits reports whether a node may take charges, each resource of a flavour once.
func (s *State) Fits(n int32, charges []Charge) bool {
	return !slices.ContainsFunc(charges, func(c Charge) bool { return c.Amount > s.Available(n, c.FR) })
}

// Most appends what a job of a queue could be given of each resource at most, in
// whichever flavour; Unlimited where nobody counts it.
func (s *State) Most(q int32, out []resource.Amount) []resource.Amount {
	for range s.Resources {
		out = append(out, resource.Unlimited)
	}
	for i := range s.nodes[q].groups {
		g := &s.nodes[q].groups[i]
		for _, r := range g.resources {
			most := resource.Amount(0)
			for _, f := range g.flavors {
				most = max(most, s.Available(q, s.frNumber(f, r)))
			}
			out[r] = min(out[r], most)
		}
	}
	return out
}

// Short reports whether a job needs more than its queue could be given at most, so
// that there is nothing to choose. It may miss that.
func Short(needs []Need, most []resource.Amount) bool {
	return slices.ContainsFunc(needs, func(n Need) bool { return n.Amount > most[n.Resource] })
}

// Borrowed is what a node holds beyond its subtree quota.
func (s *State) Borrowed(n, fr int32) resource.Amount {
	return max(0, s.usedAmount(n, fr).Sub(s.amountsAt(n, fr).subtree))
}

// Lent is what of a node's own quota others hold, at most: what it could lend and
// does not use, as far as the others of its parent hold more than they have.
func (s *State) Lent(n, fr int32) resource.Amount {
	p := s.nodes[n].parent
	if p == None {
		return 0
	}
	a := s.amountsAt(n, fr)
	idle := min(a.subtree.Sub(*s.usedAmount(n, fr)), a.subtree.Sub(a.guaranteed))
	var over resource.Amount
	for _, c := range s.nodes[p].children {
		if c != n {
			over = over.Add(s.Borrowed(c, fr))
		}
	}
	return max(0, min(idle, over))
}

// exceedsSubtree reports whether a node would hold more than its subtree quota.
func (s *State) exceedsSubtree(n, fr int32, more resource.Amount) bool {
	return s.usedAmount(n, fr).Add(more) > s.amountsAt(n, fr).subtree
}

// borrowLevel is how far away what a queue takes in addition comes from: 0 is its own
// quota, else the height of the smallest subtree that has it. inner reports whether
// that is not the whole tree, or there is a larger one to borrow from.
func (s *State) borrowLevel(n, fr int32, a resource.Amount) (height int32, inner bool) {
	p := s.nodes[n].parent
	if p == None || !s.exceedsSubtree(n, fr, a) {
		return 0, p != None
	}
	a = a.Sub(s.spareGuarantee(n, fr))
	for ; p != None; p = s.nodes[p].parent {
		if !s.exceedsSubtree(p, fr, a) {
			return s.nodes[p].height, s.nodes[p].parent != None
		}
		a = a.Sub(s.spareGuarantee(p, fr))
	}
	return s.nodes[s.nodes[n].root].height, false
}
