package quota_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// TestTheOrderOfATree: what the root says holds below it, also below an account that has
// no quota of its own, until an account says something else.
func TestTheOrderOfATree(t *testing.T) {
	gpus := func(order account.QueueOrder) *account.Quota {
		return &account.Quota{Order: order, Flavors: []account.FlavorQuota{{Flavor: "f", Resources: []account.ResourceQuota{{Name: "gpu", Nominal: 1}}}}}
	}
	p := &account.Policy{Flavors: []account.Flavor{{Name: "f"}}, Accounts: []account.Account{
		{Name: "root-a", Quota: &account.Quota{Order: account.Strict}},
		{Name: "team", Parent: "root-a", Quota: gpus("")},
		{Name: "between", Parent: "root-a"},
		{Name: "below", Parent: "between", Quota: gpus("")},
		{Name: "loose", Parent: "root-a", Quota: gpus(account.BestEffort)},
		{Name: "under-loose", Parent: "loose", Quota: gpus("")},
		{Name: "root-b", Quota: gpus("")},
		{Name: "own", Parent: "root-b", Quota: gpus(account.Strict)},
	}}
	tree, err := quota.New(p)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"root-a": true, "team": true, "below": true, "loose": false, "under-loose": false, "root-b": false, "own": true} {
		if got := tree.Strict(tree.Find(name)); got != want {
			t.Errorf("%s is strict: %v, want %v", name, got, want)
		}
	}
}
