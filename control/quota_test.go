package control_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// TestFlavorsAreKept: in which flavour of a quota a job is counted outlives the
// server, also where the nodes do not tell it.
func TestFlavorsAreKept(t *testing.T) {
	b := open(t, newHand(1, 8))
	one := []account.ResourceQuota{{Name: "gpu", Nominal: 1000}}
	b.set(control.PolicyChange{Text: "quotas", Rules: &account.Policy{
		Flavors: []account.Flavor{{Name: "reserved"}, {Name: "spot"}},
		Accounts: []account.Account{{Name: "lab", Quota: &account.Quota{
			Flavors: []account.FlavorQuota{{Flavor: "reserved", Resources: one}, {Flavor: "spot", Resources: one}},
		}}},
	}})
	submit := func() job.ID {
		s := gang(1, 1)
		s.Account = "lab"
		return b.submit(s)
	}
	reserved, spot := submit(), submit()
	b.launched(reserved)
	b.launched(spot)
	third := submit()
	b.waits(third, reason.Quota)
	b.finish(reserved, 0)
	b.launched(third)
	b.reopen() // out of the journal
	fourth := submit()
	b.waits(fourth, reason.Quota)
	b.reopen() // out of the projection
	b.waits(fourth, reason.Quota)
	b.finish(spot, 0)
	b.launched(fourth)
}
