package slurm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
)

// daemon is a daemon of a cluster that a test kills and starts again.
type daemon struct{ lab, name string }

func (d daemon) pidFile() string { return filepath.Join(d.lab, "run", d.name+".own") }

// crash ends it with no chance to act.
func (d daemon) crash(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile(d.pidFile())
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if cmd, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err != nil || !strings.Contains(string(cmd), d.name) {
		t.Fatalf("process %d is no %s: %q, %v", pid, d.name, cmd, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for syscall.Kill(pid, 0) == nil {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || strings.Contains(string(b), ") Z ") {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// start starts it again; it outlives the test.
func (d daemon) start(t *testing.T, words ...string) {
	t.Helper()
	c := exec.Command("setsid", append([]string{"sh", "-c", `echo $$ >"$0"; exec "$@"`, d.pidFile()}, words...)...)
	c.Env = append(os.Environ(), "SLURM_CONF="+d.lab+"/slurm.conf")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Wait() }()
}

// TestCrashes: while jobs are handed over slurmctld is killed again and again, at moments
// drawn from SEED, and so is the driver. Every attempt ends once, by the exit code of its
// script or with Slurm's having lost it before it began; no script ran twice.
func TestCrashes(t *testing.T) {
	conf := real(t)
	if os.Getenv("COX_SLURM_INSIDE") != "" {
		t.Skip("this cluster's daemons are started otherwise")
	}
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	lab := filepath.Dir(conf)
	ctld := daemon{lab, "slurmctld"}
	again := func() {
		ctld.start(t, "setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups", "slurmctld", "-D", "-f", conf)
	}
	b := &bench{conf: conf, roots: map[engine.Engine]string{}, closed: map[engine.Engine]bool{}}
	root, dir := t.TempDir(), t.TempDir()
	e := b.open(t, root)
	ctx := t.Context()
	nodes, err := e.Nodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	go administrate(ctx, conf)
	const jobs = 60
	crashes := 3
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
			ctld.crash(t)
			if rnd.IntN(2) == 0 {
				b.closed[e] = true
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				e = b.open(t, root)
			}
			time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
			again()
		}
	}
	wait, cancel := context.WithTimeout(ctx, 90*time.Second)
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
}

// administrate brings nodes back that slurmctld drained because it gave out a number again
// that a job of theirs still had.
func administrate(ctx context.Context, conf string) {
	run := func(name string, args ...string) string {
		c := exec.CommandContext(ctx, name, args...)
		c.Env = append(os.Environ(), "SLURM_CONF="+conf)
		out, _ := c.Output()
		return string(out)
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
