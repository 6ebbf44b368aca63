package slurm_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestCost measures what live jobs cost slurmctld, and how late changes are seen. It judges
// nothing: docs/explanation/slurm-cost.md has the figures. LIVE says how many, of which 200 run and the others
// wait; WAYS by which way in.
func TestCost(t *testing.T) {
	if os.Getenv("COX_LONG") == "" {
		t.Skip("COX_LONG is not set")
	}
	for _, version := range []string{"22.05", "24.11"} {
		t.Run(version, func(t *testing.T) {
			c := clusters[version]
			c.More = parking
			l := lab.Start(t, c)
			for _, way := range strings.Fields(cmp.Or(os.Getenv("WAYS"), "commands rest")) {
				t.Run(way, func(t *testing.T) {
					b := newBench(func() site.Site { return l.Command() }, openHere)
					if way == "rest" {
						b = newBench(func() site.Site { return byREST(t, l, nil) }, openHere)
					}
					b.usual, b.delegated = true, true
					cost(t, l, b, number(t, "LIVE", 200))
				})
			}
		})
	}
}

func cost(t *testing.T, l *lab.Lab, b *bench, jobs int) {
	const runs, watched = 200, 60 * time.Second
	e := b.open(t, t.TempDir())
	dir := t.TempDir()
	ended := dir + "/ended."
	began := time.Now()
	for i := 1; i <= jobs; i++ {
		wait := 100000
		if i%2 == 0 { // so many end, one after another, while it is watched
			wait = 25 + i/4
		}
		spec := &job.Spec{
			Name: "cost", WorkDir: dir, Output: job.Output{Stdout: "/dev/null"}, Program: job.Program{Kind: job.Batch},
			Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}}},
		}
		if i > runs {
			spec.Partitions = []string{"parked"}
		}
		err := e.Launch(t.Context(), &engine.Launch{
			Ref: engine.Ref{Allocation: uint64(i), Attempt: 1}, Claims: []fleet.Claim{{Node: "slurm", Tasks: 1, Take: resource.Vector{Memory: 100 * resource.MiB}}}, Env: []string{"PATH=/usr/bin:/bin"},
			Script: fmt.Appendf(nil, "#!/bin/sh\nsleep %d\n: >%s%d\n", wait, ended, i),
			Job:    &job.Job{ID: job.ID(i), Attempt: 1, Spec: spec},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	running := map[engine.Ref]bool{}
	see := func(until time.Duration, f func(engine.Report) bool) {
		ctx, cancel := context.WithTimeout(t.Context(), until)
		defer cancel()
		_ = e.Watch(ctx, "", func(ev engine.Event) error {
			if f(ev.Report) {
				return context.Canceled
			}
			return nil
		})
	}
	see(5*time.Minute, func(r engine.Report) bool {
		if r.Phase >= engine.Running {
			running[r.Ref] = true
		}
		return len(running) == min(jobs, runs)
	})
	t.Logf("%d of %d jobs run after %s", len(running), jobs, time.Since(began).Round(time.Millisecond))
	if jobs > runs { // until the others are all handed over
		for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline) && len(strings.Fields(l.Run(t, "squeue", "--noheader", "--states=PENDING", "--format=%i"))) < jobs-runs; time.Sleep(time.Second) {
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("load %s", load)
	polls, cpu, own, from := e.Polls(), l.CPU(t, "slurmctld"), used(t), time.Now()
	var late []time.Duration
	see(watched, func(r engine.Report) bool {
		if info, err := os.Stat(fmt.Sprint(ended, r.Ref.Allocation)); err == nil && r.Gone && info.ModTime().After(from) {
			late = append(late, time.Since(info.ModTime()))
		}
		return false
	})
	took, spent, now := time.Since(from), l.CPU(t, "slurmctld")-cpu, e.Polls()
	mine := used(t) - own
	slices.Sort(late)
	t.Logf("slurmctld: %s of CPU in %s, %.2f %% of a core; %d polls of %d jobs, the last took %s; our own CPU %.2f %%", spent, took.Round(time.Second), 100*spent.Seconds()/took.Seconds(), now.Count-polls.Count, now.Jobs-polls.Jobs, now.Latency.Round(time.Millisecond), 100*mine.Seconds()/took.Seconds())
	if n := len(late); n > 0 {
		t.Logf("%d ends, from the script's last line to the report: median %s, 99 of 100 within %s, the latest %s", n, late[n/2].Round(time.Millisecond), late[(n-1)*99/100].Round(time.Millisecond), late[n-1].Round(time.Millisecond))
	}
}
