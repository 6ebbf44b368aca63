package control_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// TestLicencesAreKept: which of the licences that would do a job has is shown, and
// outlives the server.
//
// Seen to fail with: License left out of the allocation that is journaled. That it is left
// out of the row TestSweepOfTheJournal finds.
func TestLicencesAreKept(t *testing.T) {
	b := open(t, newHand(1, 8))
	b.set(control.PolicyChange{Text: "licences", Rules: &account.Policy{Licenses: []account.License{{Name: "a", Count: 1}, {Name: "b", Count: 1}}}})
	submit := func() job.ID {
		s := gang(1, 1)
		s.Licenses = "a|b"
		return b.submit(s)
	}
	first, second := submit(), submit()
	b.launched(first)
	b.launched(second)
	has := func(id job.ID, want string) {
		t.Helper()
		b.until(id, "has licence "+want, func(v state.View) bool { return v.Job.Spec.Licenses == want })
	}
	has(second, "b")
	b.finish(first, 0)
	b.reopen() // out of the journal
	has(second, "b")
	third := submit()
	b.launched(third)
	has(third, "a")
	b.reopen() // out of the projection
	has(second, "b")
	fourth := submit()
	b.waits(fourth, reason.Licenses)
	has(fourth, "a|b")
	b.finish(second, 0)
	b.launched(fourth)
	has(fourth, "b")
}
