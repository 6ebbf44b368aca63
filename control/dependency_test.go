package control_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

func on(kind job.DependencyKind, ids ...job.ID) job.Dependency {
	c := job.DependencyClause{Kind: kind}
	for _, id := range ids {
		c.Jobs = append(c.Jobs, job.JobRef{Job: id})
	}
	return job.Dependency{Clauses: []job.DependencyClause{c}}
}

func depending(d job.Dependency) *job.Spec {
	s := gang(1, 1)
	s.Depends = d
	return s
}

// finish runs a job to its end.
func (b *bench) finish(id job.ID, exit int) {
	b.t.Helper()
	v := b.launched(id)
	b.hand.start(v)
	b.hand.end(v, engine.Exited, exit)
	b.until(id, "ended", func(v state.View) bool { return v.Job.State.Final() })
}

// forgotten waits until a job has left memory.
func (b *bench) forgotten(id job.ID) {
	b.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); len(b.ctl.Tasks(id)) > 0; {
		if time.Now().After(deadline) {
			b.t.Fatalf("job %d is still in memory", id)
		}
		if err := b.ctl.Check(b.t.Context()); err != nil { // a turn of the loop
			b.t.Fatal(err)
		}
	}
}

func (b *bench) waits(id job.ID, code reason.Code) {
	b.t.Helper()
	b.until(id, "waiting for "+string(code), func(v state.View) bool { return v.Job.State == job.Pending && v.Why.Code == code })
}

func TestDependenciesAreWaitedFor(t *testing.T) {
	for _, tt := range []struct {
		kind job.DependencyKind
		exit int
		runs bool
	}{
		{job.AfterOK, 0, true},
		{job.AfterOK, 1, false},
		{job.AfterNotOK, 1, true},
		{job.AfterNotOK, 0, false},
		{job.AfterAny, 1, true},
		{job.AfterBurst, 0, true},
		{job.AfterCorr, 0, true},
	} {
		t.Run(fmt.Sprint(tt.kind, tt.exit), func(t *testing.T) {
			b := open(t, newHand(1, 8))
			first := b.submit(gang(1, 1))
			second := b.submit(depending(on(tt.kind, first)))
			b.waits(second, reason.Dependency)
			b.finish(first, tt.exit)
			if tt.runs {
				b.launched(second)
				return
			}
			b.waits(second, reason.DependNever)
			b.reopen()
			b.waits(second, reason.DependNever)
		})
	}
}

func TestAfterWaitsForTheStart(t *testing.T) {
	b := open(t, newHand(1, 8))
	first := b.submit(gang(1, 1))
	second := b.submit(depending(on(job.After, first)))
	v := b.launched(first)
	b.waits(second, reason.Dependency)
	b.hand.start(v)
	b.launched(second)
}

func TestWhatCanNeverRunIsEndedWhereThatIsAsked(t *testing.T) {
	b := open(t, newHand(1, 8))
	first := b.submit(gang(1, 1))
	yes := true
	d := on(job.AfterOK, first)
	d.KillIfNever = &yes
	second := b.submit(depending(d))
	third := b.submit(depending(on(job.AfterAny, second)))
	b.finish(first, 1)
	v := b.state(second, job.Cancelled)
	if v.Message == "" {
		t.Error("nothing says why it was cancelled")
	}
	b.launched(third)
}

func TestAnArrayHasEndedWhenAllItsTasksHave(t *testing.T) {
	b := open(t, newHand(1, 8))
	s := gang(1, 1)
	s.Array = &job.ArraySpec{Text: "1-3", Indices: []uint32{1, 2, 3}, Step: 1}
	array := b.submit(s)
	whole := b.submit(depending(on(job.AfterAny, array)))
	two := uint32(2)
	one := b.submit(depending(job.Dependency{Clauses: []job.DependencyClause{{Kind: job.AfterOK, Jobs: []job.JobRef{{Job: array, Task: &two}}}}}))
	twin := gang(1, 1)
	twin.Array = s.Array
	twin.Depends = on(job.AfterCorr, array)
	corr := b.submit(twin)
	b.finish(array+1, 0)
	b.finish(one, 0)
	b.finish(corr+1, 0)
	b.waits(corr, reason.Dependency)
	b.finish(array, 0)
	b.waits(whole, reason.Dependency)
	b.finish(array+2, 5)
	b.launched(whole)
	b.waits(corr+2, reason.DependNever)
}

func TestSingletonWaitsForEarlierJobsOfTheName(t *testing.T) {
	b := open(t, newHand(1, 8))
	alone := job.Dependency{Clauses: []job.DependencyClause{{Kind: job.Singleton}}}
	first := b.submit(gang(1, 1))
	second := b.submit(depending(alone))
	third := b.submit(depending(alone))
	other := depending(alone)
	other.Name = "another"
	b.launched(b.submit(other))
	b.waits(second, reason.Dependency)
	b.finish(first, 0)
	b.launched(second)
	b.waits(third, reason.Dependency)
	if err := ask(t.Context(), b.ctl, second, control.Cancel{}); err != nil {
		t.Fatal(err)
	}
	v := b.launched(second)
	b.hand.end(v, engine.Stopped, 0)
	b.launched(third)
}

