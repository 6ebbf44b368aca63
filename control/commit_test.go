package control_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/store"
)

// shaky is a store whose calls do what the test says.
type shaky struct {
	*store.Memory
	mu     sync.Mutex
	before error         // Append fails with it and writes nothing
	after  error         // Append fails with it once it has written
	read   error         // Read fails with it
	only   string        // the kind of record that before is about; empty: every
	tries  int           // of Append with records
	failed chan struct{} // told when before was met; nil: nobody
}

func (s *shaky) Append(ctx context.Context, epoch uint64, recs []store.Record) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(recs) > 0 {
		s.tries++
	}
	if s.before != nil && (s.only == "" || slices.ContainsFunc(recs, func(r store.Record) bool { return r.Kind == s.only })) {
		if s.failed != nil {
			s.failed <- struct{}{}
		}
		return 0, s.before
	}
	last, err := s.Memory.Append(ctx, epoch, recs)
	if err == nil && s.after != nil {
		return 0, s.after
	}
	return last, err
}

func (s *shaky) Read(ctx context.Context, after uint64, f func(store.Record) error) error {
	s.mu.Lock()
	err := s.read
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Memory.Read(ctx, after, f)
}

func (s *shaky) fail(before, after, read error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after, s.read = before, after, read
}

func (s *shaky) tried() int { s.mu.Lock(); defer s.mu.Unlock(); return s.tries }

// openShaky opens a control plane on such a store, under a clock that stands.
func openShaky(t *testing.T) (*bench, *shaky, *clock) {
	t.Helper()
	st, c := &shaky{Memory: new(store.Memory)}, newClock()
	b := &bench{t: t, hand: newHand(1, 8), store: st.Memory}
	b.cfg = control.Config{Store: st, Pools: onHand(b.hand), Clock: c, Project: -1}
	b.open()
	t.Cleanup(b.close)
	return b, st, c
}

var errDisk = fault.New(fault.Unavailable, "input/output error")

func (b *bench) kinds() (out []string) {
	b.t.Helper()
	if err := b.store.Read(b.t.Context(), 0, func(r store.Record) error { out = append(out, r.Kind); return nil }); err != nil {
		b.t.Fatal(err)
	}
	return out
}

func TestAWriteThatFailedAndIsDurableIsNotRepeated(t *testing.T) {
	b, st, _ := openShaky(t)
	st.fail(nil, errDisk, nil)
	s := gang(1, 8)
	s.Held = true
	id := b.submit(s)
	v, err := b.ctl.Job(t.Context(), id)
	if err != nil || v.Job.State != job.Pending {
		t.Fatalf("%+v, %v", v, err)
	}
	st.fail(nil, nil, nil)
	if got, want := b.kinds(), []string{"submitted"}; !slices.Equal(got, want) {
		t.Errorf("the journal has %v, want %v", got, want)
	}
	b.reopen()
	b.state(id, job.Pending)
}

// nodeIs has the engine say of one of its nodes that it is up or down.
func (b *bench) nodeIs(i int, state fleet.NodeState) {
	b.t.Helper()
	b.hand.mu.Lock()
	b.hand.nodes[i].State = state
	b.hand.mu.Unlock()
	if err := b.ctl.NodeIs(b.t.Context(), b.hand.nodes[i].Name, state); err != nil {
		b.t.Fatal(err)
	}
}

// TestAStartThatWasNotWrittenIsDecidedAnew: while it could not be written, its node went
// down. Seen to fail without reconsider: the start was written, and launched there.
func TestAStartThatWasNotWrittenIsDecidedAnew(t *testing.T) {
	b, st, c := openShaky(t)
	st.only, st.failed = "allocation-held", make(chan struct{}, 1000)
	st.fail(errDisk, nil, nil)
	id := b.submit(gang(1, 8))
	<-st.failed
	b.nodeIs(0, fleet.Down)
	st.fail(nil, nil, nil)
	b.until(id, "waiting for the node", func(v state.View) bool { return v.Why.Code == reason.NodeDown })
	if got, want := b.kinds(), []string{"submitted"}; !slices.Equal(got, want) {
		t.Errorf("the journal has %v, want %v", got, want)
	}
	b.nodeIs(0, fleet.Up)
	b.passUntil(c, time.Minute, id, job.Running)
}

