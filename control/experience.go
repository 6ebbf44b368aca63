package control

import (
	"context"
	"slices"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/whatif"
	"github.com/coxswain-sched/coxswain/store"
)

// pastRead is how many of the last jobs are read from the store.
const pastRead = 10_000

// loadEstimates reads the past from the store, once.
func (rd *reader) loadEstimates(ctx context.Context) error {
	if rd.of.state.Estimates.IsLoaded() {
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
		if state.CountsForEstimates(j.State) && !j.Started.IsZero() {
			took.Add(j.Spec.Name, j.Spec, j.Ended.Sub(j.Started))
		}
		if !j.Started.IsZero() {
			misses.Add(state.ToNanos(ended[i].ForetoldAt), state.ToNanos(ended[i].Foretold), state.ToNanos(j.Started))
		}
	}
	rd.of.state.Estimates.SetLoaded(took, misses)
	return nil
}
