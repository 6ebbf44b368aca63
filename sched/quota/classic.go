package quota

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
)

// candidate is a holder that may be stopped, with the conditions of that.
type candidate struct {
	holder int
	cause  Cause
	meet   int32 // the lowest node above its queue and the wish's; None: the same queue
	shy    bool  // only if the wish's queue borrows nothing in the end
}

// classicVictims chooses victims by priority and position in the tree (Kueue's classical
// preemption): candidates are removed in order while they are still candidates, until
// the wish fits.
func (v *search) classicVictims() []Victim {
	right, priority, own := v.listCandidates()
	all := v.orderCandidates(right, priority, own)
	r := v.Rules(v.wish.Queue)
	forbidden := r.Borrowing == account.NoVictims
	var tries []bool // whether to borrow
	switch {
	case len(right)+len(priority) == 0, forbidden && !v.belowNominal():
		tries = []bool{true}
	case forbidden && len(right) == 0:
		tries = []bool{false, true}
	default:
		tries = []bool{true, false}
	}
	for _, borrowing := range tries {
		for _, c := range all {
			if !v.stillValid(c, borrowing) {
				continue
			}
			v.takeVictim(Victim{c.holder, c.cause})
			if v.wishFits(borrowing) {
				return v.spareSome(borrowing)
			}
		}
		for _, x := range v.gone {
			h := &v.running[x.Holder]
			v.Add(h.Queue, h.Charges)
		}
		v.gone = nil
	}
	return nil
}

// orderCandidates puts candidates in the order in which they are taken: those that are leaving,
// then the rest, and in each those over whom the wish has a better right, those by
// priority, and those of the same queue.
func (v *search) orderCandidates(lists ...[]candidate) []candidate {
	var leaving, rest []candidate
	for _, l := range lists {
		slices.SortFunc(l, func(a, b candidate) int { return v.compareVictims(a.holder, b.holder) })
		for _, c := range l {
			if v.running[c.holder].Leaving {
				leaving = append(leaving, c)
			} else {
				rest = append(rest, c)
			}
		}
	}
	return append(leaving, rest...)
}

// belowNominal reports whether the wish's queue holds less than its nominal amount of
// everything that is missing.
func (v *search) belowNominal() bool {
	return !slices.ContainsFunc(v.wish.Lacks, func(fr int32) bool {
		return v.Nominal(v.wish.Queue, fr) <= v.Used(v.wish.Queue, fr)
	})
}

// stillValid reports whether a candidate may still be stopped after others were.
func (v *search) stillValid(c candidate, borrowing bool) bool {
	if c.meet == None {
		return true
	}
	if borrowing && c.shy {
		return false
	}
	for n := v.running[c.holder].Queue; n != c.meet; n = v.nodes[n].parent {
		if v.withinQuota(n) {
			return false
		}
	}
	return true
}

// listCandidates lists who may be stopped: those over whom the wish has a better right,
// because its request fits the quota of a subtree that they are outside of, those of
// other queues for their priority, and those of the same queue.
func (v *search) listCandidates() (right, priority, own []candidate) {
	q := v.wish.Queue
	r := v.Rules(q)
	byQueue := map[int32][]int{}
	for i := range v.running {
		if h := &v.running[i]; v.holdsMissing(h) {
			byQueue[h.Queue] = append(byQueue[h.Queue], i)
		}
	}
	for _, i := range byQueue[q] {
		if v.policyAllows(r.Within, &v.running[i]) {
			own = append(own, candidate{i, InQueue, None, false})
		}
	}
	if r.Reclaim == account.NoVictims {
		return nil, nil, own
	}
	better, rest := v.fitsSubtree(q, v.wish.Charges)
	skip := q
	for n := v.nodes[q].parent; n != None; n = v.nodes[n].parent {
		v.eachBorrowingQueue(n, skip, func(queue int32) {
			for _, i := range byQueue[queue] {
				if !v.policyAllows(r.Reclaim, &v.running[i]) {
					continue
				}
				c := candidate{i, Reclaim, n, false}
				if better {
					right = append(right, c)
					continue
				}
				if c.shy = v.needsNoBorrow(r, &v.running[i]); !c.shy {
					c.cause = ReclaimBorrowing
				}
				priority = append(priority, c)
			}
		})
		var fits bool
		fits, rest = v.fitsSubtree(n, rest)
		better, skip = better || fits, n
	}
	return right, priority, own
}

// needsNoBorrow reports whether a holder of another queue is stopped only for a wish that does
// not borrow.
func (v *search) needsNoBorrow(r *account.Quota, h *Holder) bool {
	return r.Borrowing == account.NoVictims || h.Priority >= v.wish.Priority ||
		r.MaxPriority != nil && h.Priority > *r.MaxPriority
}

// eachBorrowingQueue calls f with the queues below a node, but for those below skip and those of
// subtrees that hold no more than they have.
func (v *search) eachBorrowingQueue(n, skip int32, f func(queue int32)) {
	for _, c := range v.nodes[n].children {
		if c != skip && !v.withinQuota(c) {
			f(c)
			v.eachBorrowingQueue(c, skip, f)
		}
	}
}

// fitsSubtree reports whether a node has room for charges in its subtree quota, and
// what of them goes beyond its guarantee.
func (v *search) fitsSubtree(n int32, charges []Charge) (bool, []Charge) {
	fits := true
	rest := make([]Charge, len(charges))
	for i, c := range charges {
		fits = fits && !v.exceedsSubtree(n, c.FR, c.Amount)
		rest[i] = Charge{c.FR, max(0, c.Amount.Sub(v.spareGuarantee(n, c.FR)))}
	}
	return fits, rest
}
