package control_test

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// foreteller is an engine whose scheduler says when it would start a job, or is slow to do so.
type foreteller struct {
	*hand
	at    atomic.Int64 // 0: it does not know
	slow  chan struct{}
	asked atomic.Int64
}

func (f *foreteller) EstimateStart(ctx context.Context, _ *engine.JobDraft) (time.Time, error) {
	f.asked.Add(1)
	select {
	case <-f.slow:
	case <-ctx.Done():
		return time.Time{}, fault.New(fault.Unavailable, "no answer: %w", ctx.Err())
	}
	return state.FromNanos(f.at.Load()), nil
}

// TestExpectedStarts: each pool's own queue counts, and in one of another scheduler what that says,
// else how long the last jobs waited there. An engine that is slow to answer delays nobody, and is
// asked once for jobs that are alike.
//
// Seen to fail with: the pace left out, and an answer that is waited for.
func TestExpectedStarts(t *testing.T) {
	q := &foreteller{hand: far(1, 8), slow: make(chan struct{})}
	b := two(t, named("a", 1, 8), q, control.Config{})
	expect := func(pool string, id job.ID) query.PoolStart {
		t.Helper()
		return b.ctl.ExpectedIn(t.Context(), &engine.JobDraft{Spec: in(pool, lasting(gang(1, 8), time.Hour))}, id)
	}
	near := func(what string, x query.PoolStart, by string, wait time.Duration) {
		t.Helper()
		if d := time.Until(x.Start) - wait; x.Start.IsZero() || d.Abs() > time.Minute || x.By != by {
			t.Errorf("%s: in %s by %q (%s), want %s by %s", what, time.Until(x.Start), x.By, x.Why, wait, by)
		}
	}
	eventually(t, "the nodes of both pools are known", func() bool {
		b.ctl.ExpectedIn(t.Context(), &engine.JobDraft{Spec: in("q", lasting(gang(1, 8), time.Minute))}, 0)
		return q.asked.Load() == 1 && !expect("p", 0).Start.IsZero()
	})
	near("an idle pool", expect("p", 0), query.ByPlan, 0)
	slow := expect("q", 0)
	near("an idle pool whose scheduler is slow", slow, query.ByPlan, 0)
	if slow.Lacks != "it has not answered yet" {
		t.Errorf("of a scheduler that is slow: %q", slow.Lacks)
	}
	near("… asked again", expect("q", 0), query.ByPlan, 0)
	if n := q.asked.Load(); n != 2 {
		t.Errorf("the scheduler was asked %d times, want once for each kind of job", n)
	}

	runs := b.launched(b.submit(in("p", lasting(gang(1, 8), time.Hour))))
	waits := b.submit(in("p", lasting(gang(1, 8), time.Hour)))
	b.state(waits, job.Pending)
	near("behind one that waits", expect("p", 0), query.ByPlan, 2*time.Hour)
	near("the one that waits", expect("p", waits), query.ByPlan, time.Hour)
	_ = runs

	q.at.Store(time.Now().Add(3 * time.Hour).UnixNano())
	close(q.slow)
	for late := time.Now().Add(time.Minute); expect("q", 0).By != query.ByEngine && time.Now().Before(late); {
		runtime.Gosched() // until its answer is there
	}
	near("its scheduler says", expect("q", 0), query.ByEngine, 3*time.Hour)
	if x := expect("q", 0); x.Lacks != "" {
		t.Errorf("of a scheduler that says it: %q", x.Lacks)
	}
}

// lasting gives a specification a time limit.
func lasting(s *job.Spec, limit time.Duration) *job.Spec {
	s.TimeLimit = limit
	return s
}

// TestPaceOfAQueue: of a scheduler that says nothing, the waits of the last jobs count, and those that
// wait there still with what they have waited.
//
// Seen to fail with: a pace that only those count for that have begun.
func TestPaceOfAQueue(t *testing.T) {
	q := far(4, 8)
	clock := newClock()
	b := two(t, named("a", 1, 8), q, control.Config{Clock: clock})
	id := b.submit(in("q", lasting(gang(1, 8), time.Hour)))
	b.handed(id)
	clock.pass(30 * time.Minute)
	if w, err := b.ctl.Why(t.Context(), id); err != nil || w.Here.Pool != "q" || w.Here.By != query.ByPace || w.Here.Lacks == "" {
		t.Errorf("of the job that waits there: %+v, %v", w.Here, err)
	}
	q.report(engine.Report{Ref: b.handed(id).Ref, Phase: engine.Accepted, Message: "Priority", ExpectedStart: clock.Now().Add(time.Hour)})
	b.until(id, "told when it starts", func(v state.View) bool { return !v.Report.ExpectedStart.IsZero() })
	if w, err := b.ctl.Why(t.Context(), id); err != nil || !w.Here.Start.Equal(clock.Now().Add(time.Hour)) || w.Here.By != query.ByEngine || w.Here.Lacks != "" {
		t.Errorf("when its scheduler says it: %+v, %v", w.Here, err)
	}
	x := b.ctl.ExpectedIn(t.Context(), &engine.JobDraft{Spec: in("q", lasting(gang(1, 8), time.Hour))}, 0)
	if d := x.Start.Sub(clock.Now()) - 30*time.Minute; x.By != query.ByPace || d.Abs() > time.Minute || x.Lacks != "it cannot be asked" {
		t.Errorf("in %s by %q (%s)", x.Start.Sub(clock.Now()), x.By, x.Why)
	}
}

// TestForecastNamesNodes: a job that waits for the end of another one is planned on the nodes of that one.
//
// Seen to fail with names that are not kept.
func TestForecastNamesNodes(t *testing.T) {
	b := open(t, newHand(2, 8))
	whole := func(limit time.Duration) *job.Spec {
		s := gang(1, 8)
		s.TimeLimit = limit
		return s
	}
	first, second := b.launched(b.submit(whole(2*time.Hour))), b.launched(b.submit(whole(time.Hour)))
	for _, v := range []state.View{first, second} {
		b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Running, Started: time.Now()})
		b.begun(v.Job.ID)
	}
	one, two := b.submit(whole(30*time.Minute)), b.submit(func() *job.Spec { s := gang(2, 8); s.TimeLimit = time.Hour; return s }())
	for _, id := range []job.ID{one, two} { // before, a forecast does not know them
		b.until(id, "looked at", func(v state.View) bool { return v.Why.Code != reason.None })
	}
	f, err := b.ctl.Forecast(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.Nodes(one), []string{second.Claims[0].Node}; f.Start(one).IsZero() || !slices.Equal(got, want) {
		t.Errorf("planned on %v at %s, want %v", got, f.Start(one), want)
	}
	if got := slices.Sorted(slices.Values(f.Nodes(two))); len(got) != 2 || got[0] == got[1] {
		t.Errorf("a job of two nodes is planned on %v", got)
	}
}
