package slurm_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	guard "github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// crowded is a stage on which ends are counted, and submissions may hang.
type crowded struct {
	*stage
	mu    sync.Mutex
	now   int
	most  int
	ended int
	full  chan struct{} // until it is closed, ends take long
	hang  chan struct{} // nil: submissions do not
}

func (c *crowded) Submit(ctx context.Context, s *site.Submission) (uint32, error) {
	if c.hang != nil {
		select {
		case <-c.hang:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return c.stage.Submit(ctx, s)
}

func (c *crowded) End(ctx context.Context, id uint32) error {
	c.mu.Lock()
	c.now++
	c.ended++
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	select {
	case <-c.full:
	case <-ctx.Done():
	}
	c.mu.Lock()
	c.now--
	c.mu.Unlock()
	return c.stage.End(ctx, id)
}

// TestStopsTakeTurns: of many jobs that are to end a few are told at once, and all are.
//
// Seen to fail with: every attempt telling its own when it likes.
func TestStopsTakeTurns(t *testing.T) {
	c := &crowded{stage: &stage{}, full: make(chan struct{})}
	e, root := stageWith(t, c.stage, func(f *slurm.Config) { f.Site, f.Senders, f.Placed = c, 4, false })
	const jobs = 60
	for i := range jobs {
		if err := e.Launch(t.Context(), another(root, uint64(i+1), 1)); err != nil {
			t.Fatal(err)
		}
	}
	awaits(t, "all handed over", func() (ok bool) { c.with(func() { ok = len(c.jobs) == jobs }); return ok })
	for i := range jobs {
		if err := e.Stop(t.Context(), engine.Ref{Allocation: uint64(i + 1), Attempt: 1}, engine.Stop{Grace: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	awaits(t, "some told to end", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.now >= 4 })
	polls := e.Polls().Count // time for more of them
	awaits(t, "more polls", func() bool { return e.Polls().Count > polls+20 })
	close(c.full)
	awaits(t, "all told to end", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.ended >= jobs })
	if c.most > 8 {
		t.Errorf("%d at once", c.most)
	}
}

// TestAStopDoesNotWaitForATurn: a job that waits to be handed over behind some that hang ends at
// once when it is stopped.
//
// Seen to fail with: an end when its turn comes.
func TestAStopDoesNotWaitForATurn(t *testing.T) {
	c := &crowded{stage: &stage{}, full: make(chan struct{}), hang: make(chan struct{})}
	e, root := stageWith(t, c.stage, func(f *slurm.Config) { f.Site, f.Senders, f.Placed = c, 1, false })
	for i := range 4 {
		if err := e.Launch(t.Context(), another(root, uint64(i+1), 1)); err != nil {
			t.Fatal(err)
		}
	}
	ended := map[uint64]bool{}
	for i := range 4 { // whoever has the turn is not known
		if err := e.Stop(t.Context(), engine.Ref{Allocation: uint64(i + 1), Attempt: 1}, engine.Stop{}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, e, func(r engine.Report) bool {
		if r.Gone {
			ended[r.Ref.Allocation] = true
		}
		return len(ended) == 3
	})
	close(c.hang)
	close(c.full)
	awaits(t, "the end of the one that hung", func() (ok bool) {
		all, err := e.List(t.Context())
		c.with(func() {
			ok = err == nil && (len(c.cancelled) > 0 || !slices.ContainsFunc(all, func(r engine.Report) bool { return !r.Gone }))
		})
		return ok
	})
}

// reads counts how often a directory of locks is listed, and asked for files.
type reads struct {
	lockdir.Directory
	mu           sync.Mutex
	lists, looks int
	dropped      int
}

func (r *reads) List(ctx context.Context) ([]string, error) {
	r.mu.Lock()
	r.lists++
	r.mu.Unlock()
	return r.Directory.List(ctx)
}

func (r *reads) Drop(ctx context.Context, names []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped += len(names)
	r.looks++
	return r.Directory.Drop(ctx, names)
}

// Remove lists the directory, once for each attempt.
func (r *reads) Remove(context.Context, string) error { panic("old locks are removed by name") }

// TestManyOldLocks are removed with a few calls, not with one for each.
//
// Seen to fail with: each attempt's looked for anew.
func TestManyOldLocks(t *testing.T) {
	s := &stage{}
	var count *reads
	e, root := stageWith(t, s, func(c *slurm.Config) {
		locks, err := lockdir.Open(filepath.Join(c.Root, "locks"))
		if err != nil {
			t.Fatal(err)
		}
		count = &reads{Directory: locks}
		c.Room, c.KeepLocks = count, time.Nanosecond
	})
	const many = 300
	begin(t, e, root)
	s.act(t, time.Now(), "n1") // its lock says what this driver's are called
	names, err := count.Directory.List(t.Context())
	if err != nil || len(names) == 0 {
		t.Fatalf("%q, %v", names, err)
	}
	for i := range many {
		ref := engine.Ref{Allocation: uint64(1000 + i), Attempt: 1}
		if _, _, err := count.Take(t.Context(), ref.String()+names[0][len("1.1"):], "x"); err != nil {
			t.Fatal(err)
		}
		if err := e.Forget(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	awaits(t, "the end of the old locks", func() bool { count.mu.Lock(); defer count.mu.Unlock(); return count.dropped >= many })
	if count.looks > many/3 {
		t.Errorf("%d calls", count.looks)
	}
}

// lockless is a stage whose locks cannot be taken for a while.
type lockless struct {
	lockdir.Directory
	away atomic.Bool
}

func (l *lockless) Take(ctx context.Context, name, text string) (bool, string, error) {
	if l.away.Load() {
		return false, "", fault.New(fault.Unavailable, "the file system does not answer")
	}
	return l.Directory.Take(ctx, name, text)
}

// TestWithdraw: a job that waits in Slurm is barred, then cancelled, and its end is no start. Where that is not
// certain nothing is done to it: while it is handed over, where its lock or Slurm gives no answer; one that has
// taken its lock goes on.
//
// Seen to fail with: a stop before the lock is barred, the lock of a job that has begun taken for a bar, and a start
// inferred from what Slurm says of a job that is barred.
func TestWithdraw(t *testing.T) {
	s := &stage{}
	var room *lockless
	e, root := stageWith(t, s, func(f *slurm.Config) {
		room = &lockless{Directory: f.Room}
		f.Room, f.Placed = room, false
	})
	if k := fault.KindOf(e.Withdraw(t.Context(), engine.Ref{Allocation: 9, Attempt: 1})); k != fault.NotFound {
		t.Errorf("one that is not known: %s", k)
	}
	untouched := func() {
		t.Helper()
		s.with(func() {
			if len(s.cancelled) > 0 {
				t.Fatalf("cancelled: %d", s.cancelled)
			}
		})
	}
	withdraw := func(ref engine.Ref, want fault.Kind) {
		t.Helper()
		awaits(t, "the answer "+want.String(), func() bool {
			err := e.Withdraw(t.Context(), ref)
			return err != nil && fault.KindOf(err) == want
		})
		untouched()
	}
	begun := another(root, 1, 1)
	s.with(func() { s.refuseOnce = fault.New(fault.Unavailable, "no answer") })
	if err := e.Launch(t.Context(), begun); err != nil {
		t.Fatal(err)
	}
	withdraw(begun.Ref, fault.Unavailable)
	s.taken(t)
	room.away.Store(true)
	withdraw(begun.Ref, fault.Unavailable)
	room.away.Store(false)
	s.with(func() { s.jobs[0].Restarts = 1 })
	withdraw(begun.Ref, fault.Unavailable)
	s.with(func() { s.jobs[0].Restarts, s.jobs[0].Held = 0, true })
	withdraw(begun.Ref, fault.Unavailable)
	s.with(func() { s.jobs[0].Held = false })
	locks, lock := filepath.Join(root, "locks"), ""
	s.with(func() { lock = regexp.MustCompile(`1\.1-[0-9A-Za-z]+`).FindString(s.script) + ".0" })
	if err := os.WriteFile(filepath.Join(locks, lock), []byte("101 0 n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	withdraw(begun.Ref, fault.Conflict)

	waits := another(root, 2, 1)
	waits.Job.ID = 8
	if err := e.Launch(t.Context(), waits); err != nil {
		t.Fatal(err)
	}
	awaits(t, "it is taken back", func() bool { return e.Withdraw(t.Context(), waits.Ref) == nil })
	awaits(t, "it is cancelled", func() (ok bool) { s.with(func() { ok = slices.Contains(s.cancelled, 102) }); return ok })
	if found, err := filepath.Glob(filepath.Join(locks, "2.1-*.0")); err != nil || len(found) != 1 {
		t.Fatalf("its locks: %q, %v", found, err)
	} else if b, err := os.ReadFile(found[0]); string(b) != "fenced\n" {
		t.Errorf("its lock has %q, %v", b, err)
	}
	s.with(func() { s.jobs[1].State, s.jobs[1].Ended = site.Cancelled, time.Now() })
	r := until(t, e, func(r engine.Report) bool { return r.Gone && r.Ref == waits.Ref })
	if r.Cause != engine.Stopped || !r.Started.IsZero() || len(r.Tasks) > 0 {
		t.Errorf("its end: %+v", r)
	}

	late := another(root, 3, 1) // slurmctld starts it at the same time
	late.Job.ID = 9
	if err := e.Launch(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	awaits(t, "it is taken back", func() bool { return e.Withdraw(t.Context(), late.Ref) == nil })
	s.with(func() {
		s.jobs[2].State, s.jobs[2].Started, s.jobs[2].Nodes = site.Running, time.Now().Add(-time.Minute), []string{"n1"}
	})
	r = until(t, e, func(r engine.Report) bool { return r.Ref == late.Ref && len(r.Nodes) > 0 })
	if !r.Started.IsZero() {
		t.Errorf("while Slurm calls it running: %+v", r)
	}
	s.with(func() {
		s.jobs[2].State, s.jobs[2].Ended, s.jobs[2].Exit = site.Failed, time.Now(), job.ExitCode{Status: guard.ExitBarred}
	})
	r = until(t, e, func(r engine.Report) bool { return r.Gone && r.Ref == late.Ref })
	if r.Cause != engine.Stopped || !r.Started.IsZero() || len(r.Tasks) > 0 {
		t.Errorf("its end: %+v", r)
	}
	s.with(func() {
		if slices.Contains(s.cancelled, 101) {
			t.Error("the one that has begun was cancelled")
		}
	})
}
