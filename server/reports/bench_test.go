package reports_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/rusage"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// storedRow is the row of a job that ran on four devices, as a control plane writes it.
func storedRow(b *testing.B) store.JobRow {
	b.Helper()
	node := fleet.Node{Name: "gpu1", Pool: "local", State: fleet.Up, Parts: []string{"main"}, Capacity: resource.Vector{CPU: resource.CPUs(64), Memory: 512 * resource.GiB}}
	for i := range 8 {
		node.Devices = append(node.Devices, fleet.Device{Index: i, Kind: "gpu", Type: "h100"})
	}
	world := fake.NewWorld(fake.Config{Now: time.Now, Nodes: []fleet.Node{node}})
	engine, st := world.Open(), &store.Memory{}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go world.Run(ctx)
	c, err := control.Open(ctx, control.Config{Store: st, Pools: []pools.Pool{{Pool: fleet.Pool{Name: "local", Engine: "fake"}, Engine: engine}}, Who: "test"})
	if err != nil {
		b.Fatal(err)
	}
	spec := &job.Spec{
		Name: "train", Owner: job.Owner{User: "anna", UID: 2001, GID: 2001}, Partitions: []string{"main"}, Account: "nlp", QOS: "normal", TimeLimit: 4 * time.Hour,
		Groups:  []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 4}, CPUsPerTask: 8, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(8), Memory: 64 * resource.GiB}, Devices: []resource.DeviceRequest{{Type: "h100", Count: 1}}}}},
		WorkDir: "/home/anna/llama", Program: job.Program{Kind: job.Batch}, Output: job.Output{Stdout: "logs/%x-%j.out"},
		Source: job.Source{File: "train.sbatch", Submit: "/home/anna/llama", Host: "login1", Given: map[string]string{"nodes": "1", "gpus-per-task": "1", "time": "4:00:00", "mem-per-cpu": "8G"}},
	}
	got, err := c.Submit(ctx, control.Submission{Spec: spec, Script: []byte("#!/bin/sh\n")})
	if err != nil {
		b.Fatal(err)
	}
	row, err := st.Job(ctx, uint64(got.ID))
	for ; err != nil || !row.Final; row, err = st.Job(ctx, uint64(got.ID)) {
		time.Sleep(time.Millisecond)
	}
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
	used, err := json.Marshal(rusage.Make([]rusage.Node{{Name: "gpu1", Use: rusage.Use{Known: 7, User: 100 * time.Hour, System: time.Hour, Memory: 100 << 30, Read: 1 << 40}, GPUs: []rusage.GPU{{Index: 0, Samples: 400, Busy: 88, MaxBusy: 100, Memory: 70 << 30, Of: 80 << 30}, {Index: 1, Samples: 400, Busy: 85, MaxBusy: 100, Memory: 70 << 30, Of: 80 << 30}}}},
		[][]rusage.Step{{rusage.TaskStep(-1, 0, "gpu1", rusage.Use{Known: 7, User: time.Minute, Memory: 1 << 20}), rusage.TaskStep(0, 0, "gpu1", rusage.Use{Known: 7, User: 100 * time.Hour, Memory: 100 << 30})}}))
	if err != nil {
		b.Fatal(err)
	}
	row.Detail = json.RawMessage(strings.Replace(string(row.Detail), `"report":{`, `"report":{"used":`+string(used)+`,`, 1))
	for _, x := range []struct{ was, is time.Time }{{row.Submitted, now.Add(-4 * time.Hour)}, {row.Started, now.Add(-3 * time.Hour)}, {row.Ended, now.Add(-time.Hour)}} {
		micros := func(t time.Time) string { return fmt.Sprint(":", t.UnixMicro()) } // the detail has nanoseconds
		row.Detail = json.RawMessage(strings.ReplaceAll(string(row.Detail), micros(x.was), micros(x.is)))
	}
	return row
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// stored is a plane whose jobs are in a store alone.
type stored struct {
	*servertest.Plane
	reader *query.Reader
}

func (s *stored) HistoryInBrief(ctx context.Context, q store.Query, f func(*state.View) bool) error {
	return s.reader.HistoryInBrief(ctx, q, f)
}

// BenchmarkReport is the time of a report over a history of 100,000 jobs on disk.
func BenchmarkReport(b *testing.B) {
	const jobs = 100_000
	row := storedRow(b)
	st, err := sqlite.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	epoch, err := st.Lead(b.Context(), "test")
	if err != nil {
		b.Fatal(err)
	}
	rows := make([]store.JobRow, 0, 1000)
	for i := range jobs {
		r := row
		r.ID = uint64(i + 1)
		r.Submitted = now.Add(-time.Duration(jobs-i) * 20 * time.Second)
		r.Started, r.Ended = r.Submitted.Add(time.Minute), r.Submitted.Add(time.Hour)
		rows = append(rows, r)
		if len(rows) == cap(rows) {
			if err := st.Project(b.Context(), epoch, uint64(i+1), rows, nil); err != nil {
				b.Fatal(err)
			}
			rows = rows[:0]
		}
	}
	p := servertest.NewPlane()
	r, _ := serveReports(b, &stored{p, query.New(query.Sources{Store: st})}, p, false)
	anna := r.As(b, "anna")
	for _, kind := range []string{"usage", "waits"} {
		b.Run(fmt.Sprint(kind), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begun := cpuTime(b)
			for b.Loop() {
				got, err := anna.Report(b.Context(), kind, &client.ReportQuery{From: now.AddDate(-1, 0, 0), By: []string{"account", "user"}})
				if err != nil || len(got.Rows) != 1 {
					b.Fatal(err, got)
				}
			}
			b.ReportMetric(float64((cpuTime(b)-begun).Milliseconds())/float64(b.N), "cpu-ms/report")
			runtime.ReadMemStats(&after)
			b.ReportMetric((float64(after.HeapSys)-float64(before.HeapSys))/(1<<20), "MiB-heap-grown")
		})
	}
}
