package slurm

import (
	"cmp"
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

// What running jobs use is asked of all at once, at most so many, and again after Config.LiveUsage, or after so many times as
// long as the answer took: sstat asks the nodes of each. Who asks for one attempt waits so long at most.
const (
	liveShare    = 10
	mostLiveJobs = 500
	liveWithin   = 10 * time.Second
)

var (
	_ engine.UsageSampler = (*Engine)(nil)
	_ engine.UsageOrigin  = (*Engine)(nil)
)

// liveUsage is what running attempts have used, as the cluster said last.
type liveUsage struct {
	mu     sync.Mutex
	of     map[engine.Ref]*sampledUse
	next   time.Time     // when the cluster is asked again
	most   int           // jobs in one question, fewer after an answer that did not come in time; 0: mostLiveJobs
	err    error         // of the last question
	asking chan struct{} // closed when the answer has come; nil: nobody asks
}

// sampledUse is what one attempt has used. A step that has ended counts with what was heard of it last.
type sampledUse struct {
	asked time.Time // zero: never
	at    time.Time // zero: nothing was heard
	steps map[int]rusage.Step
	peak  int64 // bytes, of all steps at a time
	now   int64
}

// MeasuredBy is engine.UsageOrigin's.
func (e *Engine) MeasuredBy() string { return "sstat" }

// Usage is what Slurm has measured of an attempt that runs; see engine.UsageSampler. One sstat asks for all attempts of
// the pool, each 30 s at most. nil: nothing was measured yet.
func (e *Engine) Usage(ctx context.Context, ref engine.Ref) (*rusage.Record, error) {
	by, ok := e.cfg.Site.(site.Sampler)
	if !ok {
		return nil, fault.New(fault.Unsupported, "what running jobs use is not asked of this cluster")
	}
	running, hetero := e.runningJobs()
	switch _, ok := running[ref]; {
	case hetero[ref]:
		return nil, fault.New(fault.Unsupported, "of a heterogeneous job, Slurm does not tell what all components use while they run")
	case !ok:
		return nil, fault.New(fault.Conflict, "attempt %s does not run", ref)
	}
	l := &e.live
	l.mu.Lock()
	if l.asking == nil && time.Now().After(l.next) && e.ctx.Err() == nil {
		l.asking = make(chan struct{})
		e.wg.Go(func() { l.askRunning(e.controller, by, running, e.cfg.LiveUsage) })
	}
	asking := l.asking
	l.mu.Unlock()
	if asking != nil {
		ctx, cancel := context.WithTimeout(ctx, liveWithin)
		defer cancel()
		select {
		case <-asking:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.of[ref]; u != nil && !u.at.IsZero() {
		return u.record(), nil
	}
	return nil, l.err
}

// runningJobs are the numbers of the jobs of attempts that run, and those that are heterogeneous jobs, which have
// several.
func (e *Engine) runningJobs() (ids map[engine.Ref]uint32, hetero map[engine.Ref]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids, hetero = map[engine.Ref]uint32{}, map[engine.Ref]bool{}
	for ref, a := range e.attempts {
		switch {
		case a.id == 0 || a.report.Phase != engine.Running || a.order == nil:
		case len(a.order.Job.Spec.Groups) > 1:
			hetero[ref] = true
		default:
			ids[ref] = a.id
		}
	}
	return ids, hetero
}

// askRunning asks for attempts that run, those first that were asked for longest ago, and forgets the others.
func (l *liveUsage) askRunning(k *controller, by site.Sampler, running map[engine.Ref]uint32, pause time.Duration) {
	l.mu.Lock()
	next, byID := make(map[engine.Ref]*sampledUse, len(running)), map[uint32]*sampledUse{}
	for ref, id := range running {
		u := l.of[ref]
		if u == nil {
			u = &sampledUse{steps: map[int]rusage.Step{}}
		}
		next[ref], byID[id] = u, u
	}
	l.of = next
	ids := slices.SortedFunc(maps.Keys(byID), func(a, b uint32) int {
		return cmp.Or(byID[a].asked.Compare(byID[b].asked), byID[a].at.Compare(byID[b].at), cmp.Compare(a, b))
	})
	most, begun := cmp.Or(l.most, mostLiveJobs), time.Now()
	ids = ids[:min(len(ids), most)]
	for _, id := range ids {
		byID[id].asked = begun
	}
	l.mu.Unlock()
	ctx, cancel := k.callContext()
	defer cancel()
	all, err := by.UsedNow(ctx, ids)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for i := range all {
		if u := byID[all[i].ID]; u != nil {
			u.add(now, all[i].Steps)
		}
	}
	if l.most = min(2*most, mostLiveJobs); err != nil && ctx.Err() != nil { // a node that does not answer costs the answers of all
		l.most = max(len(ids)/2, 1)
	}
	l.err, l.next = err, now.Add(max(pause, liveShare*now.Sub(begun)))
	close(l.asking)
	l.asking = nil
}

// add takes in what was said of the steps that run.
func (u *sampledUse) add(now time.Time, steps []site.StepUse) {
	u.at, u.now = now, 0
	for i, s := range u.steps {
		s.Running, s.Sum.Now = 0, 0
		u.steps[i] = s
	}
	for i := range steps {
		s := steps[i].Step
		u.now += s.Sum.Now
		s.Sum.Memory = max(s.Sum.Memory, u.steps[s.Step].Sum.Memory)
		u.steps[s.Step] = s
	}
	u.peak = max(u.peak, u.now)
}

// record is what is known; nil: nothing.
func (u *sampledUse) record() *rusage.Record {
	var total rusage.Use
	steps := slices.Collect(maps.Values(u.steps))
	for i := range steps {
		total = total.Plus(steps[i].Sum)
	}
	total.Memory, total.Now = u.peak, u.now
	made := rusage.Make([]rusage.Node{{Use: total}}, [][]rusage.Step{steps})
	if made != nil {
		made.Nodes, made.At = nil, u.at // Slurm says nothing of nodes
	}
	return made
}
