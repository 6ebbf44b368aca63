package eligible

import (
	"iter"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Fate is what became of a job, so far, that others depend on.
type Fate struct {
	State   job.State
	Started time.Time // of its present or last attempt; zero: it has not started
	Ended   time.Time // zero: it has not ended
}

// Verdict says whether a dependency is met.
type Verdict uint8

// The verdicts.
const (
	Met Verdict = iota
	Waits
	Never // as things are, it can never be met
)

// Judgement is the verdict on a dependency.
type Judgement struct {
	Verdict Verdict
	Clause  string    // the first clause that keeps it from being Met, as sbatch spells it
	Until   time.Time // Waits: time alone may change it then; zero: an event has to
}

// World answers what a dependency asks about other jobs.
type World struct {
	Now time.Time
	// Look yields the fate of a job, of one task, or of every task of an array.
	// It yields nothing for jobs that ended so long ago that nobody knows how.
	Look func(job.JobRef) iter.Seq[Fate]
	// Earlier reports whether an earlier job of the same name and user has not ended.
	Earlier func() bool
}

// Judge returns the verdict on a dependency. task is the index of the job that
// depends, nil if it is no task of an array.
func Judge(d *job.Dependency, task *uint32, w World) Judgement {
	out := Judgement{Verdict: Met}
	for i := range d.Clauses {
		c := &d.Clauses[i]
		j := judgeClause(c, task, w)
		if d.Any && j.Verdict == Met {
			return Judgement{}
		}
		j.Clause = job.Dependency{Clauses: d.Clauses[i : i+1]}.String()
		if i == 0 {
			out = j
			continue
		}
		out = mergeJudgements(out, j, d.Any)
	}
	if out.Verdict == Met {
		return Judgement{}
	}
	return out
}

// mergeJudgements joins two verdicts: with any, the better one counts, otherwise the worse.
func mergeJudgements(a, b Judgement, anyOf bool) Judgement {
	until := earlierTime(a.Until, b.Until)
	if a.Verdict == b.Verdict || (b.Verdict > a.Verdict) == anyOf {
		b = a
	}
	b.Until = until
	if b.Verdict != Waits {
		b.Until = time.Time{}
	}
	return b
}

func judgeClause(c *job.DependencyClause, task *uint32, w World) Judgement {
	if c.Kind == job.Singleton {
		if w.Earlier() {
			return Judgement{Verdict: Waits}
		}
		return Judgement{}
	}
	out := Judgement{}
	for _, ref := range c.Jobs {
		out = mergeJudgements(out, judgeReference(c, ref, task, w), false)
	}
	return out
}

// judgeReference judges a clause about one job or one array.
func judgeReference(c *job.DependencyClause, ref job.JobRef, task *uint32, w World) Judgement {
	fates := w.Look(ref)
	if c.Kind == job.AfterCorr && ref.Task == nil && task != nil {
		if twin := w.Look(job.JobRef{Job: ref.Job, Task: task}); !isEmpty(twin) {
			fates = twin
		}
	}
	if c.Kind == job.After {
		return judgeBegun(fates, c.Delay, w.Now)
	}
	known, running, failed := false, false, false
	for f := range fates {
		known = true
		running = running || !f.State.Final()
		failed = failed || f.State.Final() && f.State != job.Completed
	}
	wants := c.Kind == job.AfterOK || c.Kind == job.AfterCorr
	switch {
	case wants && failed, !known && (wants || c.Kind == job.AfterNotOK):
		return Judgement{Verdict: Never}
	case running:
		return Judgement{Verdict: Waits}
	case c.Kind == job.AfterNotOK && !failed:
		return Judgement{Verdict: Never}
	}
	return Judgement{}
}

func isEmpty(fates iter.Seq[Fate]) bool {
	for range fates {
		return false
	}
	return true
}

// judgeBegun judges "has started or was cancelled, some time ago".
func judgeBegun(fates iter.Seq[Fate], delay time.Duration, now time.Time) Judgement {
	var last time.Time
	for f := range fates {
		at := f.Started
		if at.IsZero() {
			at = f.Ended
		}
		if f.State == job.Pending || at.IsZero() {
			return Judgement{Verdict: Waits}
		}
		if at.After(last) {
			last = at
		}
	}
	if until := last.Add(delay); delay > 0 && !last.IsZero() && until.After(now) { // a clock set back undoes no start
		return Judgement{Verdict: Waits, Until: until}
	}
	return Judgement{}
}

// earlierTime is the smaller of two times; the zero time is none.
func earlierTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
