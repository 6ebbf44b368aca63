package control_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// large reports whether the figures of documentation are asked for: they take
// minutes and gigabytes.
func large() bool { return os.Getenv("COX_LARGE") != "" }

// batchJob is a submission as sbatch makes it: a script of 4 KB and an environment
// that no other job has.
func batchJob(i int) control.Submission {
	env := []string{"PATH=/usr/bin:/bin", "HOME=/home/u", fmt.Sprintf("RUN=%d", i)}
	for n := range 40 {
		env = append(env, fmt.Sprintf("VARIABLE_%d=some value of a variable that is not too short", n))
	}
	script := fmt.Sprintf("#!/bin/bash\n#SBATCH --job-name=train-%d\n", i) + strings.Repeat("# a line of the script that does nothing at all\n", 85)
	return control.Submission{
		Spec: &job.Spec{
			Name: fmt.Sprintf("train-%d", i), Owner: job.Owner{User: "u", UID: 1000, GID: 1000}, Account: "lab",
			TimeLimit: time.Hour, Partitions: []string{"gpu"},
			Groups: []job.TaskGroup{{
				Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}, CPUsPerTask: 1,
				PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(1)}},
				PerNode: resource.Requirements{Devices: []resource.DeviceRequest{{Count: 8}}},
			}},
			Program: job.Program{Kind: job.Batch, ScriptName: "train.sh", Args: []string{"--seed", strconv.Itoa(i)}},
			Output:  job.Output{Stdout: "slurm-%j.out"}, WorkDir: "/home/u/project",
			Env: job.Environment{Export: "ALL"},
			Source: job.Source{Form: "sbatch", File: "train.sh", Lines: [2]int{2, 2}, Host: "login1", Submit: "/home/u/project", Given: map[string]string{
				"job-name": fmt.Sprintf("train-%d", i), "gres": "gpu:8", "time": "1:00:00", "partition": "gpu", "account": "lab",
			}},
		},
		Script: []byte(script), Env: env, By: job.Actor{Name: "u", UID: 1000, From: "socket"},
	}
}

func busyPool() *hand {
	h := newHand(1, 8)
	for i := range h.nodes {
		h.nodes[i].Parts = []string{"gpu"}
	}
	return h
}