// TestAWriteOfWhichNobodyKnows fails in a way that leaves open whether it is durable,
// for as long as the journal cannot be read either.
func TestAWriteOfWhichNobodyKnows(t *testing.T) {
	for _, durable := range []bool{true, false} {
		b, st, c := openShaky(t)
		if st.fail(errDisk, nil, errDisk); durable {
			st.fail(nil, errDisk, errDisk)
		}
		s := gang(1, 8)
		s.Held = true
		for range 2 { // the second is refused: nothing is written before the first is settled
			if _, err := b.ctl.Submit(t.Context(), control.Submission{Spec: s}); fault.KindOf(err) != fault.Unavailable {
				t.Fatalf("a submission of which nobody knows: %v", err)
			}
		}
		if st.tried() != 1 {
			t.Errorf("the journal was written %d times", st.tried())
		}
		st.fail(nil, nil, nil)
		var id job.ID
		for deadline := time.Now().Add(time.Minute); id == 0; {
			c.pass(time.Second)
			a, err := b.ctl.Submit(t.Context(), control.Submission{Spec: s})
			if id = a.ID; err != nil && (fault.KindOf(err) != fault.Unavailable || time.Now().After(deadline)) {
				t.Fatal(err)
			}
		}
		want := []string{"submitted"}
		if durable {
			want = []string{"submitted", "submitted"}
		}
		if got := b.kinds(); !slices.Equal(got, want) {
			t.Errorf("job %d, and the journal has %v, want %v", id, got, want)
		}
		b.reopen()
		b.state(id, job.Pending)
	}
}

// TestADiskIsTriedAgainWithTheNextRequest fills the disk under a clock that stands:
// no pause ends.
func TestADiskIsTriedAgainWithTheNextRequest(t *testing.T) {
	b, st, _ := openShaky(t)
	full := fault.New(fault.Exhausted, "no space left on device")
	id := b.submit(gang(1, 8))
	v := b.launched(id)
	st.fail(full, nil, nil)
	b.hand.end(v, engine.Exited, 0) // it cannot be refused, and is kept
	for range 2 {
		if _, err := b.ctl.Submit(t.Context(), control.Submission{Spec: gang(1, 8)}); fault.KindOf(err) != fault.Exhausted {
			t.Fatalf("a submission with a full disk: %v", err)
		}
	}
	if err := ask(t.Context(), b.ctl, id, control.Cancel{}); fault.KindOf(err) != fault.Exhausted {
		t.Fatalf("a cancel that waits behind what is kept: %v", err)
	}
	st.fail(nil, nil, nil)
	next := b.submit(gang(1, 8))
	b.state(id, job.Completed)
	b.launched(next)
}

// TestMessagesThatWaitAreRefusedWithTheDisk has several requests about one job at
// hand when the disk fills: all but the first wait for the first.
func TestMessagesThatWaitAreRefusedWithTheDisk(t *testing.T) {
	b, st, _ := openShaky(t)
	s := gang(1, 8)
	s.Held = true
	id := b.submit(s)
	st.fail(fault.New(fault.Exhausted, "no space left on device"), nil, nil)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := ask(t.Context(), b.ctl, id, control.Hold{}); fault.KindOf(err) != fault.Exhausted {
				t.Errorf("a release with a full disk: %v", err)
			}
		})
	}
	wg.Wait()
}

// TestAServerThatWasFollowedEndsNothing lets another server lead and start work; the
// first one hears of it.
func TestAServerThatWasFollowedEndsNothing(t *testing.T) {
	b := open(t, newHand(1, 8))
	if _, err := b.store.Lead(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	theirs, ended := engine.Ref{Allocation: 1, Attempt: 1}, engine.Ref{Allocation: 2, Attempt: 1}
	b.hand.mu.Lock()
	b.hand.put(engine.Report{Ref: theirs, Job: 1, Phase: engine.Running})
	b.hand.put(engine.Report{Ref: ended, Job: 2, Phase: engine.Ended, Gone: true})
	b.hand.mu.Unlock()
	<-b.ctl.Done()
	b.hand.mu.Lock()
	if len(b.hand.stops) != 0 || len(b.hand.reports) != 2 {
		t.Errorf("stopped %v, known still %v", b.hand.stops, b.hand.reports)
	}
	b.hand.mu.Unlock()
	if err := b.ctl.Close(); fault.KindOf(err) != fault.Conflict {
		t.Errorf("it ended with %v", err)
	}
	b.open() // for the cleanup
}

// TestAServerThatWasFollowedAnswersNothing asks for what needs no record.
func TestAServerThatWasFollowedAnswersNothing(t *testing.T) {
	for name, do := range map[string]func(context.Context, *control.Control) error{
		"cancel":  func(ctx context.Context, c *control.Control) error { return ask(ctx, c, 1, control.Cancel{}) },
		"hold":    func(ctx context.Context, c *control.Control) error { return ask(ctx, c, 1, control.Hold{On: true}) },
		"unknown": func(ctx context.Context, c *control.Control) error { return ask(ctx, c, 9, control.Requeue{}) },
		"nodes": func(ctx context.Context, c *control.Control) error {
			return c.SetNodes(ctx, job.Actor{}, []string{"none"}, true, "")
		},
		"token": func(ctx context.Context, c *control.Control) error { return c.RevokeToken(ctx, job.Actor{}, "t") },
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, newHand(1, 8))
			b.finish(b.submit(gang(1, 8)), 0)
			if _, err := b.store.Lead(t.Context(), "another"); err != nil {
				t.Fatal(err)
			}
			if err := do(t.Context(), b.ctl); fault.KindOf(err) != fault.Unavailable || err == nil {
				t.Errorf("a server that was followed answers %v", err)
			}
			<-b.ctl.Done()
			if err := b.ctl.Close(); fault.KindOf(err) != fault.Conflict {
				t.Errorf("it ended with %v", err)
			}
			b.open() // for the cleanup
		})
	}
}

