package slurm_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/slurm/lab"
	"github.com/coxswain-sched/coxswain/engine/slurm/site"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/resource"
)

// TestCost measures what 200 live jobs cost slurmctld, and how late changes are seen. It
// judges nothing: docs/slurm.md has the figures.
func TestCost(t *testing.T) {
	if os.Getenv("COX_LONG") == "" {
		t.Skip("COX_LONG is not set")
	}
	for version, c := range clusters {
		t.Run(version, func(t *testing.T) {
			l := lab.Start(t, c)
			b := newBench(func() site.Site { return l.Command() }, openHere)
			b.usual = true
			cost(t, l, b)
		})
	}
}

func cost(t *testing.T, l *lab.Lab, b *bench) {
	const jobs, watched = 200, 60 * time.Second
	e := b.open(t, t.TempDir())
	dir := t.TempDir()
	ended := dir + "/ended."
	began := time.Now()
	for i := 1; i <= jobs; i++ {
		wait := 100000
		if i%4 == 0 { // so many end, one after another, while it is watched
			wait = 60 + i/4
		}
		err := e.Launch(t.Context(), &engine.Launch{
			Ref: engine.Ref{Allocation: uint64(i), Attempt: 1}, Claims: []fleet.Claim{{Node: l.Nodes[i%len(l.Nodes)], Tasks: 1, Take: resource.Vector{Memory: 100 * resource.MiB}}}, Env: []string{"PATH=/usr/bin:/bin"},
			Script: fmt.Appendf(nil, "#!/bin/sh\nsleep %d\n: >%s%d\n", wait, ended, i),
			Job: &job.Job{ID: job.ID(i), Attempt: 1, Spec: &job.Spec{
				Name: "cost", WorkDir: dir, Output: job.Output{Stdout: "/dev/null"}, Program: job.Program{Kind: job.Batch},
				Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}}},
			}},
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
		return len(running) == jobs
	})
	t.Logf("%d of %d jobs run after %s", len(running), jobs, time.Since(began).Round(time.Millisecond))
	polls, cpu, from := e.Polls(), l.CPU(t, "slurmctld"), time.Now()
	var late []time.Duration
	see(watched, func(r engine.Report) bool {
		if info, err := os.Stat(fmt.Sprint(ended, r.Ref.Allocation)); err == nil && r.Gone && info.ModTime().After(from) {
			late = append(late, time.Since(info.ModTime()))
		}
		return false
	})
	took, used, now := time.Since(from), l.CPU(t, "slurmctld")-cpu, e.Polls()
	slices.Sort(late)
	t.Logf("slurmctld: %s of CPU in %s, %.2f %% of a core; %d polls, the last took %s", used, took.Round(time.Second), 100*used.Seconds()/took.Seconds(), now.Count-polls.Count, now.Latency.Round(time.Millisecond))
	if n := len(late); n > 0 {
		t.Logf("%d ends, from the script's last line to the report: median %s, the latest %s", n, late[n/2].Round(time.Millisecond), late[n-1].Round(time.Millisecond))
	}
}
