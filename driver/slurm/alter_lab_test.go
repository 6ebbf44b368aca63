package slurm_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestAlter: on real clusters, by commands and by slurmrestd, a job that waits in a partition
// that is down is put into another, with its owner's rights: it begins there. What is refused
// leaves it where it is, and only that is an error: 22.05 complains of a partition that is not
// for the owner, and puts the job there.
//
// Seen to fail with: that complaint taken for a refusal.
func TestAlter(t *testing.T) {
	t.Parallel()
	for version, c := range clusters {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c.Nodes, c.More = 2, "PartitionName=parked Nodes=ALL State=DOWN\nPartitionName=closed Nodes=ALL AllowGroups=root\nPartitionName=rooted Nodes=ALL RootOnly=YES\nPartitionName=open Nodes=ALL"
			l := lab.Start(t, c)
			for _, name := range []string{"owner", "token"} {
				w := manners(c.Modern)[name]
				t.Run(name, func(t *testing.T) { w.alter(t, l) })
			}
		})
	}
}

func (w *manner) alter(t *testing.T, l *lab.Lab) {
	dir, cfg := public(t), w.cfg(t, l)
	locks, err := lockdir.Open(filepath.Join(dir, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Root, cfg.Pool, cfg.Settle, cfg.Room, cfg.Stock = filepath.Join(t.TempDir(), "state"), "slurm", 3*time.Second, locks, time.Second
	e, err := slurm.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	ref := engine.Ref{Allocation: 1, Attempt: 1}
	err = e.Launch(t.Context(), &engine.Launch{
		Ref: ref, Job: &job.Job{ID: 1, Attempt: 1, Spec: &job.Spec{
			Name: "alter", Owner: anna, WorkDir: dir, Partitions: []string{"parked"},
			Groups:  []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}}},
			Program: job.Program{Kind: job.Batch, ScriptName: "alter.sh"}, Output: job.Output{Stdout: "out"},
		}},
		Script: []byte("#!/bin/sh\n[ \"$SLURM_JOB_PARTITION\" = open ] && exit 3\n"), Env: []string{"PATH=/usr/bin:/bin"}, Claims: []fleet.Claim{{Node: "all", Tasks: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := until(t, e, func(r engine.Report) bool { return r.Ref == ref && strings.Contains(r.Message, "Partition") })
	awaits(t, "the inventory", func() bool { return e.Inventory() != nil })
	for _, to := range []string{"nowhere", "rooted", "closed"} {
		err := e.Alter(t.Context(), ref, engine.Alteration{Partitions: []string{to}})
		is := strings.TrimSpace(l.Run(t, "squeue", "--noheader", "--jobs="+r.Native, "--format=%P"))
		if (err == nil) != (is == to) || to == "nowhere" && !strings.Contains(fmt.Sprint(err), "no partition nowhere") {
			t.Errorf("into %s: %v; it is in %q", to, err, is)
		}
		t.Logf("into %s: %v; %s", to, err, fault.Remedy(err))
	}
	if err := e.Alter(t.Context(), ref, engine.Alteration{Partitions: []string{"open"}}); err != nil {
		t.Fatal(err)
	}
	if r := ended(t, e, ref); r.Cause != engine.Exited || r.Exit.Status != 3 {
		t.Errorf("%s, %s, %q", r.Cause, r.Exit, r.Message)
	}
	if err := e.Alter(t.Context(), ref, engine.Alteration{Partitions: []string{"open"}}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("of one that has ended: %v", err)
	}
}
