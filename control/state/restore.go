package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/store"
)

// restoredAtMost bounds how many ended jobs a start takes back into memory.
const restoredAtMost = 20_000

// Restore reads the projection and the journal after it. It returns the Seq up to which the
// projection reflects the journal.
func (s *State) Restore(ctx context.Context, st store.Store, now time.Time, keep time.Duration) (uint64, error) {
	projected, err := st.Projected(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the projection: %w", err)
	}
	if projected > 0 {
		if err := s.restoreRows(ctx, st, now, keep); err != nil {
			return 0, fmt.Errorf("read the projection: %w", err)
		}
		s.Seq = projected
	}
	rows := false // some may be there although no projection was written to its end
	if err := st.History(ctx, store.Query{Limit: 1}, func(store.JobRow) error { rows = true; return nil }); err != nil {
		return 0, fmt.Errorf("read the projection: %w", err)
	}
	if rows {
		s.lookup = func(id job.ID) (*JobRecord, error) { return s.fromStore(ctx, st, id) }
	}
	if err := st.Read(ctx, projected, func(r store.Record) error {
		s.Events, s.touched = s.Events[:0], s.touched[:0]
		err := s.Apply(r, nil)
		if err != nil && isLost(st, r.Job) { // the job is lost with its row, and nothing else
			s.Skipped = append(s.Skipped, fmt.Errorf("record %d is about job %d, whose stored row is damaged: %w", r.Seq, r.Job, boundedError{err}))
			return nil
		}
		return DamagedError(err)
	}); err != nil {
		return 0, fmt.Errorf("replay the journal: %w", err)
	}
	s.lookup = nil
	s.Counts = s.Counts.resetCounts()
	slices.SortStableFunc(s.ended, func(a, b *JobRecord) int { return a.endTime().Compare(b.endTime()) })
	return projected, s.restorePast(ctx, st)
}

// isLost reports whether the stored row of a job was found damaged.
func isLost(st store.Store, id uint64) bool {
	c, ok := st.(store.Checker)
	return ok && id != 0 && slices.ContainsFunc(c.Damages(), func(d store.Damage) bool { return d.Job == id })
}

// DamagedError is the error for a state directory whose contents make no sense. An error with a
// remedy of its own is returned as it is.
func DamagedError(err error) error {
	if err == nil || fault.Remedy(err) != "" {
		return err
	}
	return fault.New(fault.Internal, "%w", boundedError{err}).
		Advise("the state directory is damaged: put a backup in its place, or start with another --state-dir; docs/explanation/state.md says how")
}

// boundedError is an error whose text has a bound: a damaged record can be long.
type boundedError struct{ error }

