package control

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

// restoreFrom reads the projection and the journal after it. It returns the Seq that
// the projection reflects.
func (s *state) restoreFrom(ctx context.Context, st store.Store, now time.Time, keep time.Duration) (uint64, error) {
	projected, err := st.Projected(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the projection: %w", err)
	}
	if projected > 0 {
		if err := s.restoreRows(ctx, st, now, keep); err != nil {
			return 0, fmt.Errorf("read the projection: %w", err)
		}
		s.seq = projected
	}
	rows := false // some may be there although no projection was written to its end
	if err := st.History(ctx, store.Query{Limit: 1}, func(store.JobRow) error { rows = true; return nil }); err != nil {
		return 0, fmt.Errorf("read the projection: %w", err)
	}
	if rows {
		s.lookup = func(id job.ID) (*jobRecord, error) { return s.fromStore(ctx, st, id) }
	}
	if err := st.Read(ctx, projected, func(r store.Record) error {
		s.events, s.touched = s.events[:0], s.touched[:0]
		return damagedError(s.applyRecord(r, nil))
	}); err != nil {
		return 0, fmt.Errorf("replay the journal: %w", err)
	}
	s.lookup = nil
	s.counts = s.counts.resetCounts()
	slices.SortStableFunc(s.ended, func(a, b *jobRecord) int { return a.endTime().Compare(b.endTime()) })
	return projected, s.restorePast(ctx, st)
}

