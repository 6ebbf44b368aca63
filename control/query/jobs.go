package query

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/whatif"
	"github.com/coxswain-sched/coxswain/store"
)

// Filter selects jobs for Scan.
type Filter struct {
	After job.ID   // only larger numbers
	Live  bool     // only jobs that have not ended
	Users []string // only jobs of these; empty: of everybody
	// Whole fills Spec.Source.Given and Spec.Provenance too, which takes longer.
	Whole bool
}

// scanned is how many jobs Scan looks at before it lets the loop write.
const scanned = 128

// Scan calls f for the jobs in memory, ascending by number, until it returns
// false. The view is valid during the call only. No disk is waited for. Jobs leave
// memory some minutes after their end (Config.Keep); History has them. The state is
// locked while f runs: it has to be quick, must not wait for a network, and calls
// nothing of Control.
//
// What it shows is no picture of one instant: see LastEvent.
func (rd *Reader) Scan(fl Filter, f func(*state.View) bool) {
	s := rd.of.State
	var vr state.Viewer
	for {
		s.RLock()
		list := s.Order
		if fl.Live {
			list = s.Live
		}
		from := state.IndexAfter(list, fl.After)
		chunk := list[from:min(from+scanned, len(list))]
		for _, e := range chunk {
			fl.After = e.ID
			if e.Gone || fl.Live && e.State.Final() ||
				len(fl.Users) > 0 && !slices.Contains(fl.Users, e.Shared.Spec.Owner.User) {
				continue
			}
			if !f(rd.withPriority(vr.View(e, fl.Whole))) {
				s.RUnlock()
				return
			}
		}
		s.RUnlock()
		if len(chunk) < scanned {
			return
		}
	}
}

// Jobs returns every job in memory by number, with the number of the last change
// that the list reflects, for Next.
func (rd *Reader) Jobs(context.Context) ([]state.View, uint64, error) {
	change := rd.of.Changes.Last()
	var views []state.View
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	for _, e := range rd.of.State.Order {
		if !e.Gone {
			v := state.ViewOf(e)
			views = append(views, *rd.withPriority(&v))
		}
	}
	return views, change, nil
}

// Job returns one job, from memory or else from the store; fault.NotFound if there
// is none of that number.
func (rd *Reader) Job(ctx context.Context, id job.ID) (state.View, error) {
	rd.of.State.RLock()
	e := rd.of.State.Jobs[id]
	var v state.View
	if e != nil {
		v = state.ViewOf(e)
		rd.withPriority(&v)
	}
	rd.of.State.RUnlock()
	if e != nil {
		return v, nil
	}
	row, err := rd.of.Store.Job(ctx, uint64(id))
	switch {
	case errors.Is(err, store.ErrDamaged):
		return state.View{}, err
	case fault.KindOf(err) == fault.NotFound:
		return state.View{}, state.NoSuchJob(id)
	case err != nil:
		return state.View{}, err
	}
	return state.ViewOfRow(&row)
}

// Find returns one task of an array by its index, from memory or else from the store.
func (rd *Reader) Find(ctx context.Context, first job.ID, task uint32) (state.View, error) {
	none := fault.New(fault.NotFound, "there is no job %d_%d", first, task)
	rd.of.State.RLock()
	a := rd.of.State.ArrayByID(first)
	var indices []uint32
	if a != nil {
		indices = a.Spec.Indices // a change of the array makes another spec
	}
	rd.of.State.RUnlock()
	if a == nil {
		v, err := rd.TaskOf(ctx, first)
		if fault.KindOf(err) == fault.NotFound {
			return state.View{}, none
		}
		if err != nil {
			return state.View{}, err
		}
		indices = v.Job.Spec.Array.Indices
	}
	i, ok := slices.BinarySearch(indices, task)
	if !ok {
		return state.View{}, none
	}
	return rd.Job(ctx, first+job.ID(i))
}

// TaskOf returns a task of an array that is kept: of those in memory the first that has not
// ended, else the first; else one that the store has. It stands for the array where its first
// task, whose number it has, is no longer kept. fault.NotFound: no task is kept, or it is no
// array's number.
func (rd *Reader) TaskOf(ctx context.Context, array job.ID) (state.View, error) {
	rd.of.State.RLock()
	var e *state.JobRecord
	if rd.of.State.ArrayByID(array) != nil {
		for _, o := range rd.of.State.ArrayTasks(array) {
			if e == nil || e.State.Final() && !o.State.Final() {
				e = o
			}
			if !e.State.Final() {
				break
			}
		}
	}
	var v state.View
	if e != nil {
		v = state.ViewOf(e)
		rd.withPriority(&v)
	}
	rd.of.State.RUnlock()
	if e != nil {
		return v, nil
	}
	found := false
	_, err := rd.History(ctx, store.Query{Array: uint64(array), Limit: 1}, func(row *state.View) bool {
		v, found = *row, true
		return false
	})
	switch {
	case err != nil:
		return state.View{}, err
	case !found:
		return state.View{}, state.NoSuchJob(array)
	}
	return v, nil
}

