package sched_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// alarms lets a copy of the core go on by its alarms alone, as a server does to which
// nothing happens: it comes to rest, or goes on in time. One that asks to be stepped at
// once for ever hangs its server.
func (w *world) alarms(t *rapid.T) { goOn(t, w.core, w.now) }

func goOn(t *rapid.T, core *sched.Core, now sched.Instant) {
	const most = 48 // alarms in a second
	c, begin, n := sched.Load(core.Snapshot()), now, 0
	for range 200 {
		next := c.Next()
		if next == 0 {
			return
		}
		if now = max(now, next); now >= begin+sched.Instant(time.Second) {
			begin, n = now, 0
		}
		if n++; n > most {
			t.Fatalf("%d alarms within a second, the last one for %d at %d", n, next, now)
		}
		c.Step(now)
	}
}

// TestNobodyIsLetGoOnForEver: a job that asks its quota for nothing, and that no node takes
// that is up, is not let go on again and again beside those for which starts are planned and
// one for which the quota does not reach. The pass ends.
//
// Seen to go round for ever where a quota was said to reach though no node has what it
// would be placed on.
func TestNobodyIsLetGoOnForEver(t *testing.T) {
	const second = sched.Instant(time.Second)
	node := func(name string, cpus, gpus int, state fleet.NodeState, features ...string) sched.Event {
		n := fleet.Node{Name: name, State: state, Features: features, Capacity: resource.Vector{CPU: resource.CPUs(cpus)}}
		for i := range gpus {
			n.Devices = append(n.Devices, fleet.Device{Index: i, Kind: "gpu", Type: "a"})
		}
		return sched.NodeSet{Node: n}
	}
	spec := func(cpus, gpus int, text string) *job.Spec {
		g := job.TaskGroup{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}}
		g.PerTask.CPU = resource.CPUs(cpus)
		if gpus > 0 {
			g.PerTask.Devices = []resource.DeviceRequest{{Count: gpus}}
		}
		if text != "" {
			g.Constraint = job.Constraint{Text: text, Alternatives: [][]string{{text}}}
		}
		return &job.Spec{Account: "a", TimeLimit: time.Hour, Groups: []job.TaskGroup{g}}
	}
	p := &account.Policy{
		Flavors: []account.Flavor{{Name: "f"}}, Backfill: account.Backfill{Reservations: 1},
		Accounts: []account.Account{{Name: "a", Quota: &account.Quota{Flavors: []account.FlavorQuota{{Flavor: "f", Resources: []account.ResourceQuota{{Name: "gpu", Nominal: 3000}}}}}}},
	}
	core := sched.New(sched.Config{})
	core.Step(second, sched.PolicySet{Policy: p}, node("n1", 8, 3, fleet.Up), node("n2", 8, 0, fleet.Down, "x"), node("n3", 4, 1, fleet.Up),
		sched.Submitted{Job: 1, Spec: spec(8, 1, ""), At: second}, sched.Submitted{Job: 5, Spec: spec(4, 1, ""), At: second})
	other := spec(8, 1, "")
	other.Account = "b"
	core.Step(2*second, sched.Submitted{Job: 2, Spec: spec(8, 1, ""), Priority: 5, At: 2 * second}, sched.Submitted{Job: 6, Spec: other, Priority: 5, At: 2 * second}, sched.Submitted{Job: 3, Spec: spec(8, 3, ""), At: 2 * second}, sched.Submitted{Job: 4, Spec: spec(1, 0, "x"), At: 2 * second})
	core.Step(3*second, sched.Released{Job: 5})
	if err := core.Check(); err != nil {
		t.Fatal(err)
	}
	for id, code := range map[job.ID]reason.Code{3: reason.Quota, 4: reason.Quota} {
		if why := core.Reasons(3*second, id); len(why) == 0 || why[0].Code != code {
			t.Errorf("job %d waits for %+v", id, why)
		}
	}
	starts := 0
	for _, d := range core.Step(4*second, node("n2", 8, 0, fleet.Up, "x")) {
		if s, ok := d.(sched.Start); ok && s.Job == 4 {
			starts++
		}
	}
	if starts != 1 {
		t.Errorf("job 4 does not start when its node is up: %+v", core.Reasons(4*second, 4))
	}
}
