package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// binaryVariable names a cox binary for the benchmarks; without it this test's own
// binary serves, which starts more slowly.
const binaryVariable = "COX_BENCH_BINARY"

// cost is the CPU time that this process and its ended children have used.
func cost(b *testing.B) time.Duration {
	b.Helper()
	var sum int64
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += u.Utime.Nano() + u.Stime.Nano()
	}
	return time.Duration(sum)
}

// benchEngine is an engine on the machine itself as its only node.
func benchEngine(b *testing.B) *local.Engine {
	b.Helper()
	e, err := local.New(local.Config{
		Root: b.TempDir(), Cox: os.Getenv(binaryVariable), Naming: local.NamedByAddr,
		Nodes: []fleet.Node{{Name: "here", State: fleet.Up}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func trueJob(b *testing.B, n int, dir string) *engine.Launch {
	b.Helper()
	return &engine.Launch{
		Ref: engine.Ref{Allocation: uint64(n), Attempt: 1},
		Job: &job.Job{ID: job.ID(n), Attempt: 1, Spec: &job.Spec{
			Name: "true", WorkDir: dir, Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}},
			Owner:   job.Owner{User: "root", UID: uint32(os.Getuid()), GID: uint32(os.Getgid())},
			Program: job.Program{Kind: job.Batch, ScriptName: "true.sh"},
		}},
		Script: []byte("#!/bin/sh\ntrue\n"), Env: os.Environ(), Grace: time.Second,
		Claims: []fleet.Claim{{Node: "here", Tasks: 1, Take: resource.Vector{CPU: resource.OneCPU}}},
	}
}

// BenchmarkTrue starts jobs of `true`, four at a time, as the control loop does,
// and forgets them. cpu-ms/op counts the engine, its supervisors and the shells;
// BenchmarkShell is what the shells alone cost. The output files are new ones or
// none: making one costs as much as the file system wants, ext4 more than usual for
// seconds after many were removed.
func BenchmarkTrue(b *testing.B) {
	b.Run("output=file", func(b *testing.B) { benchTrue(b, "") })
	b.Run("output=none", func(b *testing.B) { benchTrue(b, os.DevNull) })
}

func benchTrue(b *testing.B, output string) {
	const atOnce = 4
	e := benchEngine(b)
	began := cost(b)
	dir := b.TempDir()
	room := make(chan struct{}, atOnce)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var forgetting, watching sync.WaitGroup
	ended := 0
	done := errors.New("done")
	n := b.N
	watching.Go(func() {
		seen := map[engine.Ref]bool{}
		err := e.Watch(ctx, "", func(ev engine.Event) error {
			r := ev.Report
			if !r.Gone || seen[r.Ref] {
				return nil
			}
			if !r.Exit.OK() {
				b.Errorf("%s: %s %s", r.Ref, r.Exit, r.Message)
			}
			seen[r.Ref] = true
			<-room
			forgetting.Go(func() {
				if err := e.Forget(ctx, r.Ref); err != nil {
					b.Error(err)
				}
			})
			if ended++; ended == n {
				return done
			}
			return nil
		})
		if !errors.Is(err, done) {
			b.Error(err)
		}
	})
	b.ResetTimer()
	start := time.Now()
	for i := range n {
		room <- struct{}{}
		l := trueJob(b, i+1, dir)
		l.Job.Spec.Output.Stdout = output
		if err := e.Launch(ctx, l); err != nil {
			b.Fatal(err)
		}
	}
	watching.Wait()
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "jobs/s")
	forgetting.Wait()
	if err := e.Close(); err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64((cost(b)-began).Microseconds())/1000/float64(n), "cpu-ms/op")
}

// BenchmarkShell starts the same script as a child, one after the other: the floor.
func BenchmarkShell(b *testing.B) {
	name := filepath.Join(b.TempDir(), "script")
	if err := os.WriteFile(name, []byte("#!/bin/sh\ntrue\n"), 0o700); err != nil {
		b.Fatal(err)
	}
	began := cost(b)
	for b.Loop() {
		p, err := os.StartProcess("/bin/sh", []string{"/bin/sh", name}, &os.ProcAttr{Sys: &unix.SysProcAttr{Setsid: true}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cost(b)-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// BenchmarkFirst is the time from Launch to the first instruction of the batch
// script, on an idle engine.
func BenchmarkFirst(b *testing.B) {
	e := benchEngine(b)
	dir := b.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		b.Fatal(err)
	}
	gate, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer gate.Close()
	var took []time.Duration
	for n := 1; b.Loop(); n++ {
		l := trueJob(b, n, dir)
		l.Script = []byte("#!/bin/sh\necho > " + fifo + "\n")
		start := time.Now()
		if err := e.Launch(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		if _, err := gate.Read(make([]byte, 16)); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		b.StopTimer()
		waitGone(b, e, l.Ref)
		if err := e.Forget(b.Context(), l.Ref); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
	if err := e.Close(); err != nil {
		b.Error(err)
	}
}

func waitGone(b *testing.B, e engine.Engine, ref engine.Ref) {
	b.Helper()
	found := errors.New("found")
	err := e.Watch(b.Context(), "", func(ev engine.Event) error {
		if ev.Report.Ref == ref && ev.Report.Gone {
			return found
		}
		return nil
	})
	if !errors.Is(err, found) {
		b.Fatal(err)
	}
}

// BenchmarkStep is one `srun true` inside a job: srun, the step, its end.
func BenchmarkStep(b *testing.B) {
	e := benchEngine(b)
	dir := b.TempDir()
	l := trueJob(b, 1, dir)
	l.Job.Spec.Output.Stdout = filepath.Join(dir, "out")
	l.Script = fmt.Appendf(nil, "#!/bin/sh\ni=0\nwhile [ $i -lt %d ]; do srun true || exit 1; i=$((i+1)); done\n", b.N)
	began := cost(b)
	b.ResetTimer()
	if err := e.Launch(b.Context(), l); err != nil {
		b.Fatal(err)
	}
	waitGone(b, e, l.Ref)
	b.StopTimer()
	if r, err := e.Inspect(b.Context(), l.Ref); err != nil || !r.Exit.OK() {
		b.Fatalf("%s, %v", r.Exit, err)
	}
	if err := e.Close(); err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64((cost(b)-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}
