package fleet_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

func TestByNode(t *testing.T) {
	b := fleet.NewByNode[int]()
	a1, b1, b2 := fleet.NodeKey{Pool: "a", Name: "n1"}, fleet.NodeKey{Pool: "b", Name: "n1"}, fleet.NodeKey{Pool: "b", Name: "n2"}
	for i, k := range []fleet.NodeKey{b1, b2, a1, b1} {
		b.Set(k, i)
	}
	if v, ok := b.Get(b1); v != 3 || !ok || b.Len() != 3 || !slices.Equal(b.Keys(), []fleet.NodeKey{a1, b1, b2}) || !slices.Equal(b.Pools("n1"), []string{"a", "b"}) {
		t.Errorf("n1 of b is %d, %v; %v", v, ok, b.Keys())
	}
	for k, want := range map[fleet.NodeKey]fleet.NodeKey{b1: b1, {Name: "n2"}: b2, {Pool: "gone", Name: "n2"}: b2, {Name: "n1"}: {}, {Pool: "gone", Name: "n1"}: {}, {Name: "n3"}: {}} {
		if got, ok := b.Find(k); ok != (want.Name != "") || ok && got != want {
			t.Errorf("%s means %s, %v; want %s", k, got, ok, want)
		}
	}
	for text, want := range map[string]fleet.NodeKey{"a/n1": a1, "n2": b2, "b/n2": b2} {
		if got, err := b.Named(text); err != nil || got != want {
			t.Errorf("%s names %s, %v; want %s", text, got, err, want)
		}
	}
	if _, err := b.Named("n1"); fault.KindOf(err) != fault.Invalid || err.Error() != "node n1 is in 2 pools: a, b" || fault.Remedy(err) != "name its pool too: a/n1" {
		t.Errorf("n1: %v; %s", err, fault.Remedy(err))
	}
	for _, text := range []string{"n3", "a/n2", "c/n1"} {
		if _, err := b.Named(text); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", text, err)
		}
	}
	b.Delete(a1)
	b.Delete(a1)
	if got, ok := b.Find(a1); ok {
		t.Errorf("n1 of a, which was there beside n1 of b, means %s", got)
	}
	if got, err := b.Named("n1"); got != b1 || err != nil {
		t.Errorf("n1, which b alone has, is %s: %v", got, err)
	}
}

// TestNodeKeyInJSON: a key is written with its pool, and read without.
func TestNodeKeyInJSON(t *testing.T) {
	b, err := json.Marshal(map[fleet.NodeKey]int{{Pool: "a", Name: "n1"}: 1, {Name: "n1"}: 2})
	if want := `{"a/n1":1,"n1":2}`; err != nil || string(b) != want {
		t.Errorf("%s, %v; want %s", b, err, want)
	}
	var m map[fleet.NodeKey]int
	if err := json.Unmarshal(b, &m); err != nil || len(m) != 2 || m[fleet.NodeKey{Pool: "a", Name: "n1"}] != 1 || m[fleet.NodeKey{Name: "n1"}] != 2 {
		t.Errorf("%v, %v", m, err)
	}
}

func TestInPool(t *testing.T) {
	of := []fleet.Claim{{Node: "n1", Pool: "a"}, {Node: "n2"}}
	in := fleet.InPool("a", of)
	if in[0].Pool != "a" || in[1].Pool != "a" || of[1].Pool != "" {
		t.Errorf("%v, of %v", in, of)
	}
	if again := fleet.InPool("a", in); &again[0] != &in[0] {
		t.Error("claims that have the pool are copied")
	}
}
