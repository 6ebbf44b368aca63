package sched_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched"
)

// TestWhoWaitsForOneThatIsLateIsNotAnAlarm: a job outstays its limit, and another one is
// planned node by node for the moment at which it ends. Nobody knows that moment: the core
// does not ask to be stepped again and again until it comes.
//
// Seen to fail with: every planned start an alarm.
func TestWhoWaitsForOneThatIsLateIsNotAnAlarm(t *testing.T) {
	at := func(seconds int) sched.Instant {
		return sched.Instant(time.Hour) + sched.Instant(seconds)*sched.Instant(time.Second)
	}
	c := sched.New(sched.Config{})
	c.Step(at(0), sched.PolicySet{Policy: &account.Policy{Backfill: account.Backfill{Reservations: 1}}}, sched.NodeSet{Node: node("n", 8)},
		sched.Restored{Job: 1, Spec: gang(1, 8, 1, 7*time.Second), Began: at(0), Until: at(7), Claims: []fleet.Claim{{Node: "n", Tasks: 1, Take: gang(1, 8, 1, 0).Groups[0].PerTask.Vector}}},
		sched.Submitted{Job: 2, Spec: gang(1, 8, 1, time.Minute), At: at(0)})
	if next := c.Next(); next != at(7) {
		t.Fatalf("the core wants to be stepped at %d, want %d", next, at(7))
	}
	c.Step(at(9), sched.Submitted{Job: 3, Spec: gang(1, 8, 1, time.Minute), Priority: 1, At: at(9)})
	if got := c.Planned(); len(got) == 0 || got[0].Job != 3 || got[0].At != at(9)+1 {
		t.Fatalf("job 3 is to be planned for at once: %+v", got)
	}
	if next := c.Next(); next > 0 && next < at(60) {
		t.Errorf("the core wants to be stepped %d ns later", next-at(9))
	}
}
