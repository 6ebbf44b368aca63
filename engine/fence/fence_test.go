package fence_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fence"
)

func ref(allocation uint64, attempt uint32) engine.Ref {
	return engine.Ref{Allocation: allocation, Attempt: attempt}
}

// What was fenced stays fenced, whatever comes after it and however often it is
// saved and loaded; what has a larger number than everything fenced never is.
func TestNothingFencedIsLet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &fence.Set{Max: rapid.IntRange(1, 8).Draw(t, "max")}
		fenced, newest := map[engine.Ref]bool{}, uint64(0)
		for range rapid.IntRange(0, 60).Draw(t, "n") {
			r := ref(rapid.Uint64Range(1, 40).Draw(t, "allocation"), rapid.Uint32Range(1, 3).Draw(t, "attempt"))
			was := s.Has(r)
			if s.Add(r) == was {
				t.Fatalf("%s was fenced: %t, and adding it says the same", r, was)
			}
			fenced[r], newest = true, max(newest, r.Allocation)
			if rapid.IntRange(0, 5).Draw(t, "save") == 0 {
				s = again(t, s)
			}
		}
		for r := range fenced {
			if !s.Has(r) {
				t.Errorf("%s begins", r)
			}
		}
		if s.Has(ref(newest+1, 1)) {
			t.Errorf("allocation %d is fenced, the largest that was is %d", newest+1, newest)
		}
		if s.Empty() != (len(fenced) == 0) {
			t.Errorf("empty: %t, with %d", s.Empty(), len(fenced))
		}
	})
}

func again(t *rapid.T, s *fence.Set) *fence.Set {
	b, err := json.Marshal(s.Save())
	if err != nil {
		t.Fatal(err)
	}
	var v fence.Saved
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	out := &fence.Set{Max: s.Max}
	out.Load(v)
	return out
}

func TestASetIsBounded(t *testing.T) {
	var s fence.Set
	for n := range uint64(10 * fence.Limit) {
		s.Add(ref(n+1, 1))
		if n%1000 != 0 {
			continue
		}
		if got := len(s.Save().Refs); got > fence.Limit {
			t.Fatalf("%d are held by name", got)
		}
	}
	if !s.Has(ref(1, 1)) || !s.Has(ref(1, 9)) || s.Has(ref(10*fence.Limit, 2)) {
		t.Error("the floor is not where the oldest half was")
	}
}