// Tasks lists the numbers of all tasks in memory of an array; of a job that is no
// array its own; nil if it is not in memory.
func (rd *Reader) Tasks(id job.ID) (out []job.ID) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	for _, e := range rd.of.State.ArrayTasks(id) {
		out = append(out, e.ID)
	}
	return out
}

// Why has all reasons why a job waits.
type Why struct {
	Reasons  []reason.Reason // the first blocker first; none for a job that does not wait
	Since    time.Time       // when the first became the first
	StartsBy time.Time       // promised by the scheduler; zero: nothing is promised
	Expected Expected
	Here     PoolStart        // of a job that waits for its pool's own scheduler; zero: it does not
	Holders  []sched.Blocker  // running jobs that have what it needs, those that end first first
	Changes  []whatif.Smaller // with each of which it would start now
}

// Why lists every reason why a pending job waits, and its promised start.
func (rd *Reader) Why(ctx context.Context, id job.ID) (Why, error) {
	if err := rd.forecastFor(ctx, id); err != nil {
		return Why{}, err
	}
	rd.of.State.Lock() // the core remembers what it finds out
	e := rd.of.State.Jobs[id]
	var w Why
	if e != nil && e.State == job.Pending {
		w.Reasons = slices.Clone(rd.of.Core.Reasons(sched.Instant(rd.of.Clock.Now().UnixNano()), id))
		for i := range w.Reasons {
			if why, away := rd.of.Pools.WhyUnreachable(e.Shared.Spec.Pool, w.Reasons[i].Code); away {
				why.Since = w.Reasons[i].Since
				w.Reasons[i] = why
			}
		}
		if why := rd.of.State.RerunReason(e); why.Code != reason.None && len(w.Reasons) > 0 {
			w.Reasons = append(w.Reasons, why)
		}
		w.Reasons = slices.Compact(w.Reasons)
		if why, ok := rd.whyOtherPool(rd.of.Pools.NameOf(&e.Shared.Spec), w.Reasons); ok {
			w.Reasons = append(w.Reasons, why)
		}
		w.StartsBy = state.FromNanos(e.ExtraOrZero().StartsBy)
		w.Expected = rd.expectedStart(id, rd.of.Clock.Now())
	}
	if e != nil && e.WaitsInPool() {
		why := e.PoolWaitReason()
		w.Reasons, w.Since = []reason.Reason{why}, time.Unix(why.Since, 0).UTC()
		w.Here = rd.startHere(e, w.Since)
		rd.of.State.Unlock()
		return w, nil
	}
	rd.of.State.Unlock()
	if e == nil {
		_, err := rd.Job(ctx, id)
		return Why{}, err
	}
	rd.countAhead(id, w.Reasons)
	if len(w.Reasons) > 0 {
		w.Holders, w.Changes = rd.adviseJob(id)
	}
	if len(w.Reasons) > 0 && w.Reasons[0].Since > 0 {
		w.Since = time.Unix(w.Reasons[0].Since, 0).UTC()
	}
	return w, nil
}

// Reasons returns the reasons of Why.
func (rd *Reader) Reasons(ctx context.Context, id job.ID) ([]reason.Reason, error) {
	w, err := rd.Why(ctx, id)
	return w.Reasons, err
}

// History calls f for the jobs of the store that the query asks for, newest first,
// until it returns false. next is the Below of the next page; 0 at the end. What
// changed within the last second or two may be missing: Scan has it.
func (rd *Reader) History(ctx context.Context, q store.Query, f func(*state.View) bool) (next uint64, err error) {
	n := 0
	var read state.RowReader
	err = rd.of.Store.History(ctx, q, func(row store.JobRow) error {
		v, err := read.View(&row)
		if err != nil {
			return err
		}
		n++
		next = row.ID
		if !f(&v) {
			return errEnough
		}
		return nil
	})
	if err == nil && (q.Limit == 0 || n < q.Limit) {
		next = 0
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return next, err
}

// Audit calls f for the journal records that somebody asked for, oldest first.
func (rd *Reader) Audit(ctx context.Context, q store.RecordQuery, f func(store.Record) error) error {
	q.OnlyActors = true
	return rd.of.Store.Records(ctx, q, f)
}

// Damages lists the parts of the store that were found damaged since it was opened.
func (rd *Reader) Damages() []store.Damage {
	if c, ok := rd.of.Store.(store.Checker); ok {
		return c.Damages()
	}
	return nil
}

// Backup copies the store into a new folder while it is used, and returns the
// number of the last record of the journal that is certain to be in the copy.
func (rd *Reader) Backup(ctx context.Context, dir string) (seq uint64, err error) {
	b, ok := rd.of.Store.(store.Backuper)
	if !ok {
		return 0, fault.New(fault.Unsupported, "this store cannot be copied while it is used").Advise("stop the server and copy its state directory")
	}
	seq = rd.of.Events.Last()
	return seq, b.Backup(ctx, dir)
}

// Blob returns a script or an environment by its hash.
func (rd *Reader) Blob(ctx context.Context, hash string) ([]byte, error) {
	return rd.of.Store.Blob(ctx, hash)
}
