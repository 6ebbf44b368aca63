package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/whatif"
)

// forecast says when each waiting job will start, as of an instant: the core itself
// went on from there on estimated run times.
type forecast struct {
	at     sched.Instant
	news   uint64                   // of the flight record then
	starts map[job.ID]sched.Instant // 0: not within the bounds
	advice *whatif.Adviser          // of the state that it began with; nil: that is too large
}

// forecaster is the worker that looks ahead. One request works at a time; the control
// loop waits for none of it.
type forecaster struct {
	turn   chan struct{} // holds one element while somebody works
	latest *forecast     // guarded by the state

	advising sync.Mutex    // held while an adviser is asked
	wanted   chan struct{} // holds one element while a forecast is wanted before its time
}

// Bounds of the work.
const (
	forecastSteps = 20_000                 // of the core, for one forecast
	forecastYoung = 250 * time.Millisecond // one that is younger is not made again …
	forecastFresh = 10 * time.Second       // … nor one that is younger than this, if nothing has happened since
	forecastBusy  = 2000                   // live jobs; with fewer, any change makes a forecast old
	adviseAtMost  = 250_000                // jobs and nodes; with more of them no change is looked for
	toldMost      = 4096                   // live jobs of which a forecast is kept to compare it with the real start
)

// runAhead runs the core ahead. It waits for its turn.
func (c *Control) runAhead(ctx context.Context, work func(s *sched.Snapshot, now sched.Instant, took whatif.Took)) error {
	if err := c.loadEstimates(ctx); err != nil {
		return err
	}
	select {
	case c.ahead.turn <- struct{}{}:
		defer func() { <-c.ahead.turn }()
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "others are looking ahead: %w", ctx.Err()).Advise("ask again in a moment")
	}
	c.state.RLock()
	s := c.core.Snapshot()
	now := sched.Instant(c.cfg.Clock.Now().UnixNano())
	c.state.RUnlock()
	s.Sort()
	names := make(map[job.ID]string, len(s.Queue)+len(s.Running))
	c.Scan(Filter{Live: true}, func(v *state.View) bool { names[v.Job.ID] = v.Job.Spec.Name; return true })
	work(s, now, func(id job.ID, spec *job.Spec, elapsed time.Duration) time.Duration {
		return c.state.Estimates.RunTime(names[id], spec, elapsed)
	})
	return nil
}

// Foretell looks ahead and publishes when waiting jobs will start, unless somebody has
// a moment ago. Of jobs of which it is said for the first time it is kept, to be
// compared with their real starts.
func (c *Control) Foretell(ctx context.Context) error { return c.forecastFor(ctx, 0) }

// forecastFor is Foretell for the sake of a job: one that the latest forecast does not
// know is a reason to make another.
func (c *Control) forecastFor(ctx context.Context, id job.ID) error {
	now := sched.Instant(c.cfg.Clock.Now().UnixNano())
	c.state.RLock()
	f, news := c.ahead.latest, c.flight.news
	busy := len(c.state.Live) > forecastBusy
	c.state.RUnlock()
	known := id == 0
	if f != nil && !known {
		_, known = f.starts[id]
	}
	if f != nil && now >= f.at {
		age := time.Duration(now - f.at)
		switch {
		case known && (age < forecastYoung || age < forecastFresh && (busy || f.news == news)):
			return nil
		case busy && id != 0: // nobody waits for so large a queue: the next forecast will know
			select {
			case c.ahead.wanted <- struct{}{}:
			default:
			}
			return nil
		}
	}
	return c.runAhead(ctx, func(s *sched.Snapshot, now sched.Instant, took whatif.Took) {
		o := whatif.Run(s, now, &whatif.Change{}, took, whatif.Bounds{Steps: forecastSteps, Stop: func() bool { return ctx.Err() != nil }})
		f := &forecast{at: now, news: news, starts: make(map[job.ID]sched.Instant, len(o.Jobs))}
		for i := range o.Jobs {
			f.starts[o.Jobs[i].ID] = o.Jobs[i].Start
		}
		if len(s.Queue)+len(s.Running)+len(s.Nodes) <= adviseAtMost {
			f.advice = whatif.NewAdviser(s, now)
		}
		c.publishForecast(f)
	})
}

// publishForecast keeps a forecast, and of some jobs what it says for the first time.
func (c *Control) publishForecast(f *forecast) {
	s := c.state
	s.Lock()
	defer s.Unlock()
	c.ahead.latest = f
	room := toldMost
	for _, e := range s.Live {
		if e.State != job.Pending || e.Gone {
			continue
		}
		if room--; room < 0 {
			return
		}
		if m := e.ExtraOrZero(); m.Foretold != 0 || f.starts[e.ID] == 0 || m.Failed > 0 {
			continue
		}
		e.EnsureExtra().Foretold, e.EnsureExtra().ForetoldAt = int64(f.starts[e.ID]), int64(f.at)
		s.MarkUnprojected(e) // its row has it when it is written next
	}
}

// Expected is when a waiting job is expected to start.
type Expected struct {
	Start    time.Time // zero: nobody can tell
	From, To time.Time // it starts between these in 80 % of cases; zero: too few estimates are known
	Late     time.Duration
	Known    int // estimates of the past week that this is known from
}

// adviseJob says who has what a waiting job needs, and with which changes of its request
// it would start now, as of the latest forecast. The loop is not asked.
func (c *Control) adviseJob(id job.ID) (holders []sched.Holder, changes []whatif.Smaller) {
	c.state.RLock()
	f := c.ahead.latest
	c.state.RUnlock()
	if f == nil || f.advice == nil {
		return nil, nil
	}
	c.ahead.advising.Lock()
	defer c.ahead.advising.Unlock()
	return f.advice.Holders(id), f.advice.Smallest(id)
}

// countAhead says how many jobs are before one, as of the latest forecast, where there are
// too many lines of them to count that each time (sched.Core.Reasons).
func (c *Control) countAhead(id job.ID, why []reason.Reason) {
	c.state.RLock()
	f := c.ahead.latest
	c.state.RUnlock()
	for i := range why {
		if r := &why[i]; r.Code == reason.Priority && r.Ahead == 0 && f != nil && f.advice != nil {
			r.Ahead, _ = f.advice.Ahead(id)
		}
	}
}

// expectedStart is what the latest forecast says of a job. The state is locked.
func (c *Control) expectedStart(id job.ID, now time.Time) (out Expected) {
	f := c.ahead.latest
	if f == nil || f.starts[id] == 0 {
		return out
	}
	at := max(int64(f.starts[id]), now.UnixNano())
	out.Start = state.FromNanos(at)
	if i, ok := c.state.Estimates.StartInterval(now.UnixNano(), at); ok {
		out.From, out.To = state.FromNanos(i.From), state.FromNanos(i.To)
		out.Late, out.Known = time.Duration(i.Late), i.Known
	}
	return out
}

// forecastLoop looks ahead at intervals until ctx ends, while something waits.
func (c *Control) forecastLoop(ctx context.Context) {
	for ctx.Err() == nil {
		timer, stop := c.cfg.Clock.After(c.cfg.Foretell)
		select {
		case <-timer:
		case <-c.ahead.wanted:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil || !c.hasPendingJobs() {
			continue
		}
		if err := c.Foretell(ctx); err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("starts cannot be estimated", "error", err)
		}
	}
}

// hasPendingJobs reports whether a job waits.
func (c *Control) hasPendingJobs() bool {
	c.state.RLock()
	defer c.state.RUnlock()
	return slices.ContainsFunc(c.state.Live, func(e *state.JobRecord) bool { return e.State == job.Pending && !e.Gone })
}
