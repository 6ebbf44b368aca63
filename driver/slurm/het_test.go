package slurm_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestAHeterogeneousJob: two groups are one job with two components, on the nodes of each,
// whether they are named or Slurm finds them; it ends as its script does, and when it is
// stopped no component lives.
func TestAHeterogeneousJob(t *testing.T) {
	t.Parallel()
	for version, c := range clusters {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			l := lab.Start(t, c)
			for name, delegated := range map[string]bool{"placed": false, "delegated": true} {
				t.Run(name, func(t *testing.T) {
					b := newBench(func() site.Site { return l.Command() }, openHere)
					b.delegated = delegated
					twoGroups(t, l, b.open(t, t.TempDir()), delegated)
				})
			}
		})
	}
}

func twoGroups(t *testing.T, l *lab.Lab, e engine.Engine, delegated bool) {
	dir := t.TempDir()
	launch := func(n uint64, script string) engine.Ref {
		claims := []fleet.Claim{{Node: l.Nodes[0], Tasks: 1}, {Node: l.Nodes[1], Group: 1, Tasks: 1}, {Node: l.Nodes[2], Group: 1, Tasks: 1}}
		if delegated {
			claims = []fleet.Claim{{Node: "slurm", Tasks: 1}, {Node: "slurm", Group: 1, Tasks: 2}}
		}
		ref := engine.Ref{Allocation: n, Attempt: 1}
		err := e.Launch(t.Context(), &engine.Launch{
			Ref: ref, Claims: claims, Script: []byte(script), Env: []string{"PATH=/usr/bin:/bin"}, Grace: time.Second,
			Job: &job.Job{ID: job.ID(n), Attempt: 1, Spec: &job.Spec{
				Name: "het", WorkDir: dir, Output: job.Output{Stdout: "out"}, Program: job.Program{Kind: job.Batch, ScriptName: "het.sh"},
				Groups: []job.TaskGroup{
					{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}},
					{Nodes: job.Range{Min: 2, Max: 2}, Tasks: job.Count{Want: 2}},
				},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	wait := func(ref engine.Ref, what func(engine.Report) bool) engine.Report {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		var last engine.Report
		_ = e.Watch(ctx, "", func(ev engine.Event) error {
			if ev.Report.Ref == ref {
				if last = ev.Report; what(last) {
					return context.Canceled
				}
			}
			return nil
		})
		if !what(last) {
			t.Fatalf("%+v", last)
		}
		return last
	}
	ref := launch(1, "#!/bin/sh\nsrun --het-group=0,1 sh -c 'echo $SLURMD_NODENAME'\nexit 3\n")
	r := wait(ref, gone)
	out, _ := os.ReadFile(filepath.Join(dir, "out"))
	ran := strings.Fields(string(out))
	slices.Sort(ran)
	var said []string
	for _, n := range r.Nodes {
		said = append(said, n.Node)
	}
	slices.Sort(said)
	if r.Cause != engine.Exited || r.Exit.Status != 3 || len(ran) != 3 || !slices.Equal(slices.Compact(ran), slices.Compact(said)) {
		t.Errorf("%+v\nran on %q, said %q", r, ran, said)
	}
	if !delegated && !slices.Equal(said, l.Nodes[:3]) {
		t.Errorf("on %q, not on %q", said, l.Nodes[:3])
	}
	ref = launch(2, "#!/bin/sh\nsrun --het-group=0,1 sleep 600\n")
	wait(ref, func(r engine.Report) bool { return r.Phase == engine.Running })
	if err := e.Stop(t.Context(), ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	if r := wait(ref, gone); r.Cause != engine.Stopped {
		t.Errorf("%+v", r)
	}
	if left := l.Run(t, "squeue", "-h", "-t", "R,CG,PD", "-o", "%i %T"); left != "" {
		t.Errorf("these live: %s", left)
	}
}
