package slurm

import (
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/explain"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
)

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
