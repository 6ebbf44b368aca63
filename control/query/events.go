package query

import (
	"context"
	"errors"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// eventsAtOnce bounds how much of the journal one call of Events reads.
const eventsAtOnce = 1000

// Events waits until there are events after a number and returns some of them in
// order, with the number to go on from. gap says that the journal no longer has all
// of what was missed: read the whole state anew. The error is the context's, or of
// a control plane that has ended.
func (rd *Reader) Events(ctx context.Context, after uint64) (evs []state.Event, last uint64, gap bool, err error) {
	if newest := rd.of.Events.Last(); after > newest {
		return nil, newest, true, nil // of another state directory, or of a future that was lost
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-rd.of.Done:
			stop()
		case <-ctx.Done():
		}
	}()
	evs, last, gap, err = rd.of.Events.Next(ctx, after)
	switch {
	case err != nil:
		return nil, after, false, fault.New(fault.Unavailable, "waiting for events: %w", err)
	case !gap:
		return evs, last, false, nil
	}
	return rd.pastEvents(ctx, after, last)
}

// pastEvents reads events from the journal.
func (rd *Reader) pastEvents(ctx context.Context, after, newest uint64) (evs []state.Event, last uint64, gap bool, err error) {
	last = after
	err = rd.of.Store.Read(ctx, after, func(r store.Record) error {
		ev, err := state.EventOf(&r, nil, func(id job.ID) (string, string) { return rd.nameOf(ctx, id) })
		if err != nil {
			return err
		}
		evs, last = append(evs, ev), r.Seq
		if len(evs) == eventsAtOnce {
			return errEnough
		}
		return nil
	})
	switch {
	case err == nil || errors.Is(err, errEnough):
		return evs, last, false, nil
	case fault.KindOf(err) == fault.NotFound, errors.Is(err, store.ErrDamaged):
		return nil, newest, true, nil
	}
	return nil, after, false, err
}

var errEnough = errors.New("enough was read")

// LastEvent is the number of the newest event: taken before Scan, Events after it
// has every change that Scan may not have seen.
func (rd *Reader) LastEvent() uint64 { return rd.of.Events.Last() }

// nameOf says how a job is shown and whose it is.
func (rd *Reader) nameOf(ctx context.Context, id job.ID) (name, user string) {
	rd.of.State.RLock()
	e := rd.of.State.Jobs[id]
	if e != nil {
		name, user = e.Name(), e.Shared.Spec.Owner.User
	}
	rd.of.State.RUnlock()
	if e != nil {
		return name, user
	}
	row, err := rd.of.Store.Job(ctx, uint64(id))
	if err != nil {
		return id.String(), "" // purged
	}
	j := job.Job{ID: id}
	if row.Array != 0 {
		j.Array = &job.ArrayTask{Job: job.ID(row.Array), Index: uint32(row.Task)}
	}
	return j.Name(), row.User
}

// Next waits for changes of jobs after a number, those that are not journaled among
// them, and returns the changed jobs as they are now, with the number to go on from.
// gap says that more changed than is remembered: read the whole state anew. Numbers
// begin anew with each control plane.
func (rd *Reader) Next(ctx context.Context, after uint64) (views []state.View, last uint64, gap bool, err error) {
	ids, last, gap, err := rd.of.Changes.Next(ctx, after)
	if err != nil || gap {
		return nil, last, gap, err
	}
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	for _, id := range state.UniqueIDs(ids) {
		if e := rd.of.State.Jobs[id]; e != nil {
			v := state.ViewOf(e)
			views = append(views, *rd.withPriority(&v))
		}
	}
	return views, last, false, nil
}
