package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestLocksOnNodes: a cluster whose nodes have a disk each, and share none with each other or
// with the driver. Jobs run there; slurmctld is killed right after they were handed over; a job
// is put back, and begins on another node; slurmctld loses one that runs, on a node that does not
// answer. Nothing runs twice, and nothing that is said to be gone lives. TestStorm has more of it
// with COX_STORM set.
func TestLocksOnNodes(t *testing.T) {
	t.Parallel()
	if os.Getenv("COX_SLURM") != "" && os.Getenv("COX_LONG") == "" {
		t.Skip("COX_LONG is not set: two more clusters take half a minute and more beside the others")
	}
	for version, c := range clusters {
		c.Apart, c.Nodes = true, 3
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			l := lab.Start(t, c)
			n := &onNodes{all: t, lab: l, dir: t.TempDir(), root: t.TempDir()}
			n.bench = newBench(func() site.Site { return l.Command() }, func(string) (lockdir.Directory, error) { return lockdir.OnNodes(l.Disk("own")), nil })
			n.e = n.bench.open(t, n.root)
			go administrate(t.Context(), l)
			t.Run("runs", n.runs)
			t.Run("slurmctld is killed", n.crash)
			t.Run("put back", n.putBack)
			t.Run("lost", n.lose)
		})
	}
}

// onNodes is a driver of such a cluster.
type onNodes struct {
	all       *testing.T // with which the driver is closed
	lab       *lab.Lab
	bench     *bench
	e         *slurm.Engine
	dir, root string // where scripts write that they ran; the driver's
	count     int
}

// begin hands a job over that runs on some nodes, and ends with exit code 3.
func (n *onNodes) begin(t *testing.T, runs string, nodes ...string) int {
	t.Helper()
	n.count++
	i := n.count
	l := &engine.Launch{
		Ref: refTo(i),
		Job: &job.Job{ID: job.ID(i), Attempt: 1, Spec: &job.Spec{
			Name: fmt.Sprintf("apart-%d", i), WorkDir: n.dir, Program: job.Program{Kind: job.Batch, ScriptName: "apart.sh"},
			Groups: []job.TaskGroup{{Nodes: job.Range{Min: len(nodes), Max: len(nodes)}, Tasks: job.Count{Want: len(nodes)}}},
		}},
		Script: fmt.Appendf(nil, "#!/bin/sh\necho $SLURM_JOB_ID $SLURMD_NODENAME >>%s/ran.%d\n%s\nexit 3\n", n.dir, i, runs),
		Env:    []string{"PATH=/usr/bin:/bin"}, Grace: time.Second,
	}
	for _, name := range nodes {
		l.Claims = append(l.Claims, fleet.Claim{Node: name, Tasks: 1})
	}
	if err := n.e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return i
}

// until waits for a report of one attempt.
func (n *onNodes) until(t *testing.T, i int, want func(engine.Report) bool) engine.Report {
	t.Helper()
	return until(t, n.e, func(r engine.Report) bool { return r.Ref == refTo(i) && want(r) })
}

// ended waits for an attempt's end, and looks whether it ran once, or never, and lives no more.
func (n *onNodes) ended(t *testing.T, i int) engine.Report {
	t.Helper()
	r := n.until(t, i, gone)
	if living := processes(t, n.lab.Disk("own")+"/cox-", r.Ref); living != 0 {
		t.Errorf("%s is said to be gone, and %d processes of it live: %q", r.Ref, living, r.Message)
	}
	switch ran := n.ran(i); {
	case len(ran) > 1, len(ran) == 1 && r.Cause == engine.Unready, len(ran) == 0 && r.Cause != engine.Unready && r.Cause != engine.NodeLost: // of one that Slurm called running
		t.Errorf("%s ran as %q, and ended as %s, %s, %q", r.Ref, ran, r.Cause, r.Exit, r.Message)
	case r.Cause == engine.Exited && r.Exit.Status != 3:
		t.Errorf("%s ended as %s, %q", r.Ref, r.Exit, r.Message)
	}
	return r
}

// up waits until an attempt is said to run, and its script does, which may be later.
func (n *onNodes) up(t *testing.T, i int) engine.Report {
	t.Helper()
	r := n.until(t, i, func(r engine.Report) bool { return r.Phase == engine.Running })
	for deadline := time.Now().Add(3 * time.Minute); len(n.ran(i)) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not run", r.Ref)
		}
	}
	return r
}

