package control_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/account"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/resource"
)

// shared is a document by which past usage orders.
func shared() control.PolicyChange {
	return control.PolicyChange{Text: "shared", Rules: &account.Policy{
		Priority: account.Weights{FairShare: 1000},
		Accounts: []account.Account{{Name: "a", Users: []account.User{{Name: "u"}}}, {Name: "b", Users: []account.User{{Name: "v"}}}},
	}}
}

func charged(acct, user string, s *job.Spec) *job.Spec {
	s.Account, s.Owner.User = acct, user
	s.Groups[0].PerTask.CPU = resource.OneCPU // which is what is billed
	return s
}

// TestUsageOutlivesTheServer: what was used at the last tick is there after a restart,
// out of the journal and out of the projection, and the order of the queue with it; so
// is what a job used that ended after the last tick.
//
// Seen to fail with: usage that is not told to the core after a restart.
func TestUsageOutlivesTheServer(t *testing.T) {
	c := newClock()
	b := openWith(t, newHand(1, 8), control.Config{Clock: c})
	b.set(shared())
	first := b.submit(charged("a", "u", gang(1, 8)))
	v := b.launched(first)
	b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Running, Started: c.Now()})
	b.until(first, "started", func(v control.View) bool { return !v.Job.Started.IsZero() })
	second, third := b.submit(charged("a", "u", gang(1, 8))), b.submit(charged("b", "v", gang(1, 8)))
	before := b.ctl.LastEvent()
	b.pass(c, 5*time.Minute)
	b.kept(before)
	want, _ := b.ctl.Shares(t.Context())
	if want[0].Wall < 290 || want[0].Wall > 300 {
		t.Fatalf("%v seconds were used: %+v", want[0].Wall, want)
	}
	for range 2 {
		b.reopen()
		if err := b.ctl.Check(t.Context()); err != nil { // the loop has told the core of every job
			t.Fatal(err)
		}
		got, _ := b.ctl.Shares(t.Context())
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		list := b.ctl.Priorities(t.Context(), second, third)
		if len(list) != 2 || list[0].Priority != 500 || list[1].Priority != 1000 {
			t.Fatalf("priorities %+v", list)
		}
		if v, err := b.ctl.Job(t.Context(), third); err != nil || v.Priority != 1000 {
			t.Fatalf("job %d is shown with priority %d %v", third, v.Priority, err)
		}
	}
	if _, err := b.ctl.PriorityOf(t.Context(), first); err == nil {
		t.Error("a running job has a place in the queue")
	}
	b.pass(c, 100*time.Second)
	b.hand.end(v, engine.Exited, 0) // between two ticks
	b.state(first, job.Completed)
	want, _ = b.ctl.Shares(t.Context())
	if want[0].Wall < 390 || want[0].Wall > 400 {
		t.Fatalf("%v seconds were used: %+v", want[0].Wall, want)
	}
	for range 2 {
		b.reopen()
		if err := b.ctl.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, _ := b.ctl.Shares(t.Context())
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal("after an end between two ticks", d)
		}
	}
}

// kept waits for usage to be written.
func (b *bench) kept(after uint64) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		evs, last, _, err := b.ctl.Events(ctx, after)
		if err != nil {
			b.t.Fatalf("usage was not kept: %v", err)
		}
		for _, ev := range evs {
			if ev.Kind == control.EventUsage {
				return
			}
		}
		after = last
	}
}