func (b boundedError) Error() string {
	const most = 600
	text := b.error.Error()
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func (b boundedError) Unwrap() error { return b.error }

func (s *State) restoreRows(ctx context.Context, st store.Store, now time.Time, keep time.Duration) error {
	doc, err := st.Doc(ctx, docControl)
	if fault.KindOf(err) == fault.NotFound {
		return DamagedError(err)
	} else if err != nil {
		return err
	}
	var w stateDoc
	if err := json.Unmarshal(doc, &w); err != nil {
		return DamagedError(fmt.Errorf("document %s: %w", docControl, err))
	}
	if w.Next > LastJob || w.Allocation > uint64(ledger.Last) {
		return DamagedError(fmt.Errorf("document %s: the next job is %d, the next allocation %d: such numbers are never given", docControl, w.Next, w.Allocation))
	}
	if err := s.loadRows(func(f func(store.JobRow) error) error { return st.Live(ctx, f) }); err != nil {
		return err
	}
	q := store.Query{Final: true, From: now.Add(-keep), Limit: restoredAtMost}
	if keep < 0 {
		q.From = time.Time{}
	}
	if err := s.loadRows(func(f func(store.JobRow) error) error { return st.History(ctx, q, f) }); err != nil {
		return err
	}
	s.Next = max(s.Next, w.Next)
	s.Ledger.Skip(ledger.ID(w.Allocation))
	for k, d := range w.Drains {
		s.Drains.Set(k, d)
	}
	for _, v := range w.Health {
		s.Health[v.Key()] = v
	}
	for _, p := range w.Pools {
		s.Pools[p.Name] = p
	}
	for _, t := range w.Tokens {
		s.Tokens[t.ID] = t
	}
	s.Usage, s.Arrivals = w.Usage, w.Seen
	return errors.Join(s.restorePolicies(ctx, st, w.Policies), s.Controllers.restore(ctx, st, w.Controllers), s.Owners.restore(ctx, st, w.Machines))
}

// rowChunk is a number of rows on their way into memory.
type rowChunk struct {
	rows    []store.JobRow
	details []RowDetail
	err     error
	read    chan struct{} // closed when details or err is there
}

func (c *rowChunk) decodeRows() {
	defer close(c.read)
	c.details = make([]RowDetail, len(c.rows))
	for i := range c.rows {
		if c.err = c.details[i].DecodeDetail(&c.rows[i]); c.err != nil {
			return
		}
	}
}

const chunkRows = 256

// loadRows brings rows into memory, in order. Reading, decoding and putting them in go
// on at the same time.
func (s *State) loadRows(read func(func(store.JobRow) error) error) error {
	chunks := make(chan *rowChunk, 2*runtime.GOMAXPROCS(0))
	done := make(chan error, 1)
	go func() {
		var err error
		for c := range chunks {
			<-c.read
			if err == nil {
				err = s.putAll(c)
			}
		}
		done <- err
	}()
	next := &rowChunk{read: make(chan struct{})}
	flush := func() {
		go next.decodeRows()
		chunks <- next
		next = &rowChunk{read: make(chan struct{})}
	}
	err := read(func(row store.JobRow) error {
		if next.rows = append(next.rows, row); len(next.rows) == chunkRows {
			flush()
		}
		return nil
	})
	flush()
	close(chunks)
	return errors.Join(err, <-done)
}

func (s *State) putAll(c *rowChunk) error {
	if c.err != nil {
		return DamagedError(c.err)
	}
	for i := range c.rows {
		if s.Jobs[job.ID(c.rows[i].ID)] != nil {
			continue
		}
		if _, err := s.addRow(&c.rows[i], &c.details[i]); err != nil {
			return DamagedError(err)
		}
	}
	return nil
}

// fromStore takes a job that is not in memory out of the projection; nil if it is
// not there either.
func (s *State) fromStore(ctx context.Context, st store.Store, id job.ID) (*JobRecord, error) {
	row, err := st.Job(ctx, uint64(id))
	switch {
	case fault.KindOf(err) == fault.NotFound: // or it is damaged
		return nil, nil
	case err != nil:
		return nil, err
	}
	var d RowDetail
	if err := d.DecodeDetail(&row); err != nil {
		return nil, err
	}
	return s.addRow(&row, &d)
}

// addRow brings a row into memory.
func (s *State) addRow(row *store.JobRow, d *RowDetail) (*JobRecord, error) {
	e, err := s.entryOf(row, d)
	if err != nil {
		return nil, err
	}
	s.insertJob(e)
	switch {
	case e.State.Final():
		s.ended = append(s.ended, e)
	case e.State.Holds():
		if err := s.Ledger.Restore(e.Allocation()); err != nil {
			return nil, fmt.Errorf("row of job %s: %w", e.Name(), err)
		}
		for _, x := range e.Last.Added {
			if err := s.Ledger.Restore(e.AdditionAllocation(x)); err != nil {
				return nil, fmt.Errorf("row of job %s: %w", e.Name(), err)
			}
		}
	}
	return e, nil
}

// entryOf makes a job of a row. It uses the row's shared specification.
func (s *State) entryOf(row *store.JobRow, d *RowDetail) (*JobRecord, error) {
	f, o, err := s.Specs.readSpec(d.Own, d.Spec)
	if err != nil {
		return nil, fmt.Errorf("row of job %d: %w", row.ID, err)
	}
	e := &JobRecord{
		ID: job.ID(row.ID), Shared: f, delta: PackDelta(&o, &f.Def), Index: d.Index, State: d.State, Flags: d.Flags,
		Attempt: d.Attempt, Priority: d.Priority, QueuedAt: d.At, Submitted: d.Sent, Eligible: d.Eligible, Seq: d.Seq, fixed: o.Priority != 0,
	}
	if d.Array != nil {
		if e.Array = s.Arrays.m[d.Array.First]; e.Array == nil {
			e.Array = s.Arrays.add(d.Array.First, d.Array.arraySpec())
			e.Array.limited = d.Array.Limited
		}
		if d.Array.Limited > e.Array.limited { // the row of another task was older
			e.Array.setLimit(d.Array.MaxRunning, d.Array.Limited)
		}
		if !e.Array.hasTask(e.ID, e.Index) {
			return nil, fmt.Errorf("row of job %d: it is not task %d of array %d", row.ID, d.Index, d.Array.First)
		}
	}
	e.setExtras(&o)
	if d.Again != 0 || d.Failed != 0 || d.LimitEnd != 0 || d.Message != "" || d.Moved != 0 || d.Foretold != [2]int64{} || d.Kept != 0 || d.By != nil || d.Retried != 0 || len(d.Past) > 0 || len(d.FailedOn) > 0 || d.Pools != (PoolMoves{}) {
		m := e.EnsureExtra()
		m.Again, m.Failed, m.LimitEnd, m.message, m.Moved = d.Again, d.Failed, d.LimitEnd, d.Message, d.Moved
		m.Retried, m.Past, m.PoolMoves = d.Retried, d.Past, d.Pools
		e.restoreFailed(d)
		m.Foretold, m.ForetoldAt = d.Foretold[0], d.Foretold[1]
		m.kept, m.keptAs = d.Kept, d.KeptAs
		m.cancelledBy = d.By
	}
	if a := d.Last; a != nil {
		e.Last = &Attempt{
			AllocationID: ledger.ID(a.Allocation), epoch: a.Epoch, Pool: a.Pool, Claims: a.Claims, Flavors: a.Flavors, License: a.License, Cancel: a.Cancel, Handed: a.Handed,
			Requeue: a.Requeue, Preempted: a.Preempted, asked: a.Asked, Saved: a.Saved, Expired: a.Expired, started: a.Started, ended: a.Ended, exit: a.Exit, limit: a.Limit,
			PreemptSuspended: a.Parked, UserSuspended: a.Asleep, SuspendedAt: a.HeldFrom, suspendedFor: a.HeldFor, lastSuspended: a.HeldLast,
			Added: a.Added, Ranks: a.Ranks, settled: a.Settled,
		}
		if a.Report != nil {
			e.Last.Report = new(engine.Report)
			if err := json.Unmarshal(a.Report, e.Last.Report); err != nil {
				return nil, fmt.Errorf("row of job %d: %w", row.ID, err)
			}
			e.Last.NoteNodes(NodesIn(e.Last.Report))
		}
	}
	return e, nil
}

// restorePast looks up what pending jobs depend on and memory does not have.
func (s *State) restorePast(ctx context.Context, st store.Store) error {
	for id := range s.Depend.On {
		if s.KnowsFate(job.JobRef{Job: id}) {
			continue
		}
		p, err := StoredFates(ctx, st, id)
		if err != nil {
			return err
		}
		s.Depend.past[id] = p // nothing in it: it ended so long ago that nobody knows how
	}
	return nil
}

// ReviveJob takes a job that has ended back into memory. It locks the state.
func (s *State) ReviveJob(e *JobRecord) {
	s.Lock()
	defer s.Unlock()
	e.revived = true
	s.insertJob(e)
	s.ended = append(s.ended, e)
}

// ReadRow makes a job of a row, without taking it into memory. It locks the state.
func (s *State) ReadRow(row *store.JobRow) (*JobRecord, error) {
	var d RowDetail
	if err := d.DecodeDetail(row); err != nil {
		return nil, err
	}
	s.Lock()
	defer s.Unlock()
	return s.entryOf(row, &d)
}

// ViewOfRow makes the view of a job that is not in memory.
func ViewOfRow(row *store.JobRow) (View, error) { return new(RowReader).View(row) }

// RowReader makes views of rows, one after another. It keeps the array of the last one: the
// views of its tasks share the list of indices, so a thousand rows do not hold a million of
// them.
type RowReader struct{ array *Array }

// View makes the view of a row, which shares the array with the views before it.
func (r *RowReader) View(row *store.JobRow) (View, error) {
	var d RowDetail
	if err := d.DecodeDetail(row); err != nil {
		return View{}, err
	}
	s := New()
	if r.array != nil {
		s.Arrays.m[r.array.first] = r.array
	}
	e, err := s.entryOf(row, &d)
	if err != nil {
		return View{}, err
	}
	if e.Array != nil {
		r.array = e.Array
	}
	return ViewOf(e), nil
}

// RanSince reports whether a job has run again since its row was read, and left memory again.
func (s *State) RanSince(e *JobRecord) bool {
	seq, left := s.departed[e.ID]
	return left && seq != e.Seq
}
