package state

import (
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/whatif"
)

// EstimateHistory is how long jobs really took, and how far estimates of starts were off. It is
// read from the store when it is first needed, and kept up to date from then on. It is safe for
// concurrent use.
type EstimateHistory struct {
	mu     sync.Mutex
	took   *whatif.History // nil: nobody has asked yet
	misses *whatif.Misses

	handed map[string][]time.Duration // by pool: how long the last jobs that were handed over waited there; the newest last
}

// handedKept is how many waits are kept of a pool.
const handedKept = 32

// noteHandedWait notes how long a job waited for the scheduler of its pool.
func (p *EstimateHistory) noteHandedWait(pool string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handed == nil {
		p.handed = map[string][]time.Duration{}
	}
	list := append(p.handed[pool], max(d, 0))
	p.handed[pool] = list[max(len(list)-handedKept, 0):]
}

// handedWaits returns a copy of the waits that are kept of a pool.
func (p *EstimateHistory) handedWaits(pool string) []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.handed[pool])
}

// IsLoaded reports whether the past has been read.
func (p *EstimateHistory) IsLoaded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took != nil
}

// SetLoaded sets the past, unless somebody else has read it meanwhile.
func (p *EstimateHistory) SetLoaded(took *whatif.History, misses *whatif.Misses) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.took == nil {
		p.took, p.misses = took, misses
	}
}

// RunTime estimates how long a job takes that has run for elapsed.
func (p *EstimateHistory) RunTime(name string, spec *job.Spec, elapsed time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took.Took(name, spec, elapsed)
}

// StartInterval is the interval around an estimated start in which jobs really start;
// false: too few estimates are known.
func (p *EstimateHistory) StartInterval(now, estimate int64) (whatif.Interval, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.misses == nil {
		return whatif.Interval{}, false
	}
	return p.misses.Around(now, estimate)
}

// CountsForEstimates reports whether the run time of a job that ended like this tells something
// about other jobs.
func CountsForEstimates(s job.State) bool {
	return s == job.Completed || s == job.Failed || s == job.Timeout || s == job.OutOfMemory
}

// noteEnded notes how long a job took.
func (p *EstimateHistory) noteEnded(e *JobRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.took == nil || !CountsForEstimates(e.State) || e.Last == nil || e.Last.started == 0 {
		return
	}
	var spec job.Spec
	e.Shared.unpackSpec(e.delta, false, &spec)
	if spec.Part != nil {
		return // when a replica ends says nothing of other jobs
	}
	p.took.Add(spec.Name, &spec, time.Duration(e.Last.ended-e.Last.started))
}

// noteStarted notes when a job really started of which that was foretold.
func (p *EstimateHistory) noteStarted(e *JobRecord, at int64) {
	m := e.Extra
	if m == nil || m.Foretold == 0 || e.Attempt > 1 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.misses != nil {
		p.misses.Add(m.ForetoldAt, m.Foretold, at)
	}
}

// HandedWait is how long a job that is handed over to the scheduler of a pool now is taken to wait
// there: the median of the last ones, in which those that wait there count with the time that
// they have waited. ok is false if none of either is known. The caller holds the lock.
func (s *State) HandedWait(pool string, now time.Time) (d time.Duration, ok bool) {
	waits := s.Estimates.handedWaits(pool)
	for _, e := range s.Live {
		if e.WaitsInPool() && e.Last.Pool == pool {
			waits = append(waits, max(now.Sub(FromNanos(e.Last.Handed)), 0))
		}
	}
	if len(waits) == 0 {
		return 0, false
	}
	slices.Sort(waits)
	return waits[len(waits)/2], true
}
