package control_test

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// nodeView is the node of a pool, as it is shown.
func (b *bench) nodeView(pool, name string) query.NodeView {
	b.t.Helper()
	views, err := b.ctl.NodeViews(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, v := range views {
		if v.Node.Key() == (fleet.NodeKey{Pool: pool, Name: name}) {
			return v
		}
	}
	b.t.Fatalf("pool %s has no node %s: %+v", pool, name, views)
	return query.NodeView{}
}

// TestTwoPoolsHaveANodeOfOneName: each has its own drain, jobs and loss.
func TestTwoPoolsHaveANodeOfOneName(t *testing.T) {
	p, q := standing(named("a", 1, 8), "rack1-a1"), standing(named("a", 1, 4), "rack2-a1")
	b := two(t, p, q, control.Config{})
	drain := func(name string, on bool) error {
		return b.ctl.SetNodes(t.Context(), job.Actor{Name: "root"}, []string{name}, on, "bad fan")
	}
	inP, inQ := b.launched(b.submit(in("p", gang(1, 8)))), b.launched(b.submit(in("q", gang(1, 4))))
	p.start(inP)
	q.start(inQ)
	for range 2 {
		for pool, v := range map[string]state.View{"p": inP, "q": inQ} {
			if n := b.nodeView(pool, "a1"); v.Pool != pool || len(n.Jobs) != 1 || n.Jobs[0] != v.Job.ID || len(n.Held) != len(n.Node.Devices) {
				t.Errorf("job %d is in pool %s; a1 of %s has jobs %v, held %v", v.Job.ID, v.Pool, pool, n.Jobs, n.Held)
			}
		}
		b.reopen()
	}

	err := drain("a1", true)
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "node a1 is in 2 pools: p, q") || !strings.Contains(fault.Remedy(err), "p/a1") {
		t.Errorf("a name that two pools have: %v; %s", err, fault.Remedy(err))
	}
	if err := drain("r/a1", true); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a node of a pool that is not there: %v", err)
	}
	if err := drain("q/a1", true); err != nil {
		t.Fatal(err)
	}
	nextP, nextQ := b.submit(in("p", gang(1, 8))), b.submit(in("q", gang(1, 4)))
	p.end(inP, engine.Exited, 0)
	q.end(inQ, engine.Exited, 0)
	b.state(inQ.Job.ID, job.Completed)
	inP = b.launched(nextP)
	b.reopen()
	b.waitsStill(nextQ)
	if n, o := b.nodeView("p", "a1"), b.nodeView("q", "a1"); n.Drained != nil || n.Node.State != fleet.Up || o.Drained == nil || o.Drained.Reason != "bad fan" || o.Node.State != fleet.Draining {
		t.Errorf("of p %+v, of q %+v", n, o)
	}
	if err := drain("q/a1", false); err != nil {
		t.Fatal(err)
	}
	inQ = b.launched(nextQ)
	p.start(inP)
	q.start(inQ)

	p.mu.Lock()
	p.nodes = nil // it is lost, with what it has
	p.mu.Unlock()
	if err := b.ctl.Compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a1 of p is gone", func() bool { views, _ := b.ctl.NodeViews(t.Context()); return len(views) == 1 })
	if n := b.nodeView("q", "a1"); len(n.Jobs) != 1 || n.Jobs[0] != nextQ || n.Node.State != fleet.Up {
		t.Errorf("of q %+v", n)
	}
	q.end(inQ, engine.Exited, 0)
	b.state(nextQ, job.Completed)
	b.launched(b.submit(in("q", gang(1, 4)))) // whatever p's job still holds
	b.state(nextP, job.Running)
	p.end(inP, engine.NodeLost, 0)
	b.until(nextP, "over", func(v state.View) bool { return v.Job.State != job.Running })
	if err := drain("a1", true); err != nil {
		t.Errorf("the only a1: %v", err)
	}
	if n := b.nodeView("q", "a1"); n.Drained == nil {
		t.Errorf("it is not drained: %+v", n)
	}
}

