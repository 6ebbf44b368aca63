package slurm

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// usageWait is how long the end of a job is kept back for accounting, which lags behind slurmctld, at
// most, and no longer than a tenth of the time that the job ran. usagePause is the time between two
// questions.
const (
	usageWait  = 2 * time.Second
	usagePause = 200 * time.Millisecond
)

// usagePatience is how long the end of a job is kept back.
func (c *Config) usagePatience(j *site.Job) time.Duration {
	if c.Usage != 0 {
		return c.Usage
	}
	return min(usageWait, max(j.Ended.Sub(j.Started), 0)/10)
}

// usageAtEnd is what accounting says that an attempt used; nil: it does not. wait: it has not heard of
// the end yet.
func (e *Engine) usageAtEnd(a *attempt, j *site.Job) (used *site.JobUse, wait bool) {
	by, ok := e.cfg.Site.(site.Accountant)
	if !ok {
		return nil, false
	}
	if a.usageSince.IsZero() {
		a.usageSince = time.Now()
	}
	e.mu.Lock()
	patience := e.cfg.usagePatience(j)
	if a.stop != nil { // who ended it waits for its nodes
		patience = 0
	}
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(e.ctx, usageWait)
	defer cancel()
	u, err := e.askUsage(ctx, by, a.id)
	switch {
	case err == nil && u != nil && u.Submitted.Equal(j.Submitted):
		return u, false
	case fault.KindOf(err) == fault.Unsupported, time.Since(a.usageSince) >= patience:
		return nil, false
	}
	time.AfterFunc(usagePause, a.wakeUp)
	return nil, true
}

// addUsage adds to the last report of an attempt what it used, and the steps that accounting knows.
func addUsage(r *engine.Report, u *site.JobUse) {
	if u == nil || len(u.Steps) == 0 {
		return
	}
	all := &rusage.Record{}
	var steps []rusage.Step
	for i := range u.Steps {
		s := &u.Steps[i]
		steps = append(steps, s.Step)
		most := max(all.Total.Memory, s.Sum.Memory) // steps may be beside each other, or not
		all.Total = all.Total.Plus(s.Sum)
		all.Total.Memory = most
		if s.Step.Step >= 0 && len(r.Tasks) < rusage.MaxSteps {
			r.Tasks = append(r.Tasks, stepTasks(s)...)
		}
	}
	if made := rusage.Make([]rusage.Node{{Use: all.Total}}, [][]rusage.Step{steps}); made != nil {
		made.Nodes = nil // accounting says nothing of nodes
		r.Used = made
	}
}

// stepTasks is a step in a report: a task for each of its nodes, for Slurm does not tell where which
// rank ran.
func stepTasks(s *site.StepUse) (out []engine.TaskReport) {
	for i, node := range s.Nodes[:min(len(s.Nodes), 64)] {
		t := engine.TaskReport{Step: s.Step.Step, Rank: i, Node: node, Name: s.Name, Started: s.Started, Ended: s.Ended, Cause: engine.Exited}
		if i == 0 {
			t.Exit = s.Exit
		}
		out = append(out, t)
	}
	return out
}

// usageQuestions asks for the use of jobs: one question at a time, for all that came meanwhile.
type usageQuestions struct {
	mu      sync.Mutex
	waiting map[uint32][]chan usageAnswer
	asking  bool
}

// usageAnswer is what was said of one job.
type usageAnswer struct {
	used *site.JobUse
	err  error
}

// askUsage returns what accounting has of a job; nil: nothing yet.
func (e *Engine) askUsage(ctx context.Context, by site.Accountant, id uint32) (*site.JobUse, error) {
	answer, q := make(chan usageAnswer, 1), &e.usage
	q.mu.Lock()
	if q.waiting == nil {
		q.waiting = map[uint32][]chan usageAnswer{}
	}
	q.waiting[id] = append(q.waiting[id], answer)
	if !q.asking {
		q.asking = true
		e.wg.Go(func() { q.askAll(e.controller, by) })
	}
	q.mu.Unlock()
	select {
	case a := <-answer:
		return a.used, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// askAll asks for those that wait, those that come meanwhile included, until there are none.
func (q *usageQuestions) askAll(k *controller, by site.Accountant) {
	for {
		q.mu.Lock()
		waiting := q.waiting
		q.waiting = map[uint32][]chan usageAnswer{}
		q.asking = len(waiting) > 0
		q.mu.Unlock()
		if len(waiting) == 0 {
			return
		}
		ctx, cancel := k.callContext()
		all, err := by.Used(ctx, slices.Sorted(maps.Keys(waiting)))
		cancel()
		for id, asked := range waiting {
			a := usageAnswer{err: err}
			if i := slices.IndexFunc(all, func(u site.JobUse) bool { return u.ID == id }); i >= 0 {
				a.used = &all[i]
			}
			for _, to := range asked {
				to <- a
			}
		}
	}
}
