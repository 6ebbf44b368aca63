package slurm

import (
	"context"
	"errors"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/explain"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ engine.StartEstimator = (*Engine)(nil)

// mostEstimates is how many questions for a start go on at once: slurmctld holds its locks for each.
const mostEstimates = 2

// EstimateStart is engine.StartEstimator's: what slurmctld says of the job as it would be handed over, with the
// rights of its owner. Slurm counts what runs and what waits there.
func (e *Engine) EstimateStart(ctx context.Context, d *engine.JobDraft) (time.Time, error) {
	k, ok := e.cfg.Site.(site.StartEstimator)
	if !ok {
		return time.Time{}, fault.New(fault.Unsupported, "this way into the cluster cannot be asked when a job would start")
	}
	d = e.placeDraft(d)
	if err := e.checkSubmittable(d.Spec, d.Script, d.Env); err != nil {
		return time.Time{}, e.atDoor(err)
	}
	sub, err := e.draftSubmission(d)
	if err != nil {
		return time.Time{}, e.atDoor(err)
	}
	select {
	case e.estimating <- struct{}{}:
		defer func() { <-e.estimating }()
	case <-ctx.Done():
		return time.Time{}, fault.New(fault.Unavailable, "others ask Slurm for the starts of their jobs: %w", context.Cause(ctx))
	}
	if e.recentlySilent() {
		return time.Time{}, fault.New(fault.Unavailable, "Slurm did not answer a moment ago")
	}
	short, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	at, err := k.EstimateStart(short, sub)
	switch {
	case err != nil && ctx.Err() == nil && (fault.KindOf(err) == fault.Unavailable || errors.Is(err, context.DeadlineExceeded)):
		e.noteSilence()
		return time.Time{}, err
	case err != nil:
		return time.Time{}, err
	case time.Until(at) > farthest:
		return time.Time{}, nil
	}
	return at, nil
}

// farthest is how far ahead an estimate of Slurm's is believed: it reckons with a year for a
// job of no time limit, and behind several with more.
const farthest = 300 * 24 * time.Hour

// describePending is what a job that waits says: Slurm's word for the reason, and when Slurm expects to
// start it, where it does. Slurm reckons anew each cycle: what differs by less than a minute, or
// a tenth of the wait, is not said again.
func (a *attempt) describePending(j *site.Job) string {
	now := time.Now()
	if j.Held || !j.Started.After(now) || j.Started.Sub(now) > farthest {
		a.expected = time.Time{}
		return j.Reason
	}
	if d := j.Started.Sub(a.expected).Abs(); a.expected.IsZero() || !a.expected.After(now) || d >= max(time.Minute, j.Started.Sub(now)/10) {
		a.expected = j.Started
	}
	return explain.WithStart(j.Reason, a.expected)
}

// Explain is engine.Explainer's.
func (e *Engine) Explain(word string) (what, help string) { return explain.Reason(word) }