// submitMany submits jobs with 16 clients.
func submitMany(t testing.TB, c *control.Control, n int) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				i := int(next.Add(1))
				if i > n {
					return
				}
				if _, err := c.Submit(context.Background(), batchJob(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func openAt(t testing.TB, st store.Store, h *hand) *control.Control {
	t.Helper()
	c, err := control.Open(context.Background(), control.Config{Store: st, Pools: onHand(h), Who: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func openSQLite(t testing.TB, dir string) *sqlite.Store {
	t.Helper()
	st, err := sqlite.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func resident(t testing.TB) int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	var kb int64
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// TestPendingJobsAreSmall: scripts and environments stay out of memory, and what
// jobs have in common is there once.
func TestPendingJobsAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("a race detector's heap says nothing of ours")
	}
	counts := []int{3000}
	if large() {
		counts = []int{10_000, 100_000}
	}
	for _, n := range counts {
		st := openSQLite(t, t.TempDir())
		c := openAt(t, st, busyPool())
		submitMany(t, c, 100)
		before := heap()
		from := time.Now()
		submitMany(t, c, n)
		took := time.Since(from)
		waitProjected(t, c)
		per := (int64(heap()) - int64(before)) / int64(n)
		t.Logf("%d jobs: %d bytes of heap each, %d MB resident in all; %.0f submissions/s", n, per, resident(t)>>20, float64(n)/took.Seconds())
		if per > 900 { // about 120 of them are the record of the last decisions, see flight; and 50 more or less by what is under way
			t.Errorf("a pending job takes %d bytes of heap", per)
		}
		if name := os.Getenv("COX_HEAP"); name != "" {
			f, err := os.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(pprof.WriteHeapProfile(f), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		measureReads(t, c, n)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

func waitProjected(t testing.TB, c *control.Control) {
	t.Helper()
	eventually(t, "all is projected", func() bool { s := c.Stats(); return s.Seq == s.Projected })
}

// measureReads logs what lists and a cancel of everything take.
func measureReads(t *testing.T, c *control.Control, n int) {
	from := time.Now()
	var ids []job.ID
	c.Scan(query.Filter{Live: true}, func(v *state.View) bool {
		ids = append(ids, v.Job.ID)
		return true
	})
	scan := time.Since(from)
	if len(ids) < n {
		t.Errorf("%d of %d jobs are listed", len(ids), n)
	}
	from = time.Now()
	if _, err := c.Change(context.Background(), job.Actor{Name: "u"}, ids, control.Cancel{}); err != nil {
		t.Error(err)
	}
	t.Logf("%d jobs: list %v, cancel %v", len(ids), scan, time.Since(from))
	pending := 0
	c.Scan(query.Filter{Live: true}, func(v *state.View) bool {
		if v.Job.State == job.Pending {
			pending++
		}
		return true
	})
	if pending > 0 {
		t.Errorf("%d jobs still wait", pending)
	}
}

// used is the CPU time of this process.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSubmit is what a durable submission takes with 16 clients, scripts and
// environments with it.
func BenchmarkSubmit(b *testing.B) {
	st := openSQLite(b, b.TempDir())
	c := openAt(b, st, busyPool())
	b.ReportAllocs()
	b.ResetTimer()
	before := used()
	submitMany(b, c, b.N)
	b.StopTimer()
	b.ReportMetric(float64((used()-before).Microseconds())/float64(b.N), "µs-cpu/job")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	stats := c.Stats()
	b.ReportMetric(stats.Batch.Sum/float64(stats.Batch.Count), "records/write")
	b.ReportMetric(1e3*stats.Append.Sum/float64(stats.Append.Count), "ms/write")
	if err := c.Close(); err != nil {
		b.Error(err)
	}
	if err := st.Close(); err != nil {
		b.Error(err)
	}
}

// TestAStartReadsWhatIsLeft: a start does not read what has ended, and takes up what
// waits.
func TestAStartReadsWhatIsLeft(t *testing.T) {
	pending, done := 1000, 5000
	switch {
	case large():
		pending, done = 100_000, 1_000_000
	case testing.Short():
		pending, done = 100, 500
	}
	dir := t.TempDir()
	st, h := openSQLite(t, dir), busyPool()
	c := openAt(t, st, h)
	submitMany(t, c, pending)
	first, err := c.Submit(t.Context(), batchJob(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(t.Context(), c, first.ID, control.Cancel{}); err != nil {
		t.Fatal(err)
	}
	waitProjected(t, c)
	row, err := st.Job(t.Context(), uint64(first.ID))
	if err != nil {
		t.Fatal(err)
	}
	projected, err := st.Projected(t.Context())
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	fillHistory(t, st, row, projected, done)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	st = openSQLite(t, dir)
	c = openAt(t, st, h)
	took := time.Since(from)
	t.Logf("a start with %d waiting and %d ended jobs: %v, %d MB resident", pending, done, took, resident(t)>>20)
	if large() && took > 5*time.Second {
		t.Errorf("the start took %v", took)
	}
	n := 0
	c.Scan(query.Filter{Live: true}, func(*state.View) bool { n++; return true })
	if n != pending {
		t.Errorf("%d jobs have not ended after the start, want %d", n, pending)
	}
	next, err := c.Submit(t.Context(), batchJob(1))
	if err != nil || next.ID <= first.ID {
		t.Errorf("the next job is %d after %d: %v", next.ID, first.ID, err)
	}
	if err := errors.Join(c.Check(t.Context()), c.Close(), st.Close()); err != nil {
		t.Error(err)
	}
}

// fillHistory writes rows of jobs that ended long ago, made after one that ended now.
func fillHistory(t *testing.T, st *sqlite.Store, row store.JobRow, projected uint64, n int) {
	t.Helper()
	epoch, err := st.Lead(t.Context(), "history")
	if err != nil {
		t.Fatal(err)
	}
	row.Submitted, row.Ended = row.Submitted.Add(-48*time.Hour), row.Ended.Add(-24*time.Hour)
	rows := make([]store.JobRow, 0, 5000)
	for i := range n {
		row.ID = uint64(10_000_000 + i)
		rows = append(rows, row)
		if len(rows) == cap(rows) || i == n-1 {
			if err := st.Project(t.Context(), epoch, projected, rows, nil); err != nil {
				t.Fatal(err)
			}
			rows = rows[:0]
		}
	}
}

// instant is an engine in which everything ends at once.
type instant struct{ *hand }

func (i instant) Launch(ctx context.Context, l *engine.Launch) error {
	if err := i.hand.Launch(ctx, l); err != nil {
		return err
	}
	now := time.Now()
	i.report(engine.Report{Ref: l.Ref, Phase: engine.Running, Started: now})
	i.report(engine.Report{Ref: l.Ref, Phase: engine.Ended, Gone: true, Cause: engine.Exited, Started: now, Ended: now})
	return nil
}

// BenchmarkRun is what a job takes from its submission to its end, its processes
// aside.
func BenchmarkRun(b *testing.B) {
	st := openSQLite(b, b.TempDir())
	h := newHand(8, 8)
	for i := range h.nodes {
		h.nodes[i].Parts = []string{"gpu"}
	}
	c, err := control.Open(context.Background(), control.Config{Store: st, Pools: onHand(instant{h}), Who: b.Name()})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	before := used()
	submitMany(b, c, b.N)
	for after := uint64(0); c.Stats().Ended["COMPLETED"] < uint64(b.N); {
		if _, after, _, err = c.Events(context.Background(), after); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64((used()-before).Microseconds())/float64(b.N), "µs-cpu/job")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	if err := errors.Join(c.Close(), st.Close()); err != nil {
		b.Error(err)
	}
}

// BenchmarkStart is what it takes to take up 20,000 waiting jobs.
func BenchmarkStart(b *testing.B) {
	dir, h := b.TempDir(), busyPool()
	st := openSQLite(b, dir)
	c := openAt(b, st, h)
	submitMany(b, c, 20_000)
	waitProjected(b, c)
	if err := errors.Join(c.Close(), st.Close()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		st := openSQLite(b, dir)
		c := openAt(b, st, h)
		b.StopTimer()
		if err := errors.Join(c.Close(), st.Close()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
