package eligible_test

import (
	"iter"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/eligible"
	"github.com/coxswain-sched/coxswain/model/job"
)

var now = time.Unix(100_000, 0)

// In a drawn world job 1 and 2 are alone, array 3 has the tasks from 0 on, and job 4 is
// not known.

func key(id job.ID, task uint32) job.JobRef {
	t := task
	return job.JobRef{Job: id, Task: &t}
}

type world struct {
	single map[job.ID]eligible.Fate
	array  map[job.ID][]eligible.Fate
	before bool
}

func (w *world) tasks(ref job.JobRef) []eligible.Fate {
	if f, ok := w.single[ref.Job]; ok && ref.Task == nil {
		return []eligible.Fate{f}
	}
	all := w.array[ref.Job]
	switch {
	case ref.Task == nil:
		return all
	case int(*ref.Task) < len(all):
		return all[*ref.Task : *ref.Task+1]
	}
	return nil
}

func (w *world) look(ref job.JobRef) iter.Seq[eligible.Fate] { return slices.Values(w.tasks(ref)) }

// oracle says by brute force whether a condition holds now, and whether it could
// hold in any future in which what has not ended ends in any way.
func oracle(c job.DependencyClause, ref job.JobRef, task *uint32, w *world) (met, possible bool) {
	fs := w.tasks(ref)
	if c.Kind == job.AfterCorr && ref.Task == nil && task != nil {
		if twin := w.tasks(job.JobRef{Job: ref.Job, Task: task}); len(twin) > 0 {
			fs = twin
		}
	}
	met = holds(c, fs, now)
	for _, later := range futures(fs) {
		if holds(c, later, now.Add(1000*time.Hour)) {
			possible = true
		}
	}
	return met, possible
}

// futures lists every way in which jobs that have not ended may end.
func futures(fs []eligible.Fate) (out [][]eligible.Fate) {
	out = [][]eligible.Fate{nil}
	for _, f := range fs {
		ends := []eligible.Fate{f}
		if !f.State.Final() {
			ends = nil
			for _, s := range []job.State{job.Completed, job.Failed} {
				ends = append(ends, eligible.Fate{State: s, Started: now, Ended: now})
			}
		}
		var next [][]eligible.Fate
		for _, o := range out {
			for _, e := range ends {
				next = append(next, append(slices.Clone(o), e))
			}
		}
		out = next
	}
	return out
}

func holds(c job.DependencyClause, fs []eligible.Fate, at time.Time) bool {
	ended, good, bad := 0, 0, 0
	for _, f := range fs {
		if f.State.Final() {
			ended++
			if f.State == job.Completed {
				good++
			} else {
				bad++
			}
		}
		if c.Kind == job.After {
			t := f.Started
			if t.IsZero() {
				t = f.Ended
			}
			if f.State == job.Pending || t.IsZero() || t.Add(c.Delay).After(at) {
				return false
			}
		}
	}
	switch all := ended == len(fs); c.Kind {
	case job.AfterOK, job.AfterCorr:
		return all && len(fs) > 0 && bad == 0
	case job.AfterNotOK:
		return all && bad > 0
	case job.AfterAny, job.AfterBurst:
		return all
	}
	return true
}

func drawFate(t *rapid.T) eligible.Fate {
	f := eligible.Fate{State: rapid.SampledFrom([]job.State{job.Pending, job.Running, job.Completed, job.Failed, job.Cancelled}).Draw(t, "state")}
	if f.State != job.Pending && (f.State != job.Cancelled || rapid.Bool().Draw(t, "started")) {
		f.Started = now.Add(-time.Duration(rapid.IntRange(0, 5).Draw(t, "minutes")) * time.Minute)
	}
	if f.State.Final() {
		f.Ended = now
	}
	return f
}

func TestJudgeAgreesWithTheOracle(t *testing.T) {
	kinds := []job.DependencyKind{job.After, job.AfterAny, job.AfterOK, job.AfterNotOK, job.AfterCorr, job.AfterBurst, job.Singleton}
	rapid.Check(t, func(t *rapid.T) {
		w := &world{single: map[job.ID]eligible.Fate{1: drawFate(t), 2: drawFate(t)}, array: map[job.ID][]eligible.Fate{}, before: rapid.Bool().Draw(t, "before")}
		for range rapid.IntRange(1, 3).Draw(t, "tasks") {
			w.array[3] = append(w.array[3], drawFate(t))
		}
		var task *uint32
		if n := rapid.Uint32Range(0, 4).Draw(t, "own"); n < 4 {
			task = &n
		}
		refs := []job.JobRef{{Job: 1}, {Job: 2}, {Job: 3}, {Job: 4}, key(3, 0), key(3, 1)}
		d := &job.Dependency{Any: rapid.Bool().Draw(t, "any")}
		for range rapid.IntRange(1, 3).Draw(t, "clauses") {
			c := job.DependencyClause{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
			if c.Kind != job.Singleton {
				c.Jobs = rapid.SliceOfN(rapid.SampledFrom(refs), 1, 3).Draw(t, "jobs")
			}
			if c.Kind == job.After {
				c.Delay = time.Duration(rapid.IntRange(0, 5).Draw(t, "delay")) * time.Minute
			}
			d.Clauses = append(d.Clauses, c)
		}
		got := eligible.Judge(d, task, eligible.World{Now: now, Look: w.look, Earlier: func() bool { return w.before }})
		if want := expect(d, task, w); got.Verdict != want {
			t.Fatalf("%s (task %v) in %+v is %d, want %d", d, task, w, got.Verdict, want)
		}
		if (got.Clause == "") != (got.Verdict == eligible.Met) {
			t.Fatalf("verdict %d names the clause %q", got.Verdict, got.Clause)
		}
		if !got.Until.IsZero() && (got.Verdict != eligible.Waits || !got.Until.After(now)) {
			t.Fatalf("verdict %d until %v", got.Verdict, got.Until)
		}
	})
}

func expect(d *job.Dependency, task *uint32, w *world) eligible.Verdict {
	var met, possible []bool
	for _, c := range d.Clauses {
		m, p := true, true
		if c.Kind == job.Singleton {
			m = !w.before
		}
		for _, ref := range c.Jobs {
			rm, rp := oracle(c, ref, task, w)
			m, p = m && rm, p && rp
		}
		met, possible = append(met, m), append(possible, p)
	}
	join := func(all []bool) bool {
		if d.Any {
			return slices.Contains(all, true)
		}
		return !slices.Contains(all, false)
	}
	switch {
	case join(met):
		return eligible.Met
	case join(possible):
		return eligible.Waits
	}
	return eligible.Never
}

// TestADelayIsWaitedFor: time alone meets "after" with a delay.
func TestADelayIsWaitedFor(t *testing.T) {
	w := &world{single: map[job.ID]eligible.Fate{1: {State: job.Running, Started: now.Add(-time.Minute)}}}
	d := &job.Dependency{Clauses: []job.DependencyClause{{Kind: job.After, Jobs: []job.JobRef{{Job: 1}}, Delay: 3 * time.Minute}}}
	j := eligible.Judge(d, nil, eligible.World{Now: now, Look: w.look})
	if j.Verdict != eligible.Waits || !j.Until.Equal(now.Add(2*time.Minute)) || j.Clause != "after:1+3" {
		t.Errorf("%+v", j)
	}
}