// openUnsure opens a control plane with two nodes of four devices on a store that fails, a
// job of QOS lo that runs on one of them, and two that are held: one like it, and one of hi
// that needs both nodes. When they are let go at once, low starts and is to make room in
// the same step.
func openUnsure(t *testing.T) (b *bench, st *shaky, c *clock, first state.View, low, high job.ID) {
	t.Helper()
	st, c = &shaky{Memory: new(store.Memory)}, newClock()
	b = &bench{t: t, hand: newHand(2, 4), store: st.Memory}
	b.cfg = control.Config{Store: st, Pools: onHand(b.hand), Clock: c, Project: -1}
	b.open()
	t.Cleanup(b.close)
	b.ranks("")
	s := gang(1, 4)
	s.QOS, s.Requeue = "lo", true
	first = b.launched(b.submit(s))
	b.hand.report(engine.Report{Ref: first.Ref, Phase: engine.Running, Started: c.Now()})
	b.begun(first.Job.ID)
	s.Held = true
	low = b.submit(s)
	s = gang(2, 4)
	s.QOS, s.Requeue, s.Held = "hi", true, true
	return b, st, c, first, low, b.submit(s)
}

// TestAStartThatIsTakenBackTakesAllThatFollowsFromIt: what else was decided of the job would
// not apply, when it is written and whenever the journal is read again. Seen to fail where
// the start alone was taken back: control ended and could not be opened any more.
func TestAStartThatIsTakenBackTakesAllThatFollowsFromIt(t *testing.T) {
	b, st, c, first, low, high := openUnsure(t)
	other := 0
	if first.Claims[0].Node == b.hand.nodes[other].Name {
		other = 1
	}
	st.mu.Lock()
	st.only, st.failed = "allocation-held", make(chan struct{}, 1000)
	st.mu.Unlock()
	st.fail(errDisk, nil, nil)
	if _, err := b.ctl.Change(t.Context(), job.Actor{Name: "me"}, []job.ID{low, high}, control.Hold{}); err != nil {
		t.Fatal(err)
	}
	<-st.failed
	b.nodeIs(other, fleet.Down)
	st.fail(nil, nil, nil)
	c.pass(time.Minute)
	b.hand.stopped(t, first.Ref) // the rest of the step was written
	if got := b.kinds(); slices.Contains(got[6:], "allocation-held") || got[len(got)-1] != "preempt-asked" {
		t.Errorf("the journal has %v", got)
	}
	b.reopen()
	b.hand.end(first, engine.Stopped, 143)
	b.until(first.Job.ID, "has ended", func(v state.View) bool { return v.Job.Attempt > 1 || v.Job.Flags&job.Requeued != 0 })
}

// TestAJournalOfOlderVersionsIsRead: they could write that a job makes room whose start
// they had taken back.
func TestAJournalOfOlderVersionsIsRead(t *testing.T) {
	b, st, c, first, low, high := openUnsure(t)
	b.close()
	epoch, err := st.Lead(t.Context(), "old")
	if err != nil {
		t.Fatal(err)
	}
	rec := store.Record{At: c.Now(), Kind: "preempt-asked", Job: uint64(low), Data: []byte(`{"for":3,"mode":"requeue","grace":7000000000,"state":"RUNNING"}`)}
	if _, err := st.Memory.Append(t.Context(), epoch, []store.Record{rec}); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	b.cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
	b.open()
	b.cfg.Log = nil
	b.waits(low, reason.HeldUser)
	b.close()
	if !strings.Contains(said.String(), "makes room for nobody") {
		t.Errorf("it says %q", said.String())
	}
	b.open()
	if _, err := b.ctl.Change(t.Context(), job.Actor{Name: "me"}, []job.ID{low, high}, control.Hold{}); err != nil {
		t.Fatal(err)
	}
	b.hand.stopped(t, first.Ref)
}
