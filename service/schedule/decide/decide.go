// Package decide decides which runs of a schedule are due, and what becomes of them: a pure function of
// the schedule's document, its jobs and the time. It has no clock, no I/O and no goroutine.
//
// The rules are those of the CronJob controller of Kubernetes, but for two: a run that replaces another
// begins after the end of that one, and times that pass while a schedule is suspended are left out unless
// its specification counts them (schedule.Spec.CatchUp).
//
// Of several times that have passed since the last decision, because the server was away, the latest
// counts and the others are noted with it.
package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
)

// mostSkipped is how many runs that were skipped are shown.
const mostSkipped = 10

// Input is what a decision depends on. It is not written to.
type Input struct {
	Now     time.Time
	Name    string // the full name of the schedule
	Doc     *schedule.Document
	Jobs    []Job     // that are parts of the schedule, as far as they are remembered
	Refused []Refusal // submissions of due runs that were refused

	// Settled is when the engines have said what became of jobs while no server looked: a job that
	// seems to live before may have ended. Zero: they have.
	Settled time.Time
}

// Job is a job, or a task of an array, that is a part of the schedule.
type Job struct {
	ID    job.ID
	Part  job.Part // without its controller
	State job.State
	Exit  job.ExitCode
	Ended time.Time
	Why   string // it ended so, for people; empty: the exit code says all

	Ending bool // a record asks for its end
}

// Refusal is a submission that was refused.
type Refusal struct {
	Part  job.Part // without its controller
	Why   string
	Never bool      // trying again does not help
	Until time.Time // it is tried again then
}

// Output is what comes next. The document is written before anything else is done.
type Output struct {
	Doc    *schedule.Document // nil: it stays as it is
	Cancel []Cancel
	Submit []Submission
	Next   time.Time // decide again then; zero: only when something changes
}

// Cancel ends a job.
type Cancel struct {
	Job job.ID
	Why string
}

// Submission submits the job of a run.
type Submission struct {
	Part job.Part  // without its controller
	At   time.Time // in the zone of the schedule
}

// plan is a decision on its way.
type plan struct {
	in      *Input
	doc     schedule.Document // a copy
	changed bool
	times   *schedule.Times
	out     Output
}

// Decide decides what comes next. The error says that the specification's times cannot be read here,
// such as those of a time zone that this machine does not know.
func Decide(in *Input) (Output, error) {
	times, err := schedule.ParseCron(in.Doc.Spec.Cron, in.Doc.Spec.Zone)
	if err != nil {
		return Output{}, err
	}
	p := &plan{in: in, doc: *in.Doc, times: times}
	p.doc.Runs = slices.Clone(p.doc.Runs)
	p.observeJobs()
	p.readClock()
	p.dropLate()
	p.readRefusals()
	p.submitDue()
	p.trimRuns()
	if p.changed {
		p.out.Doc = &p.doc
	}
	return p.out, nil
}

// set changes a run.
func (p *plan) set(r *schedule.Run, to schedule.Run) {
	if *r != to {
		*r, p.changed = to, true
	}
}

func (p *plan) wakeAt(t time.Time) {
	if !t.IsZero() && (p.out.Next.IsZero() || t.Before(p.out.Next)) {
		p.out.Next = t
	}
}

// partOf is the part of a run, without its controller.
func partOf(r *schedule.Run) job.Part { return r.Part("") }

// observeJobs takes over how the jobs of runs are.
func (p *plan) observeJobs() {
	for i := range p.doc.Runs {
		r := &p.doc.Runs[i]
		if r.State.Over() {
			continue
		}
		to, found, alive := *r, false, false
		for _, j := range p.in.Jobs {
			if j.Part != partOf(r) {
				continue
			}
			if to.Job == 0 || j.ID < to.Job {
				to.Job = j.ID
			}
			found = true
			if !j.State.Final() {
				alive = true
				continue
			}
			if to.Outcome == job.Pending || to.Outcome == job.Completed && j.State != job.Completed {
				to.Outcome, to.Why, to.Exit = j.State, j.Why, ""
				if !j.Exit.OK() {
					to.Exit = j.Exit.String()
				}
			}
			if j.Ended.After(to.Ended) {
				to.Ended = j.Ended
			}
		}
		switch {
		case !found && r.State == schedule.Due:
			continue
		case !found:
			to.State, to.Why = schedule.Ended, "its job is not remembered any more"
		case alive && r.State == schedule.Due:
			to.State, to.Why = schedule.Live, ""
		case !alive:
			to.State = schedule.Ended
		}
		if alive { // of an array: until its last task has ended
			to.Ended = time.Time{}
		}
		p.set(r, to)
	}
}

// readClock makes a run of the latest time that has passed.
func (p *plan) readClock() {
	if p.doc.Suspended {
		return
	}
	since, now := p.doc.Since, p.in.Now
	latest := p.times.Latest(since, now)
	if latest.IsZero() {
		p.wakeAt(p.times.Next(since))
		return
	}
	other := ""
	if p.doc.Spec.Overlap == schedule.Skip {
		other = findAlive(&p.doc, p.in.Jobs)
	}
	if other != "" && now.Before(p.in.Settled) {
		p.wakeAt(p.in.Settled)
		return
	}
	p.doc.Since, p.changed = latest, true
	p.wakeAt(p.times.Next(latest))
	for i := range p.doc.Runs {
		if r := &p.doc.Runs[i]; r.State == schedule.Due && r.Try == 0 {
			to := *r
			to.State, to.Why = schedule.Skipped, joinWhy("not submitted before the next time", r.Why)
			p.set(r, to)
		}
	}
	run := schedule.Run{At: latest, Revision: p.doc.Revision, State: schedule.Due, Missed: p.times.Count(since, latest.Add(-time.Nanosecond))}
	if other != "" {
		run.State, run.Why = schedule.Skipped, other+" has not ended"
	}
	p.doc.Runs = append(p.doc.Runs, run)
}

