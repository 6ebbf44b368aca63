package account

import (
	"strings"
	"testing"
)

// TestHandoverIsChecked: rules that contradict themselves are found, each with its path and a remedy.
//
// Seen to fail for each case without its line of checkHandover or HandoverProblems.
func TestHandoverIsChecked(t *testing.T) {
	two := func(a, b HandoverPool) *Policy {
		a.Name, b.Name = "slurm", "kube"
		return &Policy{Handover: Handover{Pools: []HandoverPool{a, b}}}
	}
	minus := -1.0
	for _, c := range []struct {
		p    *Policy
		want string // "": nothing is wrong
	}{
		{two(HandoverPool{Min: 2, Max: 6, Exchange: []string{"kube"}}, HandoverPool{}), ""},
		{two(HandoverPool{Min: 3, Max: 2}, HandoverPool{}), "handover.pools[0].max: 2 is less than min, 3"},
		{two(HandoverPool{}, HandoverPool{Min: -1}), "handover.pools[1]: min and max are not negative"},
		{two(HandoverPool{Cost: -1}, HandoverPool{}), "handover.pools[0].cost: -1 is negative"},
		{two(HandoverPool{Weight: &minus}, HandoverPool{}), "handover.pools[0].weight: -1 is negative"},
		{two(HandoverPool{Exchange: []string{"cube"}}, HandoverPool{}), `handover.pools[0].exchange[0]: there is no pool "cube" here`},
		{two(HandoverPool{Exchange: []string{"slurm"}}, HandoverPool{}), "handover.pools[0].exchange[0]: slurm cannot exchange machines with itself"},
		{
			&Policy{Handover: Handover{Pools: []HandoverPool{{Name: "a", Exchange: []string{"b"}}, {Name: "b", Exchange: []string{"c"}}, {Name: "c"}}}},
			"handover.pools[0].exchange[0]: b does not exchange machines with a",
		},
		{&Policy{Handover: Handover{Pools: []HandoverPool{{Name: "a"}}}}, "handover.pools: a has no pool to exchange machines with"},
		{&Policy{Handover: Handover{Pools: []HandoverPool{{Name: "a"}, {Name: "a"}}}}, "handover.pools[1].name: a is there twice"},
		{&Policy{Handover: Handover{Pools: []HandoverPool{{Name: "a"}, {}}}}, "handover.pools[1].name: has no name"},
	} {
		checkProblem(t, c.p.Check(), c.want)
	}
	for _, c := range []struct {
		p    *Policy
		want string
	}{
		{two(HandoverPool{Min: 2}, HandoverPool{Min: 2}), ""},
		{two(HandoverPool{Min: 5}, HandoverPool{}), "handover.pools[0].min: 5 is more than the 4 machines that pool slurm could have"},
		{two(HandoverPool{Min: 3}, HandoverPool{Min: 2}), "handover.pools: the minimums are 5 machines together, and there are 4"},
		{&Policy{Handover: Handover{Pools: []HandoverPool{{Name: "slum"}, {Name: "kube"}}}}, `handover.pools[0].name: there is no pool "slum"`},
	} {
		checkProblem(t, c.p.HandoverProblems([]string{"slurm", "kube", "new"}, map[string]int{"slurm": 4, "kube": 4}, 4), c.want)
	}
	silent := &Policy{Handover: Handover{Pools: []HandoverPool{{Name: "new", Min: 100}, {Name: "kube", Min: 2}}}}
	checkProblem(t, silent.HandoverProblems([]string{"kube", "new"}, map[string]int{"kube": 4}, 4), "")
}

func checkProblem(t *testing.T, found []Problem, want string) {
	t.Helper()
	switch {
	case want == "" && len(found) > 0:
		t.Errorf("%+v: nothing is wrong", found)
	case want == "":
	case len(found) == 0:
		t.Errorf("nothing is found, want %s", want)
	default:
		for _, x := range found {
			if x.Remedy == "" {
				t.Errorf("%s: %s: has no remedy", x.Path, x.Message)
			}
		}
		if x := found[0]; !strings.HasPrefix(x.Path+": "+x.Message, want) {
			t.Errorf("%s: %s, want %s", x.Path, x.Message, want)
		}
	}
}

func TestExchanges(t *testing.T) {
	h := &Handover{Pools: []HandoverPool{{Name: "a"}, {Name: "b"}, {Name: "c", Exchange: []string{"a"}}}}
	for pair, want := range map[string]bool{"ab": true, "ba": true, "ac": true, "ca": true, "bc": false, "cb": false, "aa": false, "ax": false} {
		if got := h.Exchanges(pair[:1], pair[1:]); got != want {
			t.Errorf("%s: %v", pair, got)
		}
	}
}
