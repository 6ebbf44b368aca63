package query

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// Forecast is when jobs start and end, as the core went on from an instant. The zero value knows
// nothing.
type Forecast struct {
	At time.Time // zero: none has been made

	starts    map[job.ID]sched.Instant
	nodes     map[job.ID][]string
	estimates *state.EstimateHistory // nil: not read
	now       time.Time
}

// Start is when a waiting job starts; zero: nobody can tell.
func (f *Forecast) Start(id job.ID) time.Time {
	at := int64(f.starts[id])
	if at == 0 {
		return time.Time{}
	}
	return state.FromNanos(max(at, f.now.UnixNano()))
}

// Nodes is where a waiting job starts, in the order of its ranks; nil: nobody can tell, or the scheduler of its pool's
// engine chooses. The result is shared: do not write to it.
func (f *Forecast) Nodes(id job.ID) []string { return f.nodes[id] }

// End is when a running job ends, if it takes as long as jobs like it took; zero: nobody can tell. It
// may be called by Scan.
func (f *Forecast) End(v *state.View) time.Time {
	if f.estimates == nil || v.Job.Started.IsZero() || v.Job.Spec.Part != nil {
		return time.Time{}
	}
	elapsed := f.now.Sub(v.Job.Started)
	took := f.estimates.RunTime(v.Job.Spec.Name, v.Job.Spec, elapsed)
	if took <= elapsed {
		return time.Time{}
	}
	return v.Job.Started.Add(took)
}

// Forecast returns the latest forecast. With few jobs it makes one, if there is none of late; with many
// it asks for one and does not wait.
func (rd *Reader) Forecast(ctx context.Context) (Forecast, error) {
	rd.of.State.RLock()
	busy := len(rd.of.State.Live) > forecastBusy
	rd.of.State.RUnlock()
	if busy {
		select {
		case rd.ahead.wanted <- struct{}{}:
		default:
		}
	} else if err := rd.Foretell(ctx); err != nil {
		return Forecast{}, err
	}
	out := Forecast{now: rd.of.Clock.Now()}
	if rd.of.State.Estimates.IsLoaded() {
		out.estimates = &rd.of.State.Estimates
	}
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	if f := rd.ahead.latest; f != nil {
		out.At, out.starts, out.nodes = state.FromNanos(int64(f.at)), f.starts, f.nodes
	}
	return out, nil
}
