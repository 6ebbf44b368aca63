// Package fence remembers the attempts that must never begin: those that a Stop did
// not find, and those that were forgotten. A launch of one may still be on its way,
// and what it would run on has been given to others since.
//
// A Set is bounded. It holds the attempts of the largest allocations by name; of
// smaller ones it knows a floor, below which every attempt counts as fenced. An
// allocation's number is never used again and they are given out ascending, so the
// floor is met by old attempts alone. One that the engine holds, or has not heard of
// for thousands of allocations, must be looked up before the Set is asked, or is
// refused, which is safe: its caller hears of it and frees it with a proof.
//
// It is not durable and not safe for concurrent use: a driver keeps it where it keeps
// its own state, under its own lock.
package fence

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/engine"
)

// Limit is how many attempts a Set holds by name, if it does not say itself.
const Limit = 4096

// Set is a set of attempts. The zero value is empty.
type Set struct {
	Max int // attempts held by name; 0: Limit

	floor uint64 // allocations below it are fenced
	refs  map[engine.Ref]bool
}

// Has reports whether an attempt must not begin.
func (s *Set) Has(ref engine.Ref) bool { return ref.Allocation < s.floor || s.refs[ref] }

// Add fences an attempt. It reports whether that is new.
func (s *Set) Add(ref engine.Ref) bool {
	if s.Has(ref) {
		return false
	}
	if s.refs == nil {
		s.refs = map[engine.Ref]bool{}
	}
	s.refs[ref] = true
	if len(s.refs) > cmp.Or(s.Max, Limit) {
		s.raise()
	}
	return true
}

// raise lets the floor take the place of the smaller half.
func (s *Set) raise() {
	all := s.sorted()
	s.floor = all[(len(all)-1)/2].Allocation + 1
	for _, ref := range all {
		if ref.Allocation < s.floor {
			delete(s.refs, ref)
		}
	}
}

func (s *Set) sorted() []engine.Ref {
	all := make([]engine.Ref, 0, len(s.refs))
	for ref := range s.refs {
		all = append(all, ref)
	}
	slices.SortFunc(all, func(a, b engine.Ref) int {
		return cmp.Or(cmp.Compare(a.Allocation, b.Allocation), cmp.Compare(a.Attempt, b.Attempt))
	})
	return all
}

// Saved is a Set as it is written down.
type Saved struct {
	Floor uint64       `json:"floor,omitempty"`
	Refs  []engine.Ref `json:"refs,omitempty"` // ascending
}

// Save returns what Load makes the same Set of.
func (s *Set) Save() Saved { return Saved{s.floor, s.sorted()} }

// Empty reports whether nothing is fenced.
func (s *Set) Empty() bool { return s.floor == 0 && len(s.refs) == 0 }

// Load adds what was saved.
func (s *Set) Load(v Saved) {
	s.floor = max(s.floor, v.Floor)
	for _, ref := range v.Refs {
		s.Add(ref)
	}
}
