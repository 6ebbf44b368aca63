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
	"github.com/coxswain-sched/coxswain/engine/slurm"
	"github.com/coxswain-sched/coxswain/engine/slurm/lab"
	"github.com/coxswain-sched/coxswain/engine/slurm/site"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
)

// TestCrashes: while jobs are handed over slurmctld is killed again and again, at moments
// drawn from SEED, and so is the driver. Every attempt ends once, by the exit code of its
// script or with Slurm's having lost it before it began; nothing of it lives then, no script
// ran twice, and in the end Slurm has nothing of ours that we have not.
func TestCrashes(t *testing.T) { storms(t, storm{jobs: 60, faults: 3, kinds: []trouble{crash}}) }

// TestFaults is the same with every daemon, and a controller that hangs.
func TestFaults(t *testing.T) {
	storms(t, storm{jobs: 60, faults: 8, kinds: []trouble{crash, database, node, hang}})
}

// TestFaultsByREST is the same by slurmrestd alone, which is killed too.
func TestFaultsByREST(t *testing.T) {
	alone := func(t *testing.T, l *lab.Lab) site.Site { return byREST(t, l, nil) }
	storms(t, storm{jobs: 60, faults: 8, kinds: []trouble{crash, database, node, hang, killed("slurmrestd")}, way: alone})
}

// trouble breaks a cluster for some time.
type trouble func(t *testing.T, l *lab.Lab, rnd *rand.Rand, meanwhile func())

func killed(name string) trouble {
	return func(t *testing.T, l *lab.Lab, rnd *rand.Rand, meanwhile func()) {
		l.Kill(t, name)
		meanwhile()
		time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond) // how long it is away
		l.Begin(t, name)
	}
}

var crash, database = killed("slurmctld"), killed("slurmdbd")

// node kills a slurmd; its jobs go on.
func node(t *testing.T, l *lab.Lab, rnd *rand.Rand, meanwhile func()) {
	killed("slurmd."+l.Nodes[rnd.IntN(len(l.Nodes))])(t, l, rnd, meanwhile)
}

// hang has slurmctld answer nobody for a while.
func hang(t *testing.T, l *lab.Lab, rnd *rand.Rand, meanwhile func()) {
	l.Freeze(t, "slurmctld")
	meanwhile()
	time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond) // how long it hangs
	l.Thaw(t, "slurmctld")
}

// storm is what happens to a cluster while jobs are handed over to it.
type storm struct {
	jobs, faults int
	kinds        []trouble
	way          func(*testing.T, *lab.Lab) site.Site // nil: the commands

	rnd  *rand.Rand
	dir  string // where scripts write that they ran
	root string
}

func storms(t *testing.T, s storm) {
	t.Parallel()
	for version, c := range clusters {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := s
			seed := uint64(1)
			if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
				seed = n
			}
			t.Logf("SEED=%d", seed)
			l := lab.Start(t, c)
			s.rnd, s.dir, s.root = rand.New(rand.NewPCG(seed, 0)), t.TempDir(), t.TempDir()
			go administrate(t.Context(), l)
			s.judge(t, s.blow(t, l))
			agree(t, l)
		})
	}
}

// blow hands the jobs over, and breaks things.
func (s *storm) blow(t *testing.T, l *lab.Lab) *slurm.Engine {
	b := newBench(func() site.Site {
		if s.way != nil {
			return s.way(t, l)
		}
		return l.Command()
	}, openHere)
	e := b.open(t, s.root)
	at := map[int]trouble{}
	for len(at) < s.faults {
		at[1+s.rnd.IntN(s.jobs)] = s.kinds[s.rnd.IntN(len(s.kinds))]
	}
	again := func() {
		if s.rnd.IntN(2) == 0 {
			return
		}
		b.closed[e] = true
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		e = b.open(t, s.root)
	}
	for i := 1; i <= s.jobs; i++ {
		if err := e.Launch(t.Context(), s.launch(i, l.Nodes)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(s.rnd.IntN(60)) * time.Millisecond) // not to wait: to spread what happens
		if f := at[i]; f != nil {
			f(t, l, s.rnd, again)
		}
	}
	return e
}

// launch is a job that says that it ran, and ends with exit code 3.
func (s *storm) launch(i int, nodes []string) *engine.Launch {
	return &engine.Launch{
		Ref: engine.Ref{Allocation: uint64(i), Attempt: 1},
		Job: &job.Job{ID: job.ID(i), Attempt: 1, Spec: &job.Spec{
			Name: "crash", WorkDir: s.dir, Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}}},
			Program: job.Program{Kind: job.Batch, ScriptName: "crash.sh"},
		}},
		Script: fmt.Appendf(nil, "#!/bin/sh\necho %d $SLURM_JOB_ID >>%s/ran.%d\nsleep %g\nexit 3\n", i, s.dir, i, s.rnd.Float64()*3),
		Env:    []string{"PATH=/usr/bin:/bin"}, Grace: time.Second, Claims: []fleet.Claim{{Node: nodes[i%len(nodes)], Tasks: 1}},
	}
}

// judge waits for the ends.
func (s *storm) judge(t *testing.T, e *slurm.Engine) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	left := map[engine.Ref]bool{}
	for i := 1; i <= s.jobs; i++ {
		left[engine.Ref{Allocation: uint64(i), Attempt: 1}] = true
	}
	ends := map[engine.Cause]int{}
	_ = e.Watch(ctx, "", func(ev engine.Event) error {
		r := ev.Report
		if !r.Gone || !left[r.Ref] {
			return nil
		}
		delete(left, r.Ref)
		ends[r.Cause]++
		if n := living(t, s.root, r.Ref); n != 0 {
			t.Errorf("%s is said to be gone, and %d processes of it live: %q", r.Ref, n, r.Message)
		}
		ran, _ := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("ran.%d", r.Ref.Allocation)))
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
		r, err := e.Inspect(t.Context(), ref)
		t.Errorf("%s has not ended: %s, uncertain %t, %q, %v", ref, r.Phase, r.Uncertain, r.Message, err)
	}
	t.Logf("ends: %v", ends)
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
