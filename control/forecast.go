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
func (rd *reader) runAhead(ctx context.Context, work func(s *sched.Snapshot, now sched.Instant, took whatif.Took)) error {
	if err := rd.loadEstimates(ctx); err != nil {
		return err
	}
	select {
	case rd.ahead.turn <- struct{}{}:
		defer func() { <-rd.ahead.turn }()
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "others are looking ahead: %w", ctx.Err()).Advise("ask again in a moment")
	}
	rd.of.state.RLock()
	s := rd.of.core.Snapshot()
	now := sched.Instant(rd.of.clock.Now().UnixNano())
	rd.of.state.RUnlock()
	s.Sort()
	names := make(map[job.ID]string, len(s.Queue)+len(s.Running))
	rd.Scan(Filter{Live: true}, func(v *state.View) bool { names[v.Job.ID] = v.Job.Spec.Name; return true })
	work(s, now, func(id job.ID, spec *job.Spec, elapsed time.Duration) time.Duration {
		return rd.of.state.Estimates.RunTime(names[id], spec, elapsed)
	})
	return nil
}

// Foretell looks ahead and publishes when waiting jobs will start, unless somebody has
// a moment ago. Of jobs of which it is said for the first time it is kept, to be
// compared with their real starts.
func (rd *reader) Foretell(ctx context.Context) error { return rd.forecastFor(ctx, 0) }

// forecastFor is Foretell for the sake of a job: one that the latest forecast does not
// know is a reason to make another.
func (rd *reader) forecastFor(ctx context.Context, id job.ID) error {
	now := sched.Instant(rd.of.clock.Now().UnixNano())
	rd.of.state.RLock()
	f, news := rd.ahead.latest, rd.of.flight.news
	busy := len(rd.of.state.Live) > forecastBusy
	rd.of.state.RUnlock()
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
			case rd.ahead.wanted <- struct{}{}:
			default:
			}
			return nil
		}
	}
	return rd.runAhead(ctx, func(s *sched.Snapshot, now sched.Instant, took whatif.Took) {
		o := whatif.Run(s, now, &whatif.Change{}, took, whatif.Bounds{Steps: forecastSteps, Stop: func() bool { return ctx.Err() != nil }})
		f := &forecast{at: now, news: news, starts: make(map[job.ID]sched.Instant, len(o.Jobs))}
		for i := range o.Jobs {
			f.starts[o.Jobs[i].ID] = o.Jobs[i].Start
		}
		if len(s.Queue)+len(s.Running)+len(s.Nodes) <= adviseAtMost {
			f.advice = whatif.NewAdviser(s, now)
		}
		rd.publishForecast(f)
	})
}

// publishForecast keeps a forecast, and of some jobs what it says for the first time.
func (rd *reader) publishForecast(f *forecast) {
	s := rd.of.state
	s.Lock()
	defer s.Unlock()
	rd.ahead.latest = f
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
func (rd *reader) adviseJob(id job.ID) (holders []sched.Holder, changes []whatif.Smaller) {
	rd.of.state.RLock()
	f := rd.ahead.latest
	rd.of.state.RUnlock()
	if f == nil || f.advice == nil {
		return nil, nil
	}
	rd.ahead.advising.Lock()
	defer rd.ahead.advising.Unlock()
	return f.advice.Holders(id), f.advice.Smallest(id)
}

// countAhead says how many jobs are before one, as of the latest forecast, where there are
// too many lines of them to count that each time (sched.Core.Reasons).
func (rd *reader) countAhead(id job.ID, why []reason.Reason) {
	rd.of.state.RLock()
	f := rd.ahead.latest
	rd.of.state.RUnlock()
	for i := range why {
		if r := &why[i]; r.Code == reason.Priority && r.Ahead == 0 && f != nil && f.advice != nil {
			r.Ahead, _ = f.advice.Ahead(id)
		}
	}
}

// expectedStart is what the latest forecast says of a job. The state is locked.
func (rd *reader) expectedStart(id job.ID, now time.Time) (out Expected) {
	f := rd.ahead.latest
	if f == nil || f.starts[id] == 0 {
		return out
	}
	at := max(int64(f.starts[id]), now.UnixNano())
	out.Start = state.FromNanos(at)
	if i, ok := rd.of.state.Estimates.StartInterval(now.UnixNano(), at); ok {
		out.From, out.To = state.FromNanos(i.From), state.FromNanos(i.To)
		out.Late, out.Known = time.Duration(i.Late), i.Known
	}
	return out
}

// forecastLoop looks ahead at intervals until ctx ends, while something waits.
func (rd *reader) forecastLoop(ctx context.Context) {
	for ctx.Err() == nil {
		timer, stop := rd.of.clock.After(rd.of.forecastEach)
		select {
		case <-timer:
		case <-rd.ahead.wanted:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil || !rd.hasPendingJobs() {
			continue
		}
		if err := rd.Foretell(ctx); err != nil && ctx.Err() == nil {
			rd.of.log.Warn("starts cannot be estimated", "error", err)
		}
	}
}

// hasPendingJobs reports whether a job waits.
func (rd *reader) hasPendingJobs() bool {
	rd.of.state.RLock()
	defer rd.of.state.RUnlock()
	return slices.ContainsFunc(rd.of.state.Live, func(e *state.JobRecord) bool { return e.State == job.Pending && !e.Gone })
}
