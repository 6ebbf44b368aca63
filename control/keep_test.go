package control_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/store"
)

// purges is a store that counts what was purged.
type purges struct {
	*store.Memory
	records, jobs *atomic.Int64
}

func (p purges) Purge(ctx context.Context, epoch uint64, req store.PurgeRequest) (store.PurgeResult, error) {
	res, err := p.Memory.Purge(ctx, epoch, req)
	p.records.Add(int64(res.Records))
	p.jobs.Add(int64(res.Jobs))
	return res, err
}

func TestWhatIsOldLeavesTheStore(t *testing.T) {
	c := newClock()
	b := &bench{t: t, hand: newHand(1, 8), store: new(store.Memory)}
	p := purges{b.store, new(atomic.Int64), new(atomic.Int64)}
	b.cfg = control.Config{
		Store: p, Pools: onHand(b.hand), Clock: c, Keep: time.Minute, JournalKeep: time.Hour, HistoryKeep: 24 * time.Hour,
	}
	b.open()
	defer b.close()
	id := b.submit(gang(1, 8))
	v := b.launched(id)
	b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Ended, Gone: true, Cause: engine.Exited, Started: c.Now(), Ended: c.Now()})
	b.state(id, job.Completed)
	waiting := gang(1, 8)
	waiting.Held = true
	held, err := b.ctl.Submit(t.Context(), control.Submission{Spec: waiting, Env: []string{"A=1"}})
	if err != nil {
		t.Fatal(err)
	}
	for s := b.ctl.Stats(); s.Projected != s.Seq; s = b.ctl.Stats() {
		b.pass(c, time.Second)
	}
	for deadline := time.Now().Add(2 * time.Minute); p.records.Load() == 0 || p.jobs.Load() == 0; b.pass(c, time.Hour) {
		if time.Now().After(deadline) {
			t.Fatalf("%d records and %d jobs were purged", p.records.Load(), p.jobs.Load())
		}
	}
	if _, err := b.ctl.Job(t.Context(), id); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a job that ended long ago: %v", err)
	}
	if _, last, gap, err := b.ctl.Events(t.Context(), 0); err != nil || !gap && last == 0 {
		t.Errorf("events from the beginning: gap %v, last %d, %v", gap, last, err)
	}
	h, err := b.ctl.Job(t.Context(), held.ID)
	if err != nil {
		t.Fatal(err)
	}
	if env, err := b.ctl.Blob(t.Context(), h.Job.Spec.Env.Hash); err != nil || len(control.SplitEnv(env)) != 1 {
		t.Errorf("the environment of a job that waits: %q, %v", env, err)
	}
	b.reopen()
	b.waits(held.ID, reason.HeldUser)
	if _, _, gap, err := b.ctl.Events(t.Context(), 0); !gap || err != nil {
		t.Errorf("events that were purged: gap %v, %v", gap, err)
	}
}

func TestEstimate(t *testing.T) {
	c := newClock()
	b := openWith(t, newHand(2, 8), control.Config{Clock: c})
	e, err := b.ctl.Estimate(t.Context(), control.Submission{Spec: gang(1, 8)})
	if err != nil || !e.Start.Equal(c.Now()) || len(e.Nodes) != 1 {
		t.Errorf("in an empty pool: %+v, %v", e, err)
	}
	s := gang(2, 8)
	s.TimeLimit = time.Hour
	b.launched(b.submit(s))
	e, err = b.ctl.Estimate(t.Context(), control.Submission{Spec: gang(1, 8)})
	if err != nil || !e.Start.Equal(c.Now().Add(time.Hour)) || len(e.Reasons) == 0 || e.Reasons[0].Code != reason.Resources {
		t.Errorf("behind a job of an hour: %+v, %v", e, err)
	}
	var refused *control.RefusedError
	if _, err = b.ctl.Estimate(t.Context(), control.Submission{Spec: gang(3, 8)}); !errors.As(err, &refused) {
		t.Errorf("what never fits: %v", err)
	}
	if _, err = b.ctl.Estimate(t.Context(), control.Submission{Spec: depending(on(job.AfterOK, 77))}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a dependency on no job: %v", err)
	}
	views, _, err := b.ctl.Jobs(t.Context())
	if err != nil || len(views) != 1 {
		t.Errorf("%d jobs are there, %v", len(views), err)
	}
}

