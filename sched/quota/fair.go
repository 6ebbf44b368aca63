package quota

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
)

// fairVictims chooses victims by shares (Kueue's fair sharing): again and again from the
// queue with the largest share, as long as the strategies of the tree allow it.
func (v *search) fairVictims() []Victim {
	candidates := v.listBorrowers()
	if len(candidates) == 0 {
		return nil
	}
	strategies := v.nodes[v.Root(v.wish.Queue)].rules.Strategies
	if len(strategies) == 0 {
		strategies = []account.Strategy{account.FinalShare, account.InitialShare}
	}
	v.Add(v.wish.Queue, v.wish.Charges) // shares are looked at with the wish
	fits, left := v.strategyFirst(candidates, strategies[0])
	if !fits && len(strategies) > 1 {
		fits = v.strategySecond(left)
	}
	if !fits {
		return nil
	}
	v.Remove(v.wish.Queue, v.wish.Charges)
	return v.spareSome(true)
}

// listBorrowers lists who may be stopped, in order: jobs of the queue itself, and those
// of others that borrow what is missing.
func (v *search) listBorrowers() []int {
	var out []int
	r := v.Rules(v.wish.Queue)
	root := v.Root(v.wish.Queue)
	for i := range v.running {
		h := &v.running[i]
		policy := r.Within
		if h.Queue != v.wish.Queue {
			policy = r.Reclaim
			if v.Root(h.Queue) != root || v.withinQuota(h.Queue) {
				continue
			}
		}
		if v.policyAllows(policy, h) && v.holdsMissing(h) {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, v.compareVictims)
	return out
}

// strategyFirst is rule S2-a, or S2-b where that is the only one. It returns those that it
// left alone.
func (v *search) strategyFirst(candidates []int, strategy account.Strategy) (fits bool, left []int) {
	q := v.candidateQueues(candidates)
	entitled := v.borrowsNothing()
	for n := q.next(); n != None; n = q.next() {
		if n == v.wish.Queue || entitled {
			cause := InQueue
			if n != v.wish.Queue {
				cause = Reclaim
			}
			v.takeVictim(Victim{q.pop(n), cause})
			if v.fairFits() {
				return true, nil
			}
			continue
		}
		mine, theirs := v.nodesBelowCommon(n)
		new, old := v.Share(mine), v.Share(theirs)
		for len(q.of[n]) > 0 {
			i := q.pop(n)
			if !v.strategyAllows(strategy, new, old, i, theirs) {
				left = append(left, i)
				continue
			}
			v.takeVictim(Victim{i, FairShare})
			if v.fairFits() {
				return true, nil
			}
			break // shares have changed: it may be another queue's turn
		}
	}
	return false, left
}

// strategyAllows reports whether a strategy lets a holder be stopped.
func (v *search) strategyAllows(strategy account.Strategy, new, old Share, i int, theirs int32) bool {
	if strategy == account.InitialShare {
		return new.Compare(old) < 0
	}
	h := &v.running[i]
	v.Remove(h.Queue, h.Charges)
	final := v.Share(theirs)
	v.Add(h.Queue, h.Charges)
	return new.Compare(final) <= 0
}

// strategySecond is rule S2-b on those that S2-a left alone: at most one of each queue.
func (v *search) strategySecond(candidates []int) bool {
	q := v.candidateQueues(candidates)
	for n := q.next(); n != None; n = q.next() {
		mine, theirs := v.nodesBelowCommon(n)
		if i := q.pop(n); v.Share(mine).Compare(v.Share(theirs)) < 0 {
			v.takeVictim(Victim{i, FairShare})
			if v.fairFits() {
				return true
			}
		}
		q.dropQueue(n)
	}
	return false
}

func (v *search) fairFits() bool {
	v.Remove(v.wish.Queue, v.wish.Charges)
	defer v.Add(v.wish.Queue, v.wish.Charges)
	return v.wishFits(true)
}

// borrowsNothing reports whether the wish's queue borrows nothing of what is missing, the
// wish counted.
func (v *search) borrowsNothing() bool {
	return !slices.ContainsFunc(v.wish.Lacks, func(fr int32) bool {
		return v.Used(v.wish.Queue, fr) > v.Nominal(v.wish.Queue, fr)
	})
}

// nodesBelowCommon returns the nodes just below the lowest one above both the wish's queue and
// another: their shares are what is compared.
func (v *search) nodesBelowCommon(n int32) (mine, theirs int32) {
	theirs = n
	for ; theirs != None; theirs = v.nodes[theirs].parent {
		for mine = v.wish.Queue; mine != None; mine = v.nodes[mine].parent {
			if v.nodes[mine].parent == v.nodes[theirs].parent {
				return mine, theirs
			}
		}
	}
	return v.wish.Queue, n // of two trees: does not happen
}

// queues gives the queues of candidates one after the other: the one with the largest
// share first, from the root down.
type queues struct {
	*search
	of     map[int32][]int // candidates, in order
	closed []bool          // by node: it has none any more, or borrows nothing
	path   map[int32]bool  // the nodes above the wish's queue
}

func (v *search) candidateQueues(candidates []int) *queues {
	q := &queues{search: v, of: map[int32][]int{}, closed: make([]bool, v.Len()), path: map[int32]bool{}}
	for _, i := range candidates {
		n := v.running[i].Queue
		q.of[n] = append(q.of[n], i)
	}
	for n := v.nodes[v.wish.Queue].parent; n != None; n = v.nodes[n].parent {
		q.path[n] = true
	}
	return q
}

func (q *queues) pop(n int32) int {
	i := q.of[n][0]
	q.of[n] = q.of[n][1:]
	return i
}

func (q *queues) dropQueue(n int32) { q.of[n] = nil }

// next is the queue whose turn it is; None: no one's any more.
func (q *queues) next() int32 {
	root := q.Root(q.wish.Queue)
	if len(q.nodes[root].children) == 0 { // a queue alone
		if len(q.of[root]) == 0 {
			return None
		}
		return root
	}
	for !q.closed[root] {
		if n := q.descendFrom(root); n != None {
			return n
		}
	}
	return None
}

// descendFrom looks for the queue below a node: at a tie the one whose first candidate is
// before the other's, and a cohort before a queue. It returns None where it only
// closed nodes.
func (q *queues) descendFrom(n int32) int32 {
	queue, cohort := None, None
	var ofQueue, ofCohort Share
	for _, c := range q.nodes[n].children {
		if q.closed[c] {
			continue
		}
		x := q.Share(c)
		if q.nodes[c].height > 0 {
			switch {
			case !x.Borrowing && !q.path[c]:
				q.closed[c] = true
			case cohort == None || x.Compare(ofCohort) >= 0:
				cohort, ofCohort = c, x
			}
			continue
		}
		switch {
		case !x.Borrowing && c != q.wish.Queue, len(q.of[c]) == 0:
			q.closed[c] = true
		case queue == None || x.Compare(ofQueue) > 0 || x.Compare(ofQueue) == 0 && q.compareVictims(q.of[c][0], q.of[queue][0]) < 0:
			queue, ofQueue = c, x
		}
	}
	switch {
	case cohort == None && queue == None:
		q.closed[n] = true
		return None
	case cohort != None && (queue == None || ofCohort.Compare(ofQueue) >= 0):
		return q.descendFrom(cohort)
	}
	return queue
}