// damagedError is the error of a state that does not say what happened. Where it has a
// remedy of its own, it keeps that and its kind.
func damagedError(err error) error {
	if err == nil || fault.Remedy(err) != "" {
		return err
	}
	return fault.New(fault.Internal, "%w", boundedError{err}).
		Advise("the state directory is damaged: put a backup in its place, or start with another --state-dir; docs/state.md says how")
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

func (s *state) restoreRows(ctx context.Context, st store.Store, now time.Time, keep time.Duration) error {
	doc, err := st.Doc(ctx, docControl)
	if fault.KindOf(err) == fault.NotFound {
		return damagedError(err)
	} else if err != nil {
		return err
	}
	var w stateDoc
	if err := json.Unmarshal(doc, &w); err != nil {
		return damagedError(fmt.Errorf("document %s: %w", docControl, err))
	}
	if w.Next > lastJob || w.Allocation > uint64(ledger.Last) {
		return damagedError(fmt.Errorf("document %s: the next job is %d, the next allocation %d: such numbers are never given", docControl, w.Next, w.Allocation))
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
	s.next = max(s.next, w.Next)
	s.ledger.Skip(ledger.ID(w.Allocation))
	for k, d := range w.Drains {
		s.drains.Set(k, d)
	}
	for _, p := range w.Pools {
		s.pools[p.Name] = p
	}
	for _, t := range w.Tokens {
		s.tokens[t.ID] = t
	}
	s.usage, s.arrivals = w.Usage, w.Seen
	return s.restorePolicies(ctx, st, w.Policies)
}

// rowChunk is a number of rows on their way into memory.
type rowChunk struct {
	rows    []store.JobRow
	details []rowDetail
	err     error
	read    chan struct{} // closed when details or err is there
}

func (c *rowChunk) decodeRows() {
	defer close(c.read)
	c.details = make([]rowDetail, len(c.rows))
	for i := range c.rows {
		if c.err = c.details[i].decodeDetail(&c.rows[i]); c.err != nil {
			return
		}
	}
}

const chunkRows = 256

// loadRows brings rows into memory, in order. Reading, decoding and putting them in go
// on at the same time.
func (s *state) loadRows(read func(func(store.JobRow) error) error) error {
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

func (s *state) putAll(c *rowChunk) error {
	if c.err != nil {
		return damagedError(c.err)
	}
	for i := range c.rows {
		if s.jobs[job.ID(c.rows[i].ID)] != nil {
			continue
		}
		if _, err := s.addRow(&c.rows[i], &c.details[i]); err != nil {
			return damagedError(err)
		}
	}
	return nil
}

// fromStore takes a job that is not in memory out of the projection; nil if it is
// not there either.
func (s *state) fromStore(ctx context.Context, st store.Store, id job.ID) (*jobRecord, error) {
	row, err := st.Job(ctx, uint64(id))
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	var d rowDetail
	if err := d.decodeDetail(&row); err != nil {
		return nil, err
	}
	return s.addRow(&row, &d)
}

// addRow brings a row into memory.
func (s *state) addRow(row *store.JobRow, d *rowDetail) (*jobRecord, error) {
	e, err := s.entryOf(row, d)
	if err != nil {
		return nil, err
	}
	s.insertJob(e)
	switch {
	case e.state.Final():
		s.ended = append(s.ended, e)
	case e.state.Holds():
		if err := s.ledger.Restore(e.heldAllocation()); err != nil {
			return nil, fmt.Errorf("row of job %s: %w", e.Name(), err)
		}
		for _, x := range e.last.added {
			if err := s.ledger.Restore(e.additionAllocation(x)); err != nil {
				return nil, fmt.Errorf("row of job %s: %w", e.Name(), err)
			}
		}
	}
	return e, nil
}

// entryOf makes a job of a row. It uses the row's form.
func (s *state) entryOf(row *store.JobRow, d *rowDetail) (*jobRecord, error) {
	f, o, err := s.specs.readSpec(d.Own, d.Spec)
	if err != nil {
		return nil, fmt.Errorf("row of job %d: %w", row.ID, err)
	}
	e := &jobRecord{
		id: job.ID(row.ID), shared: f, delta: packDelta(&o, &f.def), index: d.Index, state: d.State, flags: d.Flags,
		attempt: d.Attempt, priority: d.Priority, at: d.At, submitted: d.Sent, eligible: d.Eligible, seq: d.Seq, fixed: o.Priority != 0,
	}
	if d.Array != nil {
		if e.array = s.arrays.m[d.Array.First]; e.array == nil {
			e.array = s.arrays.add(d.Array.First, d.Array.arraySpec())
			e.array.limited = d.Array.Limited
		}
		if d.Array.Limited > e.array.limited { // the row of another task was older
			e.array.setLimit(d.Array.MaxRunning, d.Array.Limited)
		}
		if !e.array.hasTask(e.id, e.index) {
			return nil, fmt.Errorf("row of job %d: it is not task %d of array %d", row.ID, d.Index, d.Array.First)
		}
	}
	e.setExtras(&o)
	if d.Again != 0 || d.Failed != 0 || d.LimitEnd != 0 || d.Message != "" || d.Moved != 0 || d.Foretold != [2]int64{} || d.Kept != 0 {
		m := e.ensureExtra()
		m.again, m.failed, m.limitEnd, m.message, m.moved = d.Again, d.Failed, d.LimitEnd, d.Message, d.Moved
		m.foretold, m.foretoldAt = d.Foretold[0], d.Foretold[1]
		m.kept, m.keptAs = d.Kept, d.KeptAs
	}
	if a := d.Last; a != nil {
		e.last = &attempt{
			id: ledger.ID(a.Allocation), epoch: a.Epoch, pool: a.Pool, claims: a.Claims, flavors: a.Flavors, license: a.License, cancel: a.Cancel, handed: a.Handed,
			requeue: a.Requeue, preempted: a.Preempted, asked: a.Asked, saved: a.Saved, expired: a.Expired, started: a.Started, ended: a.Ended, exit: a.Exit, limit: a.Limit,
			preemptSuspended: a.Parked, userSuspended: a.Asleep, suspendedAt: a.HeldFrom, suspendedFor: a.HeldFor,
			added: a.Added, ranks: a.Ranks, settled: a.Settled,
		}
		if a.Report != nil {
			e.last.report = new(engine.Report)
			if err := json.Unmarshal(a.Report, e.last.report); err != nil {
				return nil, fmt.Errorf("row of job %d: %w", row.ID, err)
			}
			e.last.noteNodes(nodesIn(e.last.report))
		}
	}
	return e, nil
}

// restorePast looks up what pending jobs depend on and memory does not have.
func (s *state) restorePast(ctx context.Context, st store.Store) error {
	for id := range s.depend.on {
		if s.knowsFate(job.JobRef{Job: id}) {
			continue
		}
		p, err := storedFates(ctx, st, id)
		if err != nil {
			return err
		}
		s.depend.past[id] = p // nothing in it: it ended so long ago that nobody knows how
	}
	return nil
}

// prepareEnded makes what is to be said of a job that is not in memory, or brings it into
// the request where it is to run again.
func (c *Control) prepareEnded(ctx context.Context, w *changeRequest, row *store.JobRow) (error, error) {
	id := job.ID(row.ID)
	if !row.Final {
		return errMoved, nil // it came back meanwhile
	}
	switch w.op.(type) {
	case Cancel:
		return nil, nil
	case Requeue:
		e, err := c.state.readRow(row)
		if err != nil {
			return nil, err
		}
		w.old[id] = e
		return c.renewBlobs(ctx, e)
	}
	return fault.New(fault.Conflict, "job %d has ended (%s)", id, row.State), nil
}

// renewBlobs puts script and environment of a job that is to run again anew, so that no
// purge takes them: only those of jobs in memory are kept. The first error says that
// they are gone.
func (c *Control) renewBlobs(ctx context.Context, e *jobRecord) (error, error) {
	spec := viewOf(e).Job.Spec
	for _, hash := range []string{spec.Program.ScriptHash, spec.Env.Hash} {
		if hash == "" {
			continue
		}
		b, err := c.cfg.Store.Blob(ctx, hash)
		if err == nil {
			_, err = c.cfg.Store.PutBlob(ctx, b)
		}
		switch {
		case err != nil && fault.KindOf(err) == fault.NotFound:
			return fault.New(fault.Conflict, "job %s cannot run again: its script or its environment is no longer kept", e.Name()).
				Advise("submit it anew; the server's file says how long history is kept"), nil
		case err != nil:
			return nil, err
		}
	}
	return nil, nil
}

// restoreToMemory takes a job back into memory.
func (l *loop) restoreToMemory(e *jobRecord) {
	l.state.Lock()
	defer l.state.Unlock()
	l.state.reviveJob(e)
}

// reviveJob takes a job that has ended back into memory.
func (s *state) reviveJob(e *jobRecord) {
	e.revived = true
	s.insertJob(e)
	s.ended = append(s.ended, e)
}

// readRow makes a job of a row, without taking it into memory. It locks the state.
func (s *state) readRow(row *store.JobRow) (*jobRecord, error) {
	var d rowDetail
	if err := d.decodeDetail(row); err != nil {
		return nil, err
	}
	s.Lock()
	defer s.Unlock()
	return s.entryOf(row, &d)
}

// fromRow is the view of a job that is not in memory.
func fromRow(row *store.JobRow) (View, error) { return new(rowReader).viewOfRow(row) }

// rowReader makes views of rows, one after another. It keeps the array of the last one: the
// views of its tasks share the list of indices, and a million of these are not written out for
// each of a thousand rows.
type rowReader struct{ array *array }

func (r *rowReader) viewOfRow(row *store.JobRow) (View, error) {
	var d rowDetail
	if err := d.decodeDetail(row); err != nil {
		return View{}, err
	}
	s := newState()
	if r.array != nil {
		s.arrays.m[r.array.first] = r.array
	}
	e, err := s.entryOf(row, &d)
	if err != nil {
		return View{}, err
	}
	if e.array != nil {
		r.array = e.array
	}
	return viewOf(e), nil
}
