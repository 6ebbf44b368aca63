package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// another is the launch of a job's attempt that may be requeued, in a pool that Slurm places.
func another(dir string, allocation uint64, attempt int) *engine.Launch {
	return &engine.Launch{
		Ref: engine.Ref{Allocation: allocation, Attempt: 1},
		Job: &job.Job{ID: 7, Attempt: uint32(attempt), Spec: &job.Spec{
			Name: "again", WorkDir: dir, Requeue: true, Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}}},
			Program: job.Program{Kind: job.Batch, ScriptName: "again.sh"},
		}},
		Script: fmt.Appendf(nil, "#!/bin/sh\necho $SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} >>%s/ran\n[ \"$SLURM_RESTART_COUNT\" = 1 ] && exit 5\nexec sleep 600\n", dir),
		Env:    []string{"PATH=/usr/bin:/bin"}, Grace: time.Second, Claims: []fleet.Claim{{Node: "p", Tasks: 1}},
	}
}

// TestSlurmPutsAJobBack: the attempt ends, and the next one is the same job in Slurm, with
// its place in the queue; or, if there is none, that job ends and never begins.
//
// Seen to fail with: no adoption; no fence of what nobody takes over.
func TestSlurmPutsAJobBack(t *testing.T) {
	for name, next := range map[string]bool{"taken over": true, "unwanted": false} {
		t.Run(name, func(t *testing.T) {
			s := &stage{}
			wait := time.Duration(0)
			if !next {
				wait = time.Nanosecond
			}
			e, dir := stageWith(t, s, func(c *slurm.Config) { c.Placed, c.Adopt = false, wait })
			launch := func(allocation uint64, attempt int) {
				l := another(dir, allocation, attempt)
				if err := e.Launch(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			launch(1, 1)
			lock := s.act(t, time.Now(), "n1")
			s.with(func() {
				s.jobs[0].State, s.jobs[0].Restarts, s.jobs[0].Reason = site.Pending, 1, "BeginTime"
			})
			if r := until(t, e, gone); r.Cause != engine.NodeLost || !strings.Contains(r.Message, "BeginTime") {
				t.Errorf("%+v", r)
			}
			lock = strings.TrimSuffix(lock, "0") + "1"
			if !next {
				awaits(t, "the end of what nobody wants", func() (ok bool) { s.with(func() { ok = len(s.cancelled) > 0 }); return ok })
				if b, err := os.ReadFile(lock); err != nil || string(b) != "fenced\n" {
					t.Errorf("%q, %v", b, err)
				}
				return
			}
			s.with(func() {
				if !s.jobs[0].Held || len(s.cancelled) > 0 {
					t.Errorf("%+v, cancelled %d", s.jobs[0], s.cancelled)
				}
			})
			launch(2, 2)
			awaits(t, "the release", func() (ok bool) {
				s.with(func() { ok = !s.jobs[0].Held && strings.HasSuffix(s.jobs[0].Comment, ":2.1") })
				return ok
			})
			if err := os.WriteFile(lock, fmt.Appendf(nil, "%d 1 n1 %d - n1\n", 101, time.Now().Unix()), 0o600); err != nil {
				t.Fatal(err)
			}
			s.with(func() {
				j := &s.jobs[0]
				j.State, j.Nodes, j.Started, j.Ended, j.Exit = site.Failed, []string{"n1"}, time.Now(), time.Now(), job.ExitCode{Status: 5}
			})
			r := until(t, e, func(r engine.Report) bool { return r.Gone && r.Ref.Allocation == 2 })
			if r.Cause != engine.Exited || r.Exit.Status != 5 {
				t.Errorf("%+v", r)
			}
			s.with(func() {
				if s.submitted != 1 {
					t.Errorf("submitted %d times", s.submitted)
				}
			})
		})
	}
}

// TestWhySlurmPutsAJobBack: accounting tells of the run that ended why, and when that was, which
// may be long before anybody looked, with other runs since; where it does not, it is as if a
// node was lost now.
//
// Seen to fail with: the last run in the place of the attempt's; an end of now.
func TestWhySlurmPutsAJobBack(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	began, ended := now.Add(-time.Hour), now.Add(-50*time.Minute)
	run := func(state site.State, from, to time.Time) site.Job {
		return site.Job{ID: 101, State: state, Nodes: []string{"n1"}, Started: from, Ended: to}
	}
	before, after := run(site.NodeFailed, now.Add(-2*time.Hour), now.Add(-90*time.Minute)), run(site.Failed, now.Add(-10*time.Minute), now.Add(-9*time.Minute))
	for name, c := range map[string]struct {
		past  []site.Job
		cause engine.Cause
		said  string
		at    time.Time // zero: now
	}{
		"preempted": {[]site.Job{before, run(site.Preempted, began, ended), after}, engine.Preempted, "preempted", ended},
		"node":      {[]site.Job{run(site.NodeFailed, began, ended)}, engine.NodeLost, "a node failed, of n1", ended},
		"requeued":  {[]site.Job{run(site.Cancelled, began, ended)}, engine.NodeLost, "(BeginTime)", ended},
		"not told":  {[]site.Job{before, {ID: 101, State: site.Running, Started: began}}, engine.NodeLost, "(BeginTime)", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{past: c.past}
			e, dir := stageWith(t, s, func(c *slurm.Config) { c.Placed, c.Adopt = false, time.Hour })
			if err := e.Launch(t.Context(), another(dir, 1, 1)); err != nil {
				t.Fatal(err)
			}
			s.act(t, began, "n1")
			s.with(func() {
				s.jobs[0].State, s.jobs[0].Restarts, s.jobs[0].Reason = site.Pending, 1, "BeginTime"
			})
			r := until(t, e, gone)
			if r.Cause != c.cause || !strings.Contains(r.Message, c.said) || c.at.IsZero() && r.Ended.Before(now) || !c.at.IsZero() && !r.Ended.Equal(c.at) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestARequeue is the same on real clusters, with scontrol requeue.
func TestARequeue(t *testing.T) {
	t.Parallel()
	for version, c := range clusters {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			l := lab.Start(t, c)
			b := newBench(func() site.Site { return l.Command() }, openHere)
			b.delegated = true
			dir := t.TempDir()
			e := b.open(t, t.TempDir())
			first, second := another(dir, 1, 1), another(dir, 2, 2)
			if err := e.Launch(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			until(t, e, func(r engine.Report) bool { return r.Phase == engine.Running })
			ran := func() string { b, _ := os.ReadFile(filepath.Join(dir, "ran")); return string(b) }
			id, _, _ := strings.Cut(ran(), " ")
			l.Run(t, "scontrol", "requeue", id)
			if r := until(t, e, gone); r.Cause != engine.NodeLost {
				t.Errorf("%+v", r)
			}
			if err := e.Forget(t.Context(), first.Ref); err != nil {
				t.Fatal(err)
			}
			if err := e.Launch(t.Context(), second); err != nil {
				t.Fatal(err)
			}
			until(t, e, func(r engine.Report) bool { return r.Ref == second.Ref && strings.HasPrefix(r.Message, "BeginTime") })
			l.Run(t, "scontrol", "update", "JobId="+id, "StartTime=now") // Slurm would wait two minutes
			r := until(t, e, func(r engine.Report) bool { return r.Gone && r.Ref == second.Ref })
			if want := id + " 0\n" + id + " 1\n"; r.Cause != engine.Exited || r.Exit.Status != 5 || ran() != want {
				t.Errorf("%+v\nran %q, want %q", r, ran(), want)
			}
		})
	}
}
