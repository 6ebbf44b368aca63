package control_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// limitedHand is a hand whose launches others' limits can keep.
type limitedHand struct {
	*hand
	room chan []job.ID
}

func (h limitedHand) WatchCapacity(ctx context.Context, f func(...job.ID)) {
	for {
		select {
		case jobs := <-h.room:
			f(jobs...)
		case <-ctx.Done():
			return
		}
	}
}

// limited opens a control plane whose engine has a node, and no room for anybody in a quota.
func limited(t *testing.T, c *clock) (*bench, limitedHand) {
	t.Helper()
	h := limitedHand{newHand(1, 8), make(chan []job.ID)}
	h.launch = func(engine.Ref) error { return fault.New(fault.Exhausted, "quota team is full") }
	return openFor(t, h, h.hand, control.Config{Clock: c, Backoff: time.Minute}), h
}

// A job for which a limit of its engine's has no room waits with the engine's words, as often
// as that is so and whatever it says of requeuing, and begins as soon as the engine says that
// there is room, though its time to be tried again has not come.
// Seen to fail with: room not regating jobs (it waits until the clock moves); Limited not among
// the causes after which a job is pending (it fails).
func TestALimitOfTheEngineIsWaitedOut(t *testing.T) {
	c := newClock()
	b, h := limited(t, c)
	id := b.submit(gang(1, 8))
	waits := func(attempt uint32, words string) {
		t.Helper()
		v := b.until(id, "waiting for "+words, func(v state.View) bool {
			return v.Job.Attempt == attempt && v.Why.Code == reason.EngineLimit && strings.Contains(v.Why.Want, words)
		})
		if v.Job.State != job.Pending || v.Job.Flags&job.Held != 0 || !strings.Contains(v.Why.String(), words+"; tried again when that changes, at ") {
			t.Fatalf("%+v: %s", v.Job, v.Why)
		}
	}
	waits(1, "quota team is full")
	b.pass(c, 30*time.Minute)
	waits(2, "quota team is full")
	h.mu.Lock()
	h.launch = nil
	h.mu.Unlock()
	h.room <- nil // and the clock stands
	v := b.launched(id)
	h.report(engine.Report{Ref: v.Ref, Job: id, Phase: engine.Ended, Gone: true, Cause: engine.Limited, Ended: c.Now(), Message: "quota other is full"})
	waits(3, "quota other is full")
	b.pass(c, time.Minute) // the room that was said just before may have been this one
	v = b.launched(id)
	h.report(engine.Report{Ref: v.Ref, Job: id, Phase: engine.Ended, Gone: true, Cause: engine.Limited, Ended: c.Now(), Message: "quota third is full"})
	waits(4, "quota third is full")
	h.room <- nil
	v = b.launched(id)
	h.report(engine.Report{Ref: v.Ref, Job: id, Phase: engine.Running, Started: c.Now()})
	h.end(v, engine.Exited, 0)
	b.state(id, job.Completed)
}

