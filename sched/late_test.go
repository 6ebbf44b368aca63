package sched_test

import (
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// This file is about jobs that nobody looked at again, or that were looked at as what
// they were before. Each test was seen to fail with its mend left out.

// withCPUs is a node that is up.
func withCPUs(name string, cpus int, features ...string) sched.Event {
	return sched.NodeSet{Node: fleet.Node{Name: name, State: fleet.Up, Features: features, Capacity: resource.Vector{CPU: resource.CPUs(cpus)}}}
}

// groups is a job of one task in each of some groups, which has so many CPUs.
func groups(limit time.Duration, cpus ...int) *job.Spec {
	s := &job.Spec{TimeLimit: limit, Requeue: true}
	for _, n := range cpus {
		g := job.TaskGroup{Tasks: job.Count{Want: 1}}
		g.PerTask.CPU = resource.CPUs(n)
		s.Groups = append(s.Groups, g)
	}
	return s
}

// onOne is where one task runs.
func onOne(node string, cpus int) []fleet.Claim {
	return []fleet.Claim{{Node: node, Tasks: 1, Take: resource.Vector{CPU: resource.CPUs(cpus)}}}
}

// startsOf lists the jobs that start.
func startsOf(out []sched.Decision) (ids []job.ID) {
	for _, d := range out {
		if d, ok := d.(sched.Start); ok {
			ids = append(ids, d.Job)
		}
	}
	return ids
}

// TestAChangedHeadIsPlannedAnew: what was reserved for the first job is not given to it
// when it asks for something else by then.
func TestAChangedHeadIsPlannedAnew(t *testing.T) {
	const second = sched.Instant(time.Second)
	c := sched.New(sched.Config{})
	c.Step(100*second, withCPUs("n1", 2), withCPUs("n2", 2),
		sched.Restored{Job: 1, Spec: groups(10*time.Second, 2), Claims: onOne("n1", 2), Until: 110 * second, Began: 100 * second},
		sched.Restored{Job: 2, Spec: groups(0, 2), Claims: onOne("n2", 2), Began: 100 * second},
		sched.Submitted{Job: 3, Spec: groups(0, 1, 1), At: 100 * second})
	out := c.Step(101*second, sched.Submitted{Job: 3, Spec: groups(0, 2, 2), At: 100 * second}, sched.Released{Job: 1})
	if ids := startsOf(out); len(ids) > 0 {
		t.Fatalf("%v start: %+v", ids, out)
	}
	if ids := startsOf(c.Step(102*second, sched.Released{Job: 2})); !slices.Equal(ids, []job.ID{3}) {
		t.Errorf("%v start when all is free, want job 3", ids)
	}
}

// TestAFlavorWithRoomIsNotForgotten: a job that is in the way of the first one where it
// has room, and has no room in another flavour, starts when another one is the first,
// which leaves it that room.
func TestAFlavorWithRoomIsNotForgotten(t *testing.T) {
	const second = sched.Instant(time.Second)
	cpu := func(flavor string) account.FlavorQuota {
		return account.FlavorQuota{Flavor: flavor, Resources: []account.ResourceQuota{{Name: "cpu", Nominal: resource.CPUs(4)}}}
	}
	p := &account.Policy{
		Flavors:  []account.Flavor{{Name: "fast", Features: []string{"x"}}, {Name: "any"}},
		Accounts: []account.Account{{Name: "q", Quota: &account.Quota{Flavors: []account.FlavorQuota{cpu("fast"), cpu("any")}}}},
	}
	one := groups(20*time.Second, 1)
	one.Account = "q"
	c := sched.New(sched.Config{})
	out := c.Step(100*second, sched.PolicySet{Policy: p}, withCPUs("n1", 2, "x"), withCPUs("n2", 1),
		sched.Restored{Job: 1, Spec: groups(10*time.Second, 2), Claims: onOne("n1", 2), Until: 110 * second, Began: 100 * second},
		sched.Submitted{Job: 2, Spec: groups(0, 2, 1), At: 100 * second},
		sched.Submitted{Job: 3, Spec: one, At: 100 * second})
	if ids := startsOf(out); len(ids) > 0 {
		t.Fatalf("%v start, and are in the way of job 2", ids)
	}
	if ids := startsOf(c.Step(101*second, sched.Submitted{Job: 4, Spec: groups(0, 2), At: 101 * second, Priority: 1})); !slices.Equal(ids, []job.ID{3}) {
		t.Errorf("%v start, want job 3 on n2", ids)
	}
}

// TestWhatGoesAnywayCounts: a job takes back what was lent as soon as that is enough with
// what somebody has asked to end, on sites without preemption too.
func TestWhatGoesAnywayCounts(t *testing.T) {
	const second = sched.Instant(time.Second)
	grows := groups(0, 1)
	grows.Groups[0].Nodes, grows.Groups[0].Tasks, grows.Groups[0].Elastic = job.Range{Min: 1, Max: 2}, job.Count{}, true
	c := sched.New(sched.Config{})
	c.Step(100*second, withCPUs("n1", 1), withCPUs("n2", 1), withCPUs("n3", 1),
		sched.Restored{Job: 1, Spec: grows, Claims: onOne("n1", 1), Began: 100 * second, Begun: true},
		sched.Added{Job: 1, Claims: onOne("n2", 1), Began: 100 * second},
		sched.Restored{Job: 2, Spec: groups(0, 1), Claims: onOne("n3", 1), Began: 100 * second},
		sched.Submitted{Job: 3, Spec: spread(2), At: 100 * second})
	out := c.Step(101*second, sched.Stopping{Job: 2})
	if !slices.ContainsFunc(out, func(d sched.Decision) bool { x, ok := d.(sched.Shrink); return ok && x.Job == 1 && x.For == 3 }) {
		t.Errorf("nothing is taken back for job 3: %+v", out)
	}
}

// TestLateMoves: the first job waits for one that ends anyway. When others have started
// where it would have fitted, running ones move for it in the same step.
func TestLateMoves(t *testing.T) {
	const second = sched.Instant(time.Second)
	c := sched.New(sched.Config{})
	p := &account.Policy{Preemption: account.Preemption{Defrag: account.DefragAutomatic, DefragRest: account.Duration(time.Second)}}
	out := c.Step(100*second, sched.PolicySet{Policy: p}, withCPUs("n1", 6), withCPUs("n2", 2),
		sched.Restored{Job: 1, Spec: groups(0, 2), Claims: onOne("n1", 2), Began: 90 * second, Stopping: true},
		sched.Restored{Job: 2, Spec: groups(time.Hour, 1), Claims: onOne("n1", 1), Began: 90 * second, Until: 3690 * second},
		sched.Restored{Job: 3, Spec: groups(0, 1), Claims: onOne("n1", 1), Began: 90 * second, Saved: 99 * second},
		sched.Restored{Job: 4, Spec: groups(0, 1), Claims: onOne("n2", 1), Began: 90 * second},
		sched.Submitted{Job: 5, Spec: groups(0, 3), At: 100 * second})
	moved := func(out []sched.Decision) bool {
		return slices.ContainsFunc(out, func(d sched.Decision) bool {
			x, ok := d.(sched.Preempt)
			return ok && x.Job == 3 && x.For == 5 && x.Home != nil
		})
	}
	if moved(out) {
		t.Fatalf("job 3 moves, and job 1 ends anyway: %+v", out)
	}
	if out = c.Step(102*second, sched.Submitted{Job: 6, Spec: groups(20*time.Second, 2), At: 102 * second}); !slices.Equal(startsOf(out), []job.ID{6}) || !moved(out) {
		t.Errorf("job 6 is to start, and job 3 to move: %+v", out)
	}
}

// TestMovesThatAreUnderWayAreTakenUp: a job for which another one moves is planned for
// again, in the same step, when a node changes on which it was to start, and waits for that
// one alone.
func TestMovesThatAreUnderWayAreTakenUp(t *testing.T) {
	const second = sched.Instant(time.Second)
	c := sched.New(sched.Config{})
	p := &account.Policy{Preemption: account.Preemption{Defrag: account.DefragAutomatic, DefragRest: account.Duration(time.Second)}}
	out := c.Step(100*second, sched.PolicySet{Policy: p}, withCPUs("n1", 2), withCPUs("n2", 1),
		sched.Restored{Job: 1, Spec: groups(0, 1), Claims: onOne("n2", 1), Began: 90 * second, Saved: 99 * second},
		sched.Submitted{Job: 2, Spec: spread(2), At: 100 * second})
	if !slices.ContainsFunc(out, func(d sched.Decision) bool { x, ok := d.(sched.Preempt); return ok && x.For == 2 }) {
		t.Fatalf("job 1 is to move to n1 for job 2: %+v", out)
	}
	c.Step(101*second, withCPUs("n1", 3))
	if c.Nominees() != 1 {
		t.Errorf("nothing is held for job 2, for which job 1 stops still: %+v", c.Reasons(101*second, 2))
	}
}

// spread is a job of one task of one CPU on each of some nodes.
func spread(nodes int) *job.Spec {
	s := groups(0, 1)
	s.Groups[0].Nodes, s.Groups[0].Tasks.Want = job.Range{Min: nodes, Max: nodes}, nodes
	return s
}
