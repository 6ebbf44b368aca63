package query

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
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/sched/whatif"
	"github.com/coxswain-sched/coxswain/store"
)

// forecast says when each waiting job will start, as of an instant: the core itself
// went on from there on estimated run times.
type forecast struct {
	at     sched.Instant
	news   uint64                   // of the flight record then
	starts map[job.ID]sched.Instant // 0: not within the bounds
	nodes  map[job.ID][]string      // where they start; without those of pools whose own scheduler chooses
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
	forecastNames = 50_000                 // of nodes on which jobs start, those that start first
	forecastYoung = 250 * time.Millisecond // one that is younger is not made again …
	forecastFresh = 10 * time.Second       // … nor one that is younger than this, if nothing has happened since
	forecastBusy  = 2000                   // live jobs; with fewer, any change makes a forecast old
	adviseAtMost  = 250_000                // jobs and nodes; with more of them no change is looked for
	toldMost      = 4096                   // live jobs of which a forecast is kept to compare it with the real start
)

// runAhead runs the core ahead. It waits for its turn.
func (rd *Reader) runAhead(ctx context.Context, work func(s *sched.Snapshot, now sched.Instant, took whatif.Took)) error {
	if err := rd.loadEstimates(ctx); err != nil {
		return err
	}
	select {
	case rd.ahead.turn <- struct{}{}:
		defer func() { <-rd.ahead.turn }()
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "others are looking ahead: %w", ctx.Err()).Advise("ask again in a moment")
	}
	rd.of.State.RLock()
	s := rd.of.Core.Snapshot()
	now := sched.Instant(rd.of.Clock.Now().UnixNano())
	rd.of.State.RUnlock()
	s.Sort()
	names := make(map[job.ID]string, len(s.Queue)+len(s.Running))
	rd.Scan(Filter{Live: true}, func(v *state.View) bool { names[v.Job.ID] = v.Job.Spec.Name; return true })
	work(s, now, func(id job.ID, spec *job.Spec, elapsed time.Duration) time.Duration {
		return rd.of.State.Estimates.RunTime(names[id], spec, elapsed)
	})
	return nil
}

// Foretell makes a forecast of when waiting jobs will start, unless there is a recent one. The
// first estimate for a job is kept, to be compared with its real start.
func (rd *Reader) Foretell(ctx context.Context) error { return rd.forecastFor(ctx, 0) }

// forecastFor is Foretell for the sake of a job: one that the latest forecast does not
// know is a reason to make another.
func (rd *Reader) forecastFor(ctx context.Context, id job.ID) error {
	now := sched.Instant(rd.of.Clock.Now().UnixNano())
	rd.of.State.RLock()
	f, news := rd.ahead.latest, rd.of.Flight.news
	busy := len(rd.of.State.Live) > forecastBusy
	rd.of.State.RUnlock()
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
		o := whatif.Run(s, now, &whatif.Change{}, took, whatif.Bounds{Steps: forecastSteps, Names: forecastNames, Stop: func() bool { return ctx.Err() != nil }})
		f := &forecast{at: now, news: news, starts: make(map[job.ID]sched.Instant, len(o.Jobs)), nodes: map[job.ID][]string{}}
		for i := range o.Jobs {
			j := &o.Jobs[i]
			f.starts[j.ID] = j.Start
			if names := slices.DeleteFunc(j.Nodes, aggregate.Is); len(names) > 0 {
				f.nodes[j.ID] = names
			}
		}
		if len(s.Queue)+len(s.Running)+len(s.Nodes) <= adviseAtMost {
			f.advice = whatif.NewAdviser(s, now)
		}
		rd.publishForecast(f)
	})
}