// dropLate skips due runs that would begin later than they may.
func (p *plan) dropLate() {
	late := p.doc.Spec.Late
	if late <= 0 {
		return
	}
	for i := range p.doc.Runs {
		r := &p.doc.Runs[i]
		if r.State != schedule.Due || r.Try > 0 {
			continue
		}
		if end := r.At.Add(late); !p.in.Now.After(end) {
			p.wakeAt(end.Add(time.Nanosecond))
			continue
		}
		to := *r
		to.State, to.Why = schedule.Skipped, joinWhy(fmt.Sprintf("%s late, at most %s is allowed", p.in.Now.Sub(r.At).Round(time.Second), late), r.Why)
		p.set(r, to)
	}
}

// readRefusals takes over why due runs were refused.
func (p *plan) readRefusals() {
	for i := range p.doc.Runs {
		r := &p.doc.Runs[i]
		f := p.refusalOf(r)
		if r.State != schedule.Due || f == nil {
			continue
		}
		to := *r
		to.Why = f.Why
		if f.Never {
			to.State = schedule.Refused
		}
		p.set(r, to)
	}
}

func (p *plan) refusalOf(r *schedule.Run) *Refusal {
	for i := range p.in.Refused {
		if p.in.Refused[i].Part == partOf(r) {
			return &p.in.Refused[i]
		}
	}
	return nil
}

// submitDue submits due runs, those that replace others after the end of these.
func (p *plan) submitDue() {
	for i := range p.doc.Runs {
		r := &p.doc.Runs[i]
		if r.State != schedule.Due {
			continue
		}
		if p.doc.Spec.Overlap == schedule.Replace && p.replaceOthers(r) {
			continue
		}
		if f := p.refusalOf(r); f != nil && f.Until.After(p.in.Now) {
			p.wakeAt(f.Until)
			continue
		}
		if p.doc.Spec.Overlap == schedule.Replace && len(p.out.Submit) > 0 {
			continue // the next decision replaces the one that is submitted now
		}
		p.out.Submit = append(p.out.Submit, Submission{Part: partOf(r), At: r.At.In(p.times.Zone())})
	}
}

// replaceOthers cancels the jobs that a run replaces, each once, and reports whether some have not ended.
func (p *plan) replaceOthers(r *schedule.Run) (wait bool) {
	for _, j := range p.in.Jobs {
		if j.State.Final() || j.Part == partOf(r) {
			continue
		}
		wait = true
		if !j.Ending && !slices.ContainsFunc(p.out.Cancel, func(x Cancel) bool { return x.Job == j.ID }) {
			p.out.Cancel = append(p.out.Cancel, Cancel{j.ID, "replaced by the run of " + timeText(&p.doc, r.At)})
		}
	}
	return wait
}

// findAlive names the oldest run that has not ended, for people; empty: there is none. Due runs by the
// clock, which give way to later ones, do not count.
func findAlive(d *schedule.Document, jobs []Job) string {
	for i := range d.Runs {
		r := &d.Runs[i]
		if r.State == schedule.Due && r.Try > 0 {
			return "the run that " + r.By + " asked for"
		}
		for _, j := range jobs {
			if !j.State.Final() && j.Part == partOf(r) {
				return fmt.Sprintf("the run of %s (job %s)", timeText(d, r.At), cmp.Or(r.Job, j.ID))
			}
		}
	}
	for _, j := range jobs {
		if !j.State.Final() {
			return fmt.Sprintf("job %s of an earlier run", j.ID)
		}
	}
	return ""
}

// trimRuns forgets the oldest runs that are over and that nobody asked to keep.
func (p *plan) trimRuns() {
	keep := p.doc.Spec.Keep
	done, failed, skipped := keep.Done, keep.Failed, mostSkipped
	keeps := make([]bool, len(p.doc.Runs))
	for i := range slices.Backward(p.doc.Runs) {
		left := &failed
		switch r := &p.doc.Runs[i]; {
		case !r.State.Over():
			keeps[i] = true
			continue
		case r.State == schedule.Skipped:
			left = &skipped
		case r.Outcome == job.Completed:
			left = &done
		}
		if *left > 0 {
			*left--
			keeps[i] = true
		}
	}
	kept := p.doc.Runs[:0]
	for i := range keeps {
		if keeps[i] {
			kept = append(kept, p.doc.Runs[i])
		}
	}
	p.changed = p.changed || len(kept) < len(keeps)
	p.doc.Runs = kept
}

// timeText is a time for people, in the zone of the schedule.
func timeText(d *schedule.Document, t time.Time) string {
	if zone, err := schedule.LoadZone(d.Spec.Zone); err == nil {
		t = t.In(zone)
	}
	return t.Format("2006-01-02 15:04")
}

func joinWhy(a, b string) string {
	if b == "" {
		return a
	}
	return a + ": " + b
}
