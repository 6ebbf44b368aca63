package control_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/reason"
	"github.com/coxswain-sched/coxswain/store"
)

// limitedHand is a hand whose launches others' limits can keep.
type limitedHand struct {
	*hand
	room chan struct{}
}

func (h limitedHand) Room(ctx context.Context, f func()) {
	for {
		select {
		case <-h.room:
			f()
		case <-ctx.Done():
			return
		}
	}
}

// A job for which a limit of its engine's has no room waits with the engine's words, as often
// as that is so and whatever it says of requeuing, and begins as soon as the engine says that
// there is room, though its time to be tried again has not come.
// Seen to fail with: room not regating jobs (it waits until the clock moves); Limited not among
// the causes after which a job is pending (it fails).
func TestALimitOfTheEngineIsWaitedOut(t *testing.T) {
	c := newClock()
	h := limitedHand{newHand(1, 8), make(chan struct{})}
	h.launch = func(engine.Ref) error { return fault.New(fault.Exhausted, "quota team is full") }
	b := &bench{t: t, hand: h.hand, store: new(store.Memory), cfg: control.Config{Clock: c, Backoff: time.Minute}}
	b.cfg.Store, b.cfg.Pools, b.cfg.Who = b.store, onHand(h), t.Name()
	b.open()
	t.Cleanup(b.close)
	id := b.submit(gang(1, 8))
	waits := func(attempt uint32, words string) {
		t.Helper()
		v := b.until(id, "waiting for "+words, func(v control.View) bool {
			return v.Job.Attempt == attempt && v.Why.Code == reason.EngineLimit && strings.Contains(v.Why.Want, words)
		})
		if v.Job.State != job.Pending || v.Job.Flags&job.Held != 0 || !strings.Contains(v.Why.String(), words+"; begins when there is room") {
			t.Fatalf("%+v: %s", v.Job, v.Why)
		}
	}
	waits(1, "quota team is full")
	b.pass(c, 30*time.Minute)
	waits(2, "quota team is full")
	h.mu.Lock()
	h.launch = nil
	h.mu.Unlock()
	h.room <- struct{}{} // and the clock stands
	v := b.launched(id)
	h.report(engine.Report{Ref: v.Ref, Job: id, Phase: engine.Ended, Gone: true, Cause: engine.Limited, Ended: c.Now(), Message: "quota other is full"})
	waits(3, "quota other is full")
	b.pass(c, time.Minute) // the room that was said just before may have been this one
	v = b.launched(id)
	h.report(engine.Report{Ref: v.Ref, Job: id, Phase: engine.Ended, Gone: true, Cause: engine.Limited, Ended: c.Now(), Message: "quota third is full"})
	waits(4, "quota third is full")
	h.room <- struct{}{}
	v = b.launched(id)
	h.report(engine.Report{Ref: v.Ref, Job: id, Phase: engine.Running, Started: c.Now()})
	h.end(v, engine.Exited, 0)
	b.state(id, job.Completed)
}