// publishForecast keeps a forecast, and of some jobs what it says for the first time.
func (rd *Reader) publishForecast(f *forecast) {
	s := rd.of.State
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
func (rd *Reader) adviseJob(id job.ID) (holders []sched.Blocker, changes []whatif.Smaller) {
	rd.of.State.RLock()
	f := rd.ahead.latest
	rd.of.State.RUnlock()
	if f == nil || f.advice == nil {
		return nil, nil
	}
	rd.ahead.advising.Lock()
	defer rd.ahead.advising.Unlock()
	return f.advice.Blockers(id), f.advice.Smallest(id)
}

// countAhead says how many jobs are before one, as of the latest forecast, where there are
// too many lines of them to count that each time (sched.Core.Reasons).
func (rd *Reader) countAhead(id job.ID, why []reason.Reason) {
	rd.of.State.RLock()
	f := rd.ahead.latest
	rd.of.State.RUnlock()
	for i := range why {
		if r := &why[i]; r.Code == reason.Priority && r.Ahead == 0 && f != nil && f.advice != nil {
			r.Ahead, _ = f.advice.Ahead(id)
		}
	}
}

// expectedStart is what the latest forecast says of a job. The state is locked.
func (rd *Reader) expectedStart(id job.ID, now time.Time) (out Expected) {
	f := rd.ahead.latest
	if f == nil || f.starts[id] == 0 {
		return out
	}
	at := max(int64(f.starts[id]), now.UnixNano())
	out.Start = state.FromNanos(at)
	if i, ok := rd.of.State.Estimates.StartInterval(now.UnixNano(), at); ok {
		out.From, out.To = state.FromNanos(i.From), state.FromNanos(i.To)
		out.Late, out.Known = time.Duration(i.Late), i.Known
	}
	return out
}

// KeepForecasts makes forecasts at intervals while jobs wait, until ctx ends.
func (rd *Reader) KeepForecasts(ctx context.Context) {
	for ctx.Err() == nil {
		timer, stop := rd.of.Clock.After(rd.of.ForecastEach)
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
			rd.of.Log.Warn("starts cannot be estimated", "error", err)
		}
	}
}

// hasPendingJobs reports whether a job waits.
func (rd *Reader) hasPendingJobs() bool {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	return slices.ContainsFunc(rd.of.State.Live, func(e *state.JobRecord) bool { return e.State == job.Pending && !e.Gone })
}

// pastRead is how many of the last jobs are read from the store.
const pastRead = 10_000

// loadEstimates reads the past from the store, once.
func (rd *Reader) loadEstimates(ctx context.Context) error {
	if rd.of.State.Estimates.IsLoaded() {
		return nil
	}
	var ended []state.View
	if _, err := rd.History(ctx, store.Query{Limit: pastRead}, func(v *state.View) bool {
		ended = append(ended, state.View{Job: v.Job, Foretold: v.Foretold, ForetoldAt: v.ForetoldAt})
		return true
	}); err != nil {
		return err
	}
	read := map[job.ID]bool{}
	for i := range ended {
		read[ended[i].Job.ID] = true
	}
	rd.Scan(Filter{}, func(v *state.View) bool { // those that the store does not have yet
		if v.Job.State.Final() && !read[v.Job.ID] {
			j := v.Job
			spec := *v.Job.Spec
			j.Spec = &spec
			ended = append(ended, state.View{Job: j, Foretold: v.Foretold, ForetoldAt: v.ForetoldAt})
		}
		return true
	})
	took, misses := whatif.NewHistory(), new(whatif.Misses)
	slices.SortStableFunc(ended, func(a, b state.View) int { return a.Job.Started.Compare(b.Job.Started) })
	for i := range ended {
		j := &ended[i].Job
		if state.CountsForEstimates(j.State) && !j.Started.IsZero() && j.Spec.Part == nil {
			took.Add(j.Spec.Name, j.Spec, j.Ended.Sub(j.Started))
		}
		if !j.Started.IsZero() {
			misses.Add(state.ToNanos(ended[i].ForetoldAt), state.ToNanos(ended[i].Foretold), state.ToNanos(j.Started))
		}
	}
	rd.of.State.Estimates.SetLoaded(took, misses)
	return nil
}
