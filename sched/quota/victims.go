package quota

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Holder is a running job as the rules about victims see it.
type Holder struct {
	Queue    int32
	Charges  []Charge
	Priority int64 // larger goes first
	At       int64 // since when it is in the queue's order
	Since    int64 // since when it holds its charges
	Leaving  bool  // it is being stopped already
}

// Wish is a job that does not fit its queue's quota in the flavours it would get.
type Wish struct {
	Queue    int32
	Charges  []Charge
	Lacks    []int32 // FRs that are missing: Assignment.Lacks
	Priority int64
	At       int64
}

// Cause says by which right a victim is stopped.
type Cause uint8

// The causes.
const (
	InQueue          Cause = iota + 1 // the account lets its own jobs preempt each other
	Reclaim                           // it holds what the wish's account has a right to
	ReclaimBorrowing                  // so, although the wish's account borrows itself
	FairShare                         // its account's share is too large
)

// String is how reasons call the cause.
func (c Cause) String() string {
	return [...]string{"", "within the queue", "reclaimed", "reclaimed while borrowing", "fair sharing"}[c]
}

// Victim is a running job that is to be stopped.
type Victim struct {
	Holder int // index
	Cause  Cause
}

// Victims chooses which running jobs are stopped so that a wish fits, by the rules of
// its account and its tree; nil if there is no such set. No victim of the result
// could be spared. The order of running does not matter but among jobs that are alike
// to the rules.
//
// room reports whether the nodes have room for the wish once the holders with these
// indices are gone; nil: always. It is asked only where the quota has.
func (s *State) Victims(w Wish, running []Holder, room func(gone []int) bool) []Victim {
	v := &search{State: s.Clone(), wish: w, running: running, room: room}
	if s.Fair(w.Queue) {
		return v.fairVictims()
	}
	return v.classicVictims()
}

// Try is what Assign asks of the running jobs.
func (s *State) Try(w Wish, running []Holder) Try {
	return func(fr int32, a resource.Amount) (Mode, int32) {
		w.Charges, w.Lacks = []Charge{{fr, a}}, []int32{fr}
		victims := s.Victims(w, running, nil)
		if len(victims) == 0 {
			level, _ := s.borrowLevel(w.Queue, fr, a)
			return NoCandidates, level
		}
		after := s.Clone()
		mode := Reclaims
		for _, v := range victims {
			h := &running[v.Holder]
			after.Remove(h.Queue, h.Charges)
			if h.Queue == w.Queue {
				mode = Preempts
			}
		}
		level, _ := after.borrowLevel(w.Queue, fr, a)
		return mode, level
	}
}

// search is one choice of victims. It removes them from a copy of the state.
type search struct {
	*State
	wish    Wish
	running []Holder
	room    func([]int) bool
	gone    []Victim
}

func (v *search) takeVictim(c Victim) {
	h := &v.running[c.Holder]
	v.Remove(h.Queue, h.Charges)
	v.gone = append(v.gone, c)
}

// wishFits reports whether the wish fits what is left.
func (v *search) wishFits(borrowing bool) bool {
	for _, c := range v.wish.Charges {
		if !borrowing && v.usedAmount(v.wish.Queue, c.FR).Add(c.Amount) > v.Nominal(v.wish.Queue, c.FR) || c.Amount > v.Available(v.wish.Queue, c.FR) {
			return false
		}
	}
	if v.room == nil {
		return true
	}
	out := make([]int, len(v.gone))
	for i, x := range v.gone {
		out[i] = x.Holder
	}
	return v.room(out)
}

// spareSome puts back whom the wish does not need, the last chosen first.
func (v *search) spareSome(borrowing bool) []Victim {
	for i := len(v.gone) - 2; i >= 0; i-- {
		x := v.gone[i]
		h := &v.running[x.Holder]
		v.Add(h.Queue, h.Charges)
		kept := v.gone
		v.gone = slices.Delete(slices.Clone(v.gone), i, i+1)
		if !v.wishFits(borrowing) {
			v.Remove(h.Queue, h.Charges)
			v.gone = kept
		}
	}
	return v.gone
}

// policyAllows reports whether a policy lets a holder be stopped for the wish.
func (v *search) policyAllows(p account.Victims, h *Holder) bool {
	switch p {
	case account.AnyVictims:
		return true
	case account.LowerPriority:
		return h.Priority < v.wish.Priority
	case account.LowerOrNewer:
		return h.Priority < v.wish.Priority || h.Priority == v.wish.Priority && v.wish.At < h.At
	}
	return false
}

// holdsMissing reports whether a holder has anything of what is missing.
func (v *search) holdsMissing(h *Holder) bool {
	return slices.ContainsFunc(h.Charges, func(c Charge) bool { return slices.Contains(v.wish.Lacks, c.FR) })
}

// compareVictims of victims: those that are leaving anyway, others' jobs before the queue's
// own, the lowest priority, the one that began last.
func (v *search) compareVictims(a, b int) int {
	x, y := &v.running[a], &v.running[b]
	return cmp.Or(trueFirst(x.Leaving, y.Leaving), trueFirst(y.Queue == v.wish.Queue, x.Queue == v.wish.Queue),
		cmp.Compare(x.Priority, y.Priority), cmp.Compare(y.Since, x.Since), cmp.Compare(a, b))
}

// trueFirst puts those with a property first.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// withinQuota reports whether a node holds no more than its subtree quota of anything
// that is missing.
func (v *search) withinQuota(n int32) bool {
	return !slices.ContainsFunc(v.wish.Lacks, func(fr int32) bool { return v.exceedsSubtree(n, fr, 0) })
}
