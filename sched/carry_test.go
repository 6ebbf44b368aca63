package sched_test

import (
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// TestAReservationKeepsOtherPromises: when one is set, jobs whose promised nodes and
// time it does not touch keep their promises; the one that it meets gets another, which
// does not meet it. Without others (K = 0), and with two more jobs that were promised.
//
// n1 to n4 are in use until 1, 2, 3 and 4 hours; each job wants one whole node for an hour.
func TestAReservationKeepsOtherPromises(t *testing.T) {
	for _, k := range []int{0, 2} {
		c := sched.New(sched.Config{})
		now, _ := clock(0)
		policy := func(list ...account.Reservation) sched.Event {
			return sched.PolicySet{Policy: &account.Policy{Backfill: account.Backfill{Reservations: k}, Reservations: list}}
		}
		events := []sched.Event{policy()}
		for i, name := range []string{"n1", "n2", "n3", "n4"} {
			until, _ := clock(float64(i + 1))
			var devices []fleet.DeviceClaim
			for d := range 8 {
				devices = append(devices, fleet.DeviceClaim{Index: d, Share: 1000})
			}
			events = append(events, sched.NodeSet{Node: node(name, 8)}, sched.Restored{
				Job: job.ID(i + 1), Spec: gang(1, 1, 8, time.Hour), Until: until, Began: now,
				Claims: []fleet.Claim{{Node: name, Tasks: 1, Devices: devices}},
			})
		}
		for id := job.ID(11); id <= 13; id++ {
			events = append(events, sched.Submitted{Job: id, Spec: gang(1, 1, 8, time.Hour)})
		}
		promised := map[job.ID]sched.Promise{}
		step := func(at sched.Instant, events ...sched.Event) (changed []job.ID) {
			for _, d := range c.Step(at, events...) {
				if p, ok := d.(sched.Promise); ok {
					promised[p.Job] = p
					changed = append(changed, p.Job)
				}
			}
			slices.Sort(changed)
			return changed
		}
		step(now, events...)
		head := promised[11]
		if one, _ := clock(1); head.At != one || !slices.Equal(head.Nodes, []string{"n1"}) {
			t.Fatalf("K %d: the head was promised %+v", k, head)
		}
		// Far away in time: it touches nobody.
		if changed := step(now+1, policy(hold("far", 20, 1, "n1"))); slices.Contains(changed, 11) || k > 0 && len(changed) > 0 {
			t.Errorf("K %d: a reservation that meets nobody changed the promises of %v", k, changed)
		}
		// On the head's node and time: its start is another one, and does not meet it.
		step(now+2, policy(hold("near", 1.5, 1, "n1")))
		got, p := promised[11], promised[11]
		if two, _ := clock(2); p.At != two || !slices.Equal(p.Nodes, []string{"n2"}) {
			t.Errorf("K %d: the head is promised %+v now", k, got)
		}
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestAPromiseOutlivesOtherRules: a promise that would not be made again as it is, and
// which can be kept, is kept when rules are set that say nothing of it.
//
// Job 11 is promised n1 for one o'clock, for six hours, job 12 the a100 of n2 for two.
// Then n2 is to become free at half past twelve: job 12 is moved there, and job 11 stays,
// for it would be in the way. Planned anew from nothing, job 11 would take n2 first.
//
// Seen to fail where what is planned is forgotten with the old rules.
func TestAPromiseOutlivesOtherRules(t *testing.T) {
	c := sched.New(sched.Config{})
	now, _ := clock(0)
	half, _ := clock(0.5)
	one, _ := clock(1)
	two, _ := clock(2)
	whole := func(name string) []fleet.Claim {
		return []fleet.Claim{{Node: name, Tasks: 1, Devices: []fleet.DeviceClaim{{Index: 0, Share: 1000}}}}
	}
	rules := func(note string) sched.Event {
		return sched.PolicySet{Policy: &account.Policy{Backfill: account.Backfill{Reservations: 3}, Accounts: []account.Account{{Name: "a", Note: note}}}}
	}
	other := node("n2", 1)
	other.Devices[0].Type = "a100"
	typed := gang(1, 1, 1, time.Hour)
	typed.Groups[0].PerTask.Devices[0].Type = "a100"
	promised := map[job.ID]sched.Promise{}
	step := func(at sched.Instant, events ...sched.Event) (n int) {
		for _, d := range c.Step(at, events...) {
			if p, ok := d.(sched.Promise); ok {
				promised[p.Job] = p
				n++
			}
		}
		return n
	}
	step(now, rules("x"), sched.NodeSet{Node: node("n1", 1)}, sched.NodeSet{Node: other},
		sched.Restored{Job: 1, Spec: gang(1, 1, 1, time.Hour), Until: one, Began: now, Claims: whole("n1")},
		sched.Restored{Job: 2, Spec: gang(1, 1, 1, 2*time.Hour), Until: two, Began: now, Claims: whole("n2")},
		sched.Submitted{Job: 11, Spec: gang(1, 1, 1, 6*time.Hour)}, sched.Submitted{Job: 12, Spec: typed})
	step(now+1, sched.Extended{Job: 2, Until: half})
	if promised[11].At != one || promised[12].At != half {
		t.Fatalf("promised are %+v", promised)
	}
	for i := range 3 {
		if n := step(now+sched.Instant(i+2), rules("y"), rules("z")); n > 0 {
			t.Errorf("rules that say the same of everybody changed promises: %+v", promised)
		}
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
