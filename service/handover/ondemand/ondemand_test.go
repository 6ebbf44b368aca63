package ondemand

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/whatif"
	"github.com/coxswain-sched/coxswain/service/handover/demand"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// plane is three machines of pools "jobs" and "serve" in a real core, and records of them.
type plane struct {
	core     *sched.Core
	now      time.Time
	rules    *account.Policy
	owners   []fleet.MachineOwner
	looks    int
	requeued []job.ID
}

func newPlane() *plane {
	twice := 2.0
	p := &plane{core: sched.New(sched.Config{}), now: noon, rules: &account.Policy{Handover: account.Handover{Pools: []account.HandoverPool{
		{Name: "jobs", Min: 1, Requeue: true, Drain: account.Duration(5 * time.Minute)}, {Name: "serve", After: account.Duration(3 * time.Minute), Weight: &twice},
	}}}}
	for i := range 3 {
		for k, pool := range []string{"jobs", "serve"} {
			n := fleet.Node{Name: fmt.Sprint(pool, i), Hosts: []string{fmt.Sprint("m", i)}, Pool: pool, State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 1 << 40}}
			if k == 1 {
				n.State = fleet.Draining
			}
			p.step(sched.NodeSet{Node: n})
		}
		p.owners = append(p.owners, fleet.MachineOwner{Machine: fmt.Sprint("m", i), Pool: "jobs", Epoch: 1})
	}
	return p
}

func (p *plane) step(events ...sched.Event) { p.core.Step(sched.Instant(p.now.UnixNano()), events...) }

func (p *plane) submit(id job.ID, pool string, cpus int, limit time.Duration) {
	g := job.TaskGroup{Tasks: job.Count{Want: 1}}
	g.PerTask.CPU = resource.CPUs(cpus)
	p.step(sched.Submitted{Job: id, Spec: &job.Spec{Pool: pool, Groups: []job.TaskGroup{g}, TimeLimit: limit, Requeue: true}, At: sched.Instant(p.now.UnixNano())})
}

func (p *plane) LookAhead(_ context.Context, work func(*query.Ahead)) error {
	p.looks++
	s := p.core.Snapshot()
	s.Sort()
	work(&query.Ahead{State: s, Now: sched.Instant(p.now.UnixNano()), Took: whatif.Limits, Owners: slices.Clone(p.owners)})
	return nil
}

func (p *plane) MachineOwners(context.Context) []fleet.MachineOwner { return slices.Clone(p.owners) }

func (p *plane) Policy(context.Context, uint64) (state.Policy, error) {
	return state.Policy{Rules: p.rules}, nil
}

func (p *plane) Change(_ context.Context, by job.Actor, ids []job.ID, op control.Op) ([]error, error) {
	if _, ok := op.(control.Requeue); ok && by.Name == Asker {
		p.requeued = append(p.requeued, ids...)
	}
	return make([]error, len(ids)), nil
}

// move writes the record of a hand-over, as service/handover/controller does.
func (p *plane) move(_ context.Context, by job.Actor, m *demand.Move, deadline time.Duration) error {
	for i := range p.owners {
		if o := &p.owners[i]; o.Machine == m.Machine {
			o.Next, o.Step, o.Epoch, o.By, o.Reason, o.Deadline = m.To, fleet.StepAsked, o.Epoch+1, by.Name, m.Reason, p.now.Add(deadline)
		}
	}
	return nil
}

// TestMachinesGoOnDemand: work waits in a pool without machines. A machine is handed over once that has lasted,
// one only, and its job is requeued when the drain is over and not before.
//
// Seen to fail without the memory between decisions, without the records of machines under way, with a requeue at
// once, and for hand-overs that somebody else asked for, a user of the name policy among them.
func TestMachinesGoOnDemand(t *testing.T) {
	p := newPlane()
	c := New(Config{Plane: p, Move: p.move, Now: func() time.Time { return p.now }})
	for id := range job.ID(3) {
		p.submit(id+1, "jobs", 8, 10*time.Hour)
	}
	p.submit(7, "serve", 8, 20*time.Hour)

	rules := p.rules
	p.rules = &account.Policy{}
	if pause := c.decideOnce(t.Context()); p.looks != 0 || pause != longestPause || !c.Last().At.IsZero() {
		t.Errorf("without rules: %d looks, a pause of %v", p.looks, pause)
	}
	p.rules = rules
	for minute := range 4 {
		if c.decideOnce(t.Context()); (p.moving() == "") != (minute < 3) {
			t.Errorf("after %d minutes %q moves", minute, p.moving())
		}
		p.now = p.now.Add(time.Minute)
	}
	o := p.owners[0]
	if o.Next != "serve" || o.By != Asker || !o.Deadline.Equal(noon.Add(3*time.Minute+rest)) || o.Reason == "" {
		t.Fatalf("%+v", o)
	}
	// The job there would run for hours: its drain is over at once.
	if !slices.Equal(p.requeued, []job.ID{1}) {
		t.Errorf("requeued: %v", p.requeued)
	}

	p.requeued = nil
	p.owners[0].Deadline = p.now.Add(rest + time.Minute)
	if c.decideOnce(t.Context()); len(p.requeued) > 0 || p.moving() != "m0" {
		t.Errorf("before the end of the drain: requeued %v, %q moves", p.requeued, p.moving())
	}
	for _, user := range []string{"root", "policy"} {
		p.owners[0].Deadline, p.owners[0].By = p.now, user
		if c.decideOnce(t.Context()); len(p.requeued) > 0 {
			t.Errorf("of a hand-over that %s asked for: requeued %v", user, p.requeued)
		}
	}
	if last := c.Last(); len(last.Pools) != 2 || last.Pools[1].Machines != 1 || !last.At.Equal(p.now) {
		t.Errorf("%+v", last)
	}
}

// moving names the machines that are on the way.
func (p *plane) moving() (out string) {
	for _, o := range p.owners {
		if o.Moving() {
			out += o.Machine
		}
	}
	return out
}
