package control_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
)

// passUntil lets time go on in steps until a job is as wanted.
func (b *bench) passUntil(c *clock, step time.Duration, id job.ID, want job.State) control.View {
	b.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		v, err := b.ctl.Job(b.t.Context(), id)
		if err != nil {
			b.t.Fatal(err)
		}
		if v.Job.State == want {
			return v
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("job %d never was %s; it is %s", id, want, v.Job.State)
		}
		b.pass(c, step)
	}
}

// TestALaunchThatWasGivenUpNeverBegins gives up a launch that got no answer: because
// the job is cancelled, or because its repetition is refused. The first call arrives
// when another job has the node.
func TestALaunchThatWasGivenUpNeverBegins(t *testing.T) {
	for _, tt := range []struct {
		want   job.State
		repeat fault.Kind
	}{{job.Cancelled, fault.Unavailable}, {job.Failed, fault.Invalid}} {
		h := newHand(1, 8)
		asked, kind := make(chan engine.Ref, 99), fault.Unavailable
		h.launch = func(ref engine.Ref) error {
			if ref.Allocation != 1 {
				return nil
			}
			asked <- ref
			defer func() { kind = tt.repeat }()
			return fault.New(kind, "no answer, or a bad one")
		}
		b := open(t, h)
		s := gang(1, 8)
		id := b.submit(s)
		ref := <-asked
		late := &engine.Launch{Ref: ref, Job: &job.Job{ID: id, Spec: s}}
		if tt.want == job.Cancelled {
			if err := ask(t.Context(), b.ctl, id, control.Cancel{}); err != nil {
				t.Fatal(err)
			}
		}
		b.state(id, tt.want)
		b.launched(b.submit(gang(1, 8)))
		h.mu.Lock()
		h.launch = nil
		h.mu.Unlock()
		if err := h.Launch(t.Context(), late); fault.KindOf(err) != fault.Conflict {
			t.Errorf("it was freed, and could begin: %v", err)
		}
	}
}

// TestAnAttemptThatTheEngineLostBeforeItsStart is taken, and never heard of again.
func TestAnAttemptThatTheEngineLostBeforeItsStart(t *testing.T) {
	c := newClock()
	b := openWith(t, newHand(1, 8), control.Config{Clock: c})
	id, next := b.submit(gang(1, 8)), b.submit(gang(1, 8))
	v := b.launched(id)
	b.hand.mu.Lock()
	delete(b.hand.reports, v.Ref)
	b.hand.mu.Unlock()
	if w := b.passUntil(c, time.Minute, id, job.NodeFail); w.Job.Attempt != 1 {
		t.Errorf("it is at attempt %d", w.Job.Attempt)
	}
	b.hand.mu.Lock()
	if !b.hand.fenced[v.Ref] {
		t.Error("it was freed, and could begin")
	}
	b.hand.mu.Unlock()
	b.launched(next)
}

// TestAStopThatFindsNothingFrees cancels what the engine has lost: nobody waits for
// the next comparison.
func TestAStopThatFindsNothingFrees(t *testing.T) {
	for want, op := range map[job.State]control.Op{job.Cancelled: control.Cancel{}, job.Pending: control.Requeue{Hold: true}} {
		b := openWith(t, newHand(1, 8), control.Config{Clock: newClock()}) // which stands
		id := b.submit(gang(1, 8))
		v := b.launched(id)
		b.hand.start(v)
		b.until(id, "started", func(v control.View) bool { return v.Job.Flags&job.Configuring == 0 })
		b.hand.mu.Lock()
		delete(b.hand.reports, v.Ref)
		b.hand.mu.Unlock()
		if err := ask(t.Context(), b.ctl, id, op); err != nil {
			t.Fatal(err)
		}
		b.state(id, want)
	}
}
