package sched_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// TestHoldings: what is shown of a cohort in which one account borrows what another
// does not use, as jobs come, wait and end.
//
// Seen to fail with: waiting jobs counted once a class, the nominal amount of an account
// with others below it left at its own queue.
func TestHoldings(t *testing.T) {
	quota := func(gpus int) *account.Quota {
		return &account.Quota{Flavors: []account.FlavorQuota{{Flavor: "any", Resources: []account.ResourceQuota{{Name: "gpu", Nominal: resource.Amount(1000 * gpus)}}}}}
	}
	c := sched.New(sched.Config{})
	c.Step(1, sched.NodeSet{Node: node("a", 8)}, sched.PolicySet{Policy: &account.Policy{
		Flavors: []account.Flavor{{Name: "any"}},
		Accounts: []account.Account{
			{Name: "lab", Quota: quota(2)}, {Name: "bio", Parent: "lab", Quota: quota(4)}, {Name: "nlp", Parent: "lab", Quota: quota(2)},
		},
	}})
	of := func(name string) *job.Spec {
		s := gang(1, 1, 1, time.Hour)
		s.Account = name
		return s
	}
	events := []sched.Event{sched.Submitted{Job: 1, Spec: of("bio")}}
	for id := job.ID(2); id <= 10; id++ { // 7 of them start: it may borrow all but what bio uses
		events = append(events, sched.Submitted{Job: id, Spec: of("nlp")})
	}
	c.Step(2, events...)
	expect := func(account string, own bool, nominal, held, borrowed, lent, pending, running, waiting int) {
		t.Helper()
		for _, h := range c.QuotaUsage() {
			if h.Account != account || h.Own != own {
				continue
			}
			a := sched.HoldingAmount{}
			if len(h.Amounts) > 0 {
				a = h.Amounts[0]
			}
			got := [7]int{int(a.Nominal / 1000), int(a.Held / 1000), int(a.Borrowed / 1000), int(a.Lent / 1000), int(a.Pending / 1000), h.Running, h.Pending}
			if want := [7]int{nominal, held, borrowed, lent, pending, running, waiting}; got != want {
				t.Errorf("%s: nominal, held, borrowed, lent, pending, jobs that run and wait are %v, want %v", account, got, want)
			}
			return
		}
		t.Errorf("%s is not there", account)
	}
	expect("lab", false, 2, 8, 0, 0, 2, 8, 2)
	expect("lab", true, 2, 0, 0, 2, 0, 0, 0)
	expect("bio", false, 4, 1, 0, 3, 0, 1, 0)
	expect("nlp", false, 2, 7, 5, 0, 2, 7, 2)
	c.Step(3, sched.Released{Job: 2}, sched.Released{Job: 3}, sched.Released{Job: 4})
	expect("nlp", false, 2, 6, 4, 0, 0, 6, 0)
	for _, h := range c.QuotaUsage() {
		if h.Account == "nlp" && (h.Dominant != "gpu" || h.Share.PerMille() != 500) {
			t.Errorf("nlp borrows 4 of 8: its share is %d thousandths of %q", h.Share.PerMille(), h.Dominant)
		}
	}
}
