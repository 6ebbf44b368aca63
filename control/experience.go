package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/whatif"
	"github.com/coxswain-sched/coxswain/store"
)

// estimateHistory is how long jobs really took, and how far estimates of starts were off. It is
// read from the store when it is first asked for, and kept up to date from then on.
type estimateHistory struct {
	mu     sync.Mutex
	took   *whatif.History // nil: nobody has asked yet
	misses *whatif.Misses
}

// pastRead is how many of the last jobs are read from the store.
const pastRead = 10_000

// loadEstimates reads the past from the store, once.
func (c *Control) loadEstimates(ctx context.Context) error {
	if c.state.estimates.isLoaded() {
		return nil
	}
	var ended []View
	if _, err := c.History(ctx, store.Query{Limit: pastRead}, func(v *View) bool {
		ended = append(ended, View{Job: v.Job, Foretold: v.Foretold, ForetoldAt: v.ForetoldAt})
		return true
	}); err != nil {
		return err
	}
	read := map[job.ID]bool{}
	for i := range ended {
		read[ended[i].Job.ID] = true
	}
	c.Scan(Filter{}, func(v *View) bool { // those that the store does not have yet
		if v.Job.State.Final() && !read[v.Job.ID] {
			j := v.Job
			spec := *v.Job.Spec
			j.Spec = &spec
			ended = append(ended, View{Job: j, Foretold: v.Foretold, ForetoldAt: v.ForetoldAt})
		}
		return true
	})
	took, misses := whatif.NewHistory(), new(whatif.Misses)
	slices.SortStableFunc(ended, func(a, b View) int { return a.Job.Started.Compare(b.Job.Started) })
	for i := range ended {
		j := &ended[i].Job
		if countsForEstimates(j.State) && !j.Started.IsZero() {
			took.Add(j.Spec.Name, j.Spec, j.Ended.Sub(j.Started))
		}
		if !j.Started.IsZero() {
			misses.Add(toNanos(ended[i].ForetoldAt), toNanos(ended[i].Foretold), toNanos(j.Started))
		}
	}
	c.state.estimates.setLoaded(took, misses)
	return nil
}

// isLoaded reports whether the past has been read.
func (p *estimateHistory) isLoaded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took != nil
}

// setLoaded takes in the past, unless somebody else has read it meanwhile.
func (p *estimateHistory) setLoaded(took *whatif.History, misses *whatif.Misses) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.took == nil {
		p.took, p.misses = took, misses
	}
}

// runTime estimates how long a job takes that has run for elapsed.
func (p *estimateHistory) runTime(name string, spec *job.Spec, elapsed time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took.Took(name, spec, elapsed)
}

// startInterval is the interval around an estimated start in which jobs really start;
// false: too few estimates are known.
func (p *estimateHistory) startInterval(now, estimate int64) (whatif.Interval, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.misses == nil {
		return whatif.Interval{}, false
	}
	return p.misses.Around(now, estimate)
}

// countsForEstimates reports whether how long a job took says something of others.
func countsForEstimates(s job.State) bool {
	return s == job.Completed || s == job.Failed || s == job.Timeout || s == job.OutOfMemory
}

// noteEnded notes how long a job took.
func (p *estimateHistory) noteEnded(e *jobRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.took == nil || !countsForEstimates(e.state) || e.last == nil || e.last.started == 0 {
		return
	}
	var spec job.Spec
	e.shared.unpackSpec(e.delta, false, &spec)
	p.took.Add(spec.Name, &spec, time.Duration(e.last.ended-e.last.started))
}

// noteStarted notes when a job really started of which that was foretold.
func (p *estimateHistory) noteStarted(e *jobRecord, at int64) {
	m := e.extra
	if m == nil || m.foretold == 0 || e.attempt > 1 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.misses != nil {
		p.misses.Add(m.foretoldAt, m.foretold, at)
	}
}