// A job that is cancelled while it waits says so, and not what its last attempt failed by.
// Seen to fail with: no message of the cancelling ("", exit 0); quit leaving the exit code (exit 1).
func TestAJobThatIsCancelledAfterAnAttempt(t *testing.T) {
	c := newClock()
	b, _ := limited(t, c)
	id := b.submit(gang(1, 8))
	b.until(id, "waiting", func(v state.View) bool { return v.Why.Code == reason.EngineLimit })
	if err := ask(t.Context(), b.ctl, id, control.Cancel{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		v := b.state(id, job.Cancelled)
		if !strings.HasPrefix(v.Message, "cancelled by ") || !v.Job.Exit.OK() {
			t.Errorf("%q, %s", v.Message, v.Job.Exit)
		}
		b.reopen()
	}
}

// heldHand is a limitedHand that says whom it was given, and takes nobody before it is let.
type heldHand struct {
	limitedHand
	given chan *engine.Launch
	let   chan struct{} // nil: there is no room
}

func (h *heldHand) Launch(ctx context.Context, l *engine.Launch) error {
	h.mu.Lock()
	let := h.let
	h.mu.Unlock()
	h.given <- l
	if let == nil {
		return fault.New(fault.Exhausted, "quota team is full")
	}
	select {
	case <-let:
		return h.limitedHand.Launch(ctx, l)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// holding opens a control plane on a heldHand of so many nodes, without room in its quota.
func holding(t *testing.T, nodes int, cfg control.Config) (*bench, *heldHand) {
	t.Helper()
	h := &heldHand{limitedHand: limitedHand{newHand(nodes, 8), make(chan []job.ID)}, given: make(chan *engine.Launch, 100)}
	return openFor(t, h, h.hand, cfg), h
}

// Those that wait for a limit of their engine's are tried again in the order of the queue, eight
// at first, and one more as soon as one is taken. Who is launched is told who waits and comes
// before it: nobody who is held.
//
// Seen to fail with: all tried at once; the order of their numbers; those that are held told.
func TestTurnsAtALimitOfTheEngine(t *testing.T) {
	c := newClock()
	b, h := holding(t, 40, control.Config{Clock: c, Backoff: time.Minute})
	waits := func(priority int64) job.ID {
		t.Helper()
		s := gang(1, 8)
		s.Priority = priority
		id := b.submit(s)
		<-h.given
		b.until(id, "waiting", func(v state.View) bool { return v.Why.Code == reason.EngineLimit })
		return id
	}
	var ids []job.ID // the last has the highest priority
	for i := range 12 {
		ids = append(ids, waits(int64(100+i)))
	}
	top := ids[11]
	if _, err := b.ctl.Change(t.Context(), job.Actor{Name: "me"}, []job.ID{top}, control.Hold{On: true}); err != nil {
		t.Fatal(err)
	}
	b.until(top, "held", func(v state.View) bool { return v.Job.Flags&job.Held != 0 })
	s := gang(1, 8)
	s.Priority = 105
	ids[11] = b.submit(s)
	want := slices.Clone(ids[5:11])
	slices.Reverse(want)
	if l := <-h.given; l.Job.ID != ids[11] || !slices.Equal(l.Ahead, want) {
		t.Fatalf("job %d is told that %v come first, not %v", l.Job.ID, l.Ahead, want)
	}
	b.until(ids[11], "waiting", func(v state.View) bool { return v.Why.Code == reason.EngineLimit })
	h.mu.Lock()
	h.let = make(chan struct{})
	h.mu.Unlock()
	h.room <- nil
	line := append(want, ids[11]) // and then the others
	for i := 4; i >= 0; i-- {
		line = append(line, ids[i])
	}
	var first []job.ID
	for range 8 {
		first = append(first, (<-h.given).Job.ID)
	}
	slices.Sort(first)
	if want := slices.Sorted(slices.Values(line[:8])); !slices.Equal(first, want) {
		t.Fatalf("%v are tried first, not %v", first, want)
	}
	for _, id := range line[8:] {
		b.state(id, job.Pending)
		h.let <- struct{}{}
		if l := <-h.given; l.Job.ID != id {
			t.Fatalf("job %d is tried next, not %d", l.Job.ID, id)
		}
	}
	close(h.let)
	for _, id := range line {
		b.launched(id)
	}
	b.state(top, job.Pending)
}

// Nobody waits for a job that was told to wait for a limit, and waits for nodes since: it may begin,
// and is not launched for a while. As long as it waits for the limit alone those that come after it
// are told so, however often it is tried again.
//
// Seen to fail with: all that may begin waited for, or none of them.
func TestWhoWaitsForNodesIsNotAhead(t *testing.T) {
	c := newClock()
	b, h := holding(t, 3, control.Config{Clock: c, Backoff: time.Second})
	wide := gang(3, 8)
	wide.Priority = 200
	first := b.submit(wide)
	tried := func(times uint32) {
		t.Helper()
		if l := <-h.given; l.Job.ID != first || l.Ref.Attempt != times {
			t.Fatalf("%s is launched, not attempt %d of job %d", l.Ref, times, first)
		}
		b.until(first, "waiting", func(v state.View) bool {
			return v.Job.Attempt == times && v.Why.Code == reason.EngineLimit
		})
	}
	told := func(want ...job.ID) {
		t.Helper()
		id := b.submit(gang(1, 8))
		if l := <-h.given; l.Job.ID != id || !slices.Equal(l.Ahead, want) {
			t.Fatalf("job %d is told that %v come first, not %v", l.Job.ID, l.Ahead, want)
		}
		b.until(id, "waiting", func(v state.View) bool { return v.Why.Code == reason.EngineLimit })
		if _, err := b.ctl.Change(t.Context(), job.Actor{Name: "me"}, []job.ID{id}, control.Cancel{}); err != nil {
			t.Fatal(err)
		}
		b.state(id, job.Cancelled)
	}
	drain := func(on bool) {
		t.Helper()
		if err := b.ctl.SetNodes(t.Context(), job.Actor{}, []string{"n1"}, on, "a fan"); err != nil {
			t.Fatal(err)
		}
	}
	for times := range uint32(5) {
		tried(times + 1)
		told(first)
		if times < 4 {
			b.pass(c, 30*time.Second)
		}
	}
	drain(true)
	told(first)
	b.pass(c, 30*time.Second)
	b.until(first, "waiting for nodes", func(v state.View) bool { return v.Why.Code != reason.EngineLimit })
	told(first) // it may be about to begin
	b.pass(c, 30*time.Second)
	told()
	b.pass(c, time.Hour)
	told()
	drain(false)
	tried(6)
	told(first)
}