// TestAJournalWithBareNodeNames: testdata/journal-2.jsonl was written by the last version that
// keyed nodes by name alone, and is not to be changed. Pool p has nodes a1 and a2, q has b1.
// Jobs 1 and 2 hold a1 and b1, 3 and 4, without a limit, wait, a2 is
// drained, and b1 is reserved in 2100.
func TestAJournalWithBareNodeNames(t *testing.T) {
	p, q := named("a", 2, 8), named("b", 1, 8)
	p.put(engine.Report{Ref: engine.Ref{Allocation: 1, Attempt: 1}, Job: 1, Phase: engine.Running})
	q.put(engine.Report{Ref: engine.Ref{Allocation: 2, Attempt: 1}, Job: 2, Phase: engine.Running})
	b := &bench{t: t, store: journal(t, "testdata/journal-2.jsonl")}
	b.cfg = control.Config{Store: b.store, Keep: -1, Pools: []pools.Pool{{Pool: fleet.Pool{Name: "p"}, Engine: p}, {Pool: fleet.Pool{Name: "q"}, Engine: q}}}
	if _, err := b.store.PutBlob(t.Context(), nil); err != nil { // the jobs' environment
		t.Fatal(err)
	}
	b.open()
	t.Cleanup(b.close)
	for range 2 { // from the journal alone, then from the projection
		for id, want := range map[job.ID]string{1: "p/a1", 2: "q/b1", 3: "", 4: ""} {
			v, err := b.ctl.Job(t.Context(), id)
			switch {
			case err != nil:
				t.Error(err)
			case want == "" && (v.Job.State != job.Pending || len(v.Claims) > 0):
				t.Errorf("job %d is %s, and waited", id, v.Job.State)
			case want != "" && (v.Job.State != job.Running || v.Pool+"/"+v.Claims[0].Node != want):
				t.Errorf("job %d is %s on %v of %s, want %s", id, v.Job.State, v.Claims, v.Pool, want)
			}
		}
		a1, a2, b1 := b.nodeView("p", "a1"), b.nodeView("p", "a2"), b.nodeView("q", "b1")
		if a1.Drained != nil || b1.Drained != nil || len(a1.Held) != 8 || len(b1.Held) != 8 || len(a2.Held) != 0 {
			t.Errorf("a1 is %+v, b1 %+v", a1, b1)
		}
		if a2.Drained == nil || a2.Drained.Reason != "bad fan" || a2.Drained.By.Name != "root" || a2.Node.State != fleet.Draining {
			t.Errorf("a2 is %+v", a2)
		}
		if now, err := b.ctl.Policy(t.Context(), 0); err != nil || len(now.Rules.Reservations) != 1 || now.Rules.Reservations[0].Nodes[0] != "b1" {
			t.Errorf("the reservation is %+v, %v", now, err)
		}
		waitProjected(t, b.ctl)
		b.reopen()
	}
	if err := b.ctl.SetNodes(t.Context(), job.Actor{}, []string{"a2"}, false, ""); err != nil {
		t.Fatal(err)
	}
	if v := b.launched(3); v.Claims[0].Node != "a2" {
		t.Errorf("job 3 has %v", v.Claims)
	}
	v, _ := b.ctl.Job(t.Context(), 2)
	q.end(v, engine.Exited, 0)
	b.state(2, job.Completed)
	b.until(4, "kept off by the reservation", func(v state.View) bool {
		return v.Job.State == job.Pending && v.Why.Code == reason.Reservation && v.Why.Want == "maint"
	})
}

// TestAMachineChangesItsPool: what is held on it and its drain are seen at its node in the other pool, and
// work starts there once it was handed over.
func TestAMachineChangesItsPool(t *testing.T) {
	p, q := named("a", 1, 8), named("b", 1, 8)
	b := two(t, p, q, control.Config{})
	held := b.launched(b.submit(in("p", gang(1, 8))))
	p.start(held)
	b.begun(held.Job.ID)
	if err := b.ctl.SetNodes(t.Context(), job.Actor{Name: "root"}, []string{"a1"}, true, "bad fan"); err != nil {
		t.Fatal(err)
	}
	b.close()
	q.nodes, p.nodes = append(q.nodes, p.nodes[0]), nil
	b.open()
	if n := b.nodeView("q", "a1"); n.Drained == nil || n.Node.State != fleet.Draining || len(n.Jobs) != 1 || len(n.Held) != 8 {
		t.Errorf("in its new pool it is %+v", n)
	}
	b.launched(b.submit(in("q", gang(1, 8)))) // on b1
	next := b.submit(in("q", gang(1, 8)))
	if err := b.ctl.SetNodes(t.Context(), job.Actor{}, []string{"a1"}, false, ""); err != nil {
		t.Fatal(err)
	}
	if n := b.nodeView("q", "a1"); n.Drained != nil || n.Node.Why != "machine a1 belongs to pool p" {
		t.Errorf("it is %+v", n)
	}
	b.waitsStill(next)
	if why, err := b.ctl.Reasons(t.Context(), next); err != nil || len(why) < 2 || why[len(why)-1].String() != "pool q lacks machines that it has nodes on: a1 belongs to pool p" {
		t.Errorf("it waits for %v, %v", why, err)
	}
	b.walk("a1", "q", fleet.StepProve)
	if why, err := b.ctl.Reasons(t.Context(), next); err != nil || !strings.Contains(why[len(why)-1].Want, "a1 is on its way from pool p to pool q, step prove") {
		t.Errorf("it waits for %v, %v", why, err)
	}
	if err := b.step("a1", fleet.StepAdmit); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "work of pool p holds it still") {
		t.Errorf("admitted while the first job has it: %v", err)
	}
	p.end(held, engine.Exited, 0)
	b.until(held.Job.ID, "over", func(v state.View) bool { return v.Job.State == job.Completed })
	b.walk("a1", "q", fleet.StepCheck)
	b.waitsStill(next)
	b.walk("a1", "q", fleet.StepRelease)
	if v := b.launched(next); v.Claims[0].Node != "a1" || v.Pool != "q" {
		t.Errorf("the next job has %v of %s", v.Claims, v.Pool)
	}
}