// TestSingletonAfterARename gives a waiting job another name, and a running one the
// name of a job that waits.
func TestSingletonAfterARename(t *testing.T) {
	b := open(t, newHand(1, 8))
	alone := job.Dependency{Clauses: []job.DependencyClause{{Kind: job.Singleton}}}
	first := b.submit(gang(1, 1))
	second := b.submit(depending(alone))
	b.launched(first)
	b.waits(second, reason.Dependency)
	other := "another"
	if err := ask(t.Context(), b.ctl, first, control.Update{Name: &other}); err != nil {
		t.Fatal(err)
	}
	b.launched(second)
}

// TestSingletonAfterARequeue lets the first of two run again while the second runs.
func TestSingletonAfterARequeue(t *testing.T) {
	b := open(t, newHand(1, 8))
	alone := job.Dependency{Clauses: []job.DependencyClause{{Kind: job.Singleton}}}
	first := b.submit(depending(alone))
	second := b.submit(depending(alone))
	b.finish(first, 0)
	v := b.launched(second)
	if err := ask(t.Context(), b.ctl, first, control.Requeue{}); err != nil {
		t.Fatal(err)
	}
	b.waits(first, reason.Dependency)
	b.hand.start(v)
	b.hand.end(v, engine.Exited, 0)
	b.until(first, "at attempt 2", func(v state.View) bool { return v.Job.Attempt == 2 })
}

// TestADependencyOnAnArrayOfWhichAPartIsKnown has a task leave memory before anybody
// depends on the array, and another while somebody depends on a task.
func TestADependencyOnAnArrayOfWhichAPartIsKnown(t *testing.T) {
	b := openWith(t, newHand(1, 8), control.Config{Keep: time.Nanosecond, Project: time.Millisecond})
	s := gang(1, 1)
	s.Array = &job.ArraySpec{Text: "1-3", Indices: []uint32{1, 2, 3}, Step: 1}
	array := b.submit(s)
	end := func(id job.ID, exit int) {
		v := b.launched(id)
		b.hand.start(v)
		b.hand.end(v, engine.Exited, exit)
		for deadline := time.Now().Add(2 * time.Minute); slices.Contains(b.ctl.Tasks(array), id); {
			if err := b.ctl.Check(t.Context()); err != nil || time.Now().After(deadline) {
				t.Fatalf("job %d is still in memory: %v", id, err)
			}
		}
	}
	end(array, 7) // nobody depends on it
	two := uint32(2)
	b.submit(depending(job.Dependency{Clauses: []job.DependencyClause{{Kind: job.AfterAny, Jobs: []job.JobRef{{Job: array, Task: &two}}}}}))
	end(array+1, 0)
	b.waits(b.submit(depending(on(job.AfterOK, array))), reason.DependNever)
}

// TestAfterUnderAClockThatWasSetBack: what has started has started.
func TestAfterUnderAClockThatWasSetBack(t *testing.T) {
	c := newClock()
	b := openWith(t, newHand(1, 8), control.Config{Clock: c})
	first := b.submit(gang(1, 1))
	v := b.launched(first)
	b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Running, Started: c.Now()})
	b.until(first, "started", func(v state.View) bool { return !v.Job.Started.IsZero() })
	b.pass(c, -24*time.Hour)
	b.launched(b.submit(depending(on(job.After, first))))
}

func TestAJobThatLeftMemoryCanBeDependedOn(t *testing.T) {
	b := openWith(t, newHand(1, 8), control.Config{Keep: time.Nanosecond, Project: time.Millisecond})
	first := b.submit(gang(1, 1))
	waiting := b.submit(depending(on(job.AfterOK, first)))
	v := b.launched(first)
	b.hand.start(v)
	b.hand.end(v, engine.Exited, 3)
	b.forgotten(first)
	b.waits(waiting, reason.DependNever)
	later := b.submit(depending(on(job.AfterNotOK, first)))
	b.launched(later)
	if v, err := b.ctl.Job(t.Context(), first); err != nil || v.Job.State != job.Failed || v.Job.Exit.Status != 3 {
		t.Errorf("the store has it as %+v, %v", v.Job, err)
	}
	if err := ask(t.Context(), b.ctl, first, control.Requeue{}); err != nil {
		t.Errorf("it cannot run again: %v", err)
	}
	b.waits(waiting, reason.Dependency)
}

func TestUnknownAndCircularDependenciesAreRefused(t *testing.T) {
	b := open(t, newHand(1, 8))
	if _, err := b.ctl.Submit(t.Context(), control.Submission{Spec: depending(on(job.AfterOK, 99))}); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
		t.Errorf("a dependency on no job: %v", err)
	}
	first := b.submit(gang(1, 8))
	second := b.submit(depending(on(job.AfterOK, first)))
	third := b.submit(depending(on(job.AfterOK, second)))
	d := on(job.AfterAny, third)
	if err := ask(t.Context(), b.ctl, second, control.Update{Depends: &d}); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
		t.Errorf("a circle of two: %v", err)
	}
	d = on(job.AfterAny, second)
	if err := ask(t.Context(), b.ctl, second, control.Update{Depends: &d}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a job that waits for itself: %v", err)
	}
	none := job.Dependency{}
	if err := ask(t.Context(), b.ctl, third, control.Update{Depends: &none}); err != nil {
		t.Fatal(err)
	}
	b.waits(third, reason.Resources)
}
