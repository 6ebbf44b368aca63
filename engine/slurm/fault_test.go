package slurm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/slurm/lab"
	"github.com/coxswain-sched/coxswain/engine/slurm/site"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
)

// TestCrashes: while jobs are handed over slurmctld is killed again and again, at moments
// drawn from SEED, and so is the driver. Every attempt ends once, by the exit code of its
// script or with Slurm's having lost it before it began; no script ran twice.
func TestCrashes(t *testing.T) {
	for version, c := range clusters {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			crashes(t, lab.Start(t, c))
		})
	}
}

func crashes(t *testing.T, l *lab.Lab) {
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	b := newBench(func() site.Site { return l.Command() }, openHere)
	root, dir := t.TempDir(), t.TempDir()
	e := b.open(t, root)
	ctx := t.Context()
	nodes, err := e.Nodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	go administrate(ctx, l)
	const jobs, crashes = 60, 3
	plan := func(i int) *engine.Launch {
		l := &engine.Launch{
			Ref: engine.Ref{Allocation: uint64(i), Attempt: 1},
			Job: &job.Job{ID: job.ID(i), Attempt: 1, Spec: &job.Spec{
				Name: "crash", WorkDir: dir, Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}}},
				Program: job.Program{Kind: job.Batch, ScriptName: "crash.sh"},
			}},
			Script: fmt.Appendf(nil, "#!/bin/sh\necho %d $SLURM_JOB_ID >>%s/ran.%d\nsleep %g\nexit 3\n", i, dir, i, rnd.Float64()*3),
			Env:    []string{"PATH=/usr/bin:/bin"}, Grace: time.Second,
		}
		l.Claims = []fleet.Claim{{Node: nodes[i%len(nodes)].Name, Tasks: 1}}
		return l
	}
	crashAt := map[int]bool{}
	for len(crashAt) < crashes {
		crashAt[1+rnd.IntN(jobs)] = true
	}
	for i := 1; i <= jobs; i++ {
		if err := e.Launch(ctx, plan(i)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rnd.IntN(60)) * time.Millisecond) // not to wait: to spread what happens
		if crashAt[i] {
			l.Kill(t, "slurmctld")
			if rnd.IntN(2) == 0 {
				b.closed[e] = true
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				e = b.open(t, root)
			}
			time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
			l.Begin(t, "slurmctld")
		}
	}
	wait, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	left := map[engine.Ref]bool{}
	for i := 1; i <= jobs; i++ {
		left[engine.Ref{Allocation: uint64(i), Attempt: 1}] = true
	}
	ends := map[engine.Cause]int{}
	_ = e.Watch(wait, "", func(ev engine.Event) error {
		r := ev.Report
		if !r.Gone || !left[r.Ref] {
			return nil
		}
		delete(left, r.Ref)
		ends[r.Cause]++
		ran, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("ran.%d", r.Ref.Allocation)))
		times := strings.Count(string(ran), "\n")
		switch {
		case times > 1:
			t.Errorf("%s ran %d times: %q", r.Ref, times, ran)
		case times == 1 && (r.Cause != engine.Exited || r.Exit.Status != 3) && r.Cause != engine.NodeLost:
			t.Errorf("%s ran and ended as %s, %s, %q", r.Ref, r.Cause, r.Exit, r.Message)
		case times == 0 && r.Cause != engine.Unready:
			t.Errorf("%s did not run and ended as %s, %s, %q", r.Ref, r.Cause, r.Exit, r.Message)
		}
		if r.Cause != engine.Exited {
			t.Logf("%s: %s, ran %d times: %s", r.Ref, r.Cause, times, r.Message)
		}
		if len(left) == 0 {
			return context.Canceled
		}
		return nil
	})
	for ref := range left {
		r, err := e.Inspect(ctx, ref)
		t.Errorf("%s has not ended: %s, uncertain %t, %q, %v", ref, r.Phase, r.Uncertain, r.Message, err)
	}
	t.Logf("ends: %v", ends)
	agree(t, l)
}

// agree waits until no job of an engine's lives in Slurm that has ended for it: slurmctld
// finds some again that were lost.
func agree(t *testing.T, l *lab.Lab) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		live := l.Run(t, "squeue", "-h", "-t", "PD,R,S,CF", "-o", "%i %T %r %k")
		if !strings.Contains(live, "cox:") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("these live in Slurm, and have ended here:\n%s", live)
		}
	}
}

// administrate brings nodes back that slurmctld drained because it gave out a number again
// that a job of theirs still had.
func administrate(ctx context.Context, l *lab.Lab) {
	run := func(name string, args ...string) string {
		out, _ := l.Try(ctx, name, args...)
		return out
	}
	for ctx.Err() == nil {
		for line := range strings.Lines(run("sinfo", "-h", "-N", "-o", "%N %T %E")) {
			if f := strings.Fields(line); len(f) > 2 && strings.HasPrefix(f[1], "drain") && strings.Contains(line, "Duplicate jobid") {
				run("scontrol", "update", "nodename="+f[0], "state=resume")
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}
