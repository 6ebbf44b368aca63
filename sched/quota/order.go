package quota

import "slices"

// Entry is the first job of a queue, with the flavours that it would get.
type Entry struct {
	Queue   int32
	Charges []Charge
	Level   int32 // Assignment.Level
}

// First says whose turn it is among the first jobs of the queues of one tree, one of
// each queue at most; -1 if there are none. before reports whether an entry is before
// another one by priority and time.
//
// In a fair tree it is a tournament from the leaves up: among the winners of a node's
// children goes first the one whose child borrows nothing of what it asks for, then
// the one whose child would have the smallest share with it, then the one before the
// others. In other trees those go first that take the least from afar.
func (s *State) First(entries []Entry, before func(i, j int) bool) int {
	if len(entries) == 0 {
		return -1
	}
	root := s.Root(entries[0].Queue)
	if s.nodes[root].rules.Fair {
		return s.winnerBelow(root, entries, before)
	}
	best := 0
	for i := range entries {
		if l := entries[i].Level; l < entries[best].Level || l == entries[best].Level && before(i, best) {
			best = i
		}
	}
	return best
}

// winnerBelow returns who wins below a node.
func (s *State) winnerBelow(n int32, entries []Entry, before func(i, j int) bool) int {
	if len(s.nodes[n].children) == 0 {
		return slices.IndexFunc(entries, func(e Entry) bool { return e.Queue == n })
	}
	best := -1
	var least contender
	for _, c := range s.nodes[n].children {
		i := s.winnerBelow(c, entries, before)
		if i < 0 {
			continue
		}
		x := s.contenderOf(c, &entries[i])
		if best < 0 || x.goesBefore(least) || !least.goesBefore(x) && before(i, best) {
			best, least = i, x
		}
	}
	return best
}

// contender is how a node would stand with a job.
type contender struct {
	borrows bool // of what the job takes
	share   Share
}

func (x contender) goesBefore(y contender) bool {
	if x.borrows != y.borrows {
		return !x.borrows
	}
	return x.share.Compare(y.share) < 0
}

// contenderOf says how a node would stand with a job of a queue below it.
func (s *State) contenderOf(n int32, e *Entry) contender {
	s.Add(e.Queue, e.Charges)
	defer s.Remove(e.Queue, e.Charges)
	x := contender{share: s.Share(n)}
	if s.nodes[n].parent != None {
		for _, c := range e.Charges {
			x.borrows = x.borrows || c.Amount > 0 && s.Borrowed(n, c.FR) > 0
		}
	}
	return x
}