// slow is a store whose journal is written when the test says so.
type slow struct {
	*store.Memory
	gate chan struct{}
}

func (s slow) Append(ctx context.Context, epoch uint64, recs []store.Record) (uint64, error) {
	if len(recs) == 0 {
		return s.Memory.Append(ctx, epoch, recs)
	}
	select {
	case <-s.gate:
	case <-ctx.Done():
		return 0, fault.New(fault.Unavailable, "%w", ctx.Err())
	}
	return s.Memory.Append(ctx, epoch, recs)
}

func TestNobodyWhoReadsWaitsForTheDisk(t *testing.T) {
	st := slow{new(store.Memory), make(chan struct{}, 100)}
	b := &bench{t: t, hand: newHand(1, 8), store: st.Memory}
	b.cfg = control.Config{Store: st, Pools: onHand(b.hand)}
	b.open()
	defer b.close()
	for range 2 {
		st.gate <- struct{}{}
	}
	id := b.submit(gang(1, 8))
	b.launched(id)
	answered := make(chan error)
	go func() { // the disk hangs from here on
		_, err := b.ctl.Submit(t.Context(), control.Submission{Spec: gang(1, 8)})
		answered <- err
	}()
	for b.ctl.Stats().Seq != 2 {
	}
	n := 0
	b.ctl.Scan(query.Filter{Live: true}, func(v *state.View) bool { n++; return v.Job.ID == id })
	if _, err := b.ctl.Job(t.Context(), id); err != nil || n != 1 {
		t.Errorf("%d jobs, %v", n, err)
	}
	if _, err := b.ctl.Why(t.Context(), id); err != nil {
		t.Error(err)
	}
	if _, err := b.ctl.NodeViews(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case err := <-answered:
		t.Fatalf("a submission was answered before it was durable: %v", err)
	default:
	}
	for range 90 {
		st.gate <- struct{}{}
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestStatsCount(t *testing.T) {
	b := open(t, newHand(1, 8))
	first, second := b.submit(gang(1, 4)), b.submit(gang(1, 8))
	b.launched(first)
	b.waits(second, reason.Resources)
	s := b.ctl.Stats()
	if s.Submitted != 2 || s.Started != 1 || s.Jobs["PENDING"] != 1 || s.Jobs["RUNNING"] != 1 || s.Waiting["resources"] != 1 ||
		s.Devices["used"] != 4 || s.Devices["free"] != 4 || s.Nodes["up"] != 1 || s.Calls["launch"] != 1 || s.Batch.Count == 0 || s.Wait.Count != 1 {
		t.Errorf("%+v", s)
	}
	b.finish(first, 0)
	b.launched(second)
	if s := b.ctl.Stats(); s.Ended["COMPLETED"] != 1 || s.Jobs["COMPLETED"] != 1 || s.Jobs["PENDING"] != 0 {
		t.Errorf("%+v", s)
	}
}

// blank is a store whose projection cannot be written until the test says so.
type blank struct {
	*store.Memory
	open chan struct{}
}

func (s blank) Project(ctx context.Context, epoch, upTo uint64, rows []store.JobRow, docs map[string][]byte) error {
	select {
	case <-s.open:
		return s.Memory.Project(ctx, epoch, upTo, rows, docs)
	default:
		return fault.New(fault.Exhausted, "no space left on device")
	}
}

func TestAJobStaysInMemoryUntilItsRowIsWritten(t *testing.T) {
	st := blank{new(store.Memory), make(chan struct{})}
	b := &bench{t: t, hand: newHand(1, 8), store: st.Memory}
	b.cfg = control.Config{Store: st, Pools: onHand(b.hand), Keep: time.Nanosecond, Project: time.Millisecond}
	b.open()
	defer b.close()
	id := b.submit(gang(1, 8))
	b.hand.end(b.launched(id), engine.Exited, 7)
	b.state(id, job.Failed)
	for range 20 {
		if err := b.ctl.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := b.ctl.Job(t.Context(), id); err != nil || v.Job.Exit.Status != 7 || len(b.ctl.Tasks(id)) != 1 {
		t.Errorf("it is %+v, %v, and in memory: %v", v.Job, err, b.ctl.Tasks(id))
	}
	close(st.open)
	b.forgotten(id)
	if v, err := b.ctl.Job(t.Context(), id); err != nil || v.Job.Exit.Status != 7 {
		t.Errorf("from its row it is %+v, %v", v.Job, err)
	}
}