func (n *onNodes) ran(i int) []string {
	b, _ := os.ReadFile(filepath.Join(n.dir, fmt.Sprintf("ran.%d", i)))
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
}

// runs: locks are on the first node of each alone.
func (n *onNodes) runs(t *testing.T) {
	nodes := n.lab.Nodes
	for _, of := range [][]string{nodes[1:2], nodes[:2]} {
		i := n.begin(t, "srun sh -c true", of...)
		if r := n.ended(t, i); r.Cause != engine.Exited || r.Started.IsZero() {
			t.Errorf("%+v", r)
		}
		for _, name := range append(slices.Clone(nodes), "own") {
			found, err := filepath.Glob(filepath.Join(n.lab.Disk(name), "cox-*", refTo(i).String()+"-*.0"))
			if err != nil || (len(found) == 1) != (name == of[0]) {
				t.Errorf("locks of a job on %q: on %s %q, %v", of, name, found, err)
			}
		}
	}
}

// crash: slurmctld loses some of what it had just taken, and finds some again.
func (n *onNodes) crash(t *testing.T) {
	first := n.count + 1
	for k := range 5 {
		n.begin(t, "sleep 0.5", n.lab.Nodes[k%3:k%3+1]...)
	}
	n.until(t, first, func(r engine.Report) bool { return r.Native != "" })
	n.lab.Kill(t, "slurmctld")
	n.lab.Begin(t, "slurmctld")
	for i := first; i <= n.count; i++ {
		if r := n.ended(t, i); r.Cause != engine.Exited {
			t.Logf("%s: %s, %s", r.Ref, r.Cause, r.Message)
		}
	}
}

// putBack: the script begins again on another node, while no driver looks.
func (n *onNodes) putBack(t *testing.T) {
	i := n.begin(t, "sleep 600", n.lab.Nodes[0])
	id := n.up(t, i).Native
	n.bench.closed[n.e] = true
	if err := n.e.Close(); err != nil {
		t.Fatal(err)
	}
	n.lab.Run(t, "scontrol", "update", "jobid="+id, "requeue=1")
	n.lab.Run(t, "scontrol", "requeuehold", id)
	n.state(t, id, "PENDING")
	n.lab.Run(t, "scontrol", "update", "jobid="+id, "reqnodelist="+n.lab.Nodes[1], "starttime=now") // else it waits for two minutes
	n.lab.Run(t, "scontrol", "release", id)
	n.state(t, id, "FAILED")
	n.e = n.bench.open(n.all, n.root)
	if r := n.ended(t, i); r.Cause != engine.NodeLost {
		t.Errorf("%s, %s, %q", r.Cause, r.Exit, r.Message)
	}
}

// state waits until a job has a state.
func (n *onNodes) state(t *testing.T, id, want string) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out, err := n.lab.Try(t.Context(), "squeue", "-h", "-t", "all", "-j", id, "-o", "%T")
		if err == nil && strings.TrimSpace(out) == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("job %s is %s, not %s: %v", id, out, want, err)
		}
	}
}

// lose: slurmctld has lost a job that lives on a node that does not answer. It is uncertain
// until the node is heard again.
func (n *onNodes) lose(t *testing.T) {
	node := n.lab.Nodes[2]
	i := n.begin(t, "exec sleep 600", node)
	n.up(t, i)
	n.lab.Kill(t, "slurmd."+node)
	n.lab.Kill(t, "slurmctld")
	for _, name := range []string{"job_state", "job_state.old"} {
		if err := os.Remove(filepath.Join(n.lab.Dir, "state", name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	n.lab.Begin(t, "slurmctld")
	if r := n.until(t, i, func(r engine.Report) bool { return r.Uncertain || r.Gone }); r.Gone {
		t.Errorf("%s, %s, %q", r.Cause, r.Exit, r.Message)
	}
	if living := processes(t, n.lab.Disk("own")+"/cox-", refTo(i)); living == 0 {
		t.Error("it does not live: nothing is tried here")
	}
	n.lab.Begin(t, "slurmd."+node)
	if r := n.ended(t, i); r.Cause != engine.NodeLost {
		t.Errorf("%s, %s, %q", r.Cause, r.Exit, r.Message)
	}
}
