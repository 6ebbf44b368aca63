package sched_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/schedtest"
)

// TestLawsForFewKinds checks the laws of TestLaws where many jobs are alike and come with
// priorities of their own, so that a kind stands before the head and behind it.
//
// Seen to fail with: advance leaving a class asleep whose first job it started.
func TestLawsForFewKinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, nil)
		specs := []*job.Spec{narrow(t), wide(t)}
		if rapid.Bool().Draw(t, "third") {
			specs = append(specs, schedtest.Spec(t))
		}
		submit := func(t *rapid.T) (out []sched.Event) {
			for range rapid.IntRange(1, 4).Draw(t, "jobs") {
				w.next++
				w.submitted++
				out = append(out, sched.Submitted{
					Job: w.next, Spec: rapid.SampledFrom(specs).Draw(t, "kind"), At: w.now, Priority: int64(rapid.IntRange(0, 3).Draw(t, "priority")),
				})
			}
			return out
		}
		t.Repeat(map[string]func(*rapid.T){
			"submit":         func(t *rapid.T) { w.step(t, submit(t)...) },
			"end":            func(t *rapid.T) { w.step(t, w.release(t)...) },
			"end and submit": func(t *rapid.T) { w.step(t, append(w.release(t), submit(t)...)...) },
			"time": func(t *rapid.T) {
				w.now += sched.Instant(rapid.IntRange(1, 5).Draw(t, "seconds")) * sched.Instant(time.Second)
				w.step(t)
			},
			"block": func(t *rapid.T) {
				if id, ok := some(t, w.queue, "job"); ok {
					w.step(t, sched.Blocked{Job: id, Why: reason.Reason{Code: reason.HeldUser}})
				}
			},
			"reload": w.reload,
			"unblock": func(t *rapid.T) {
				if id, ok := some(t, w.queue, "job"); ok {
					w.step(t, sched.Unblocked{Job: id})
				}
			},
		})
		w.replay(t)
	})
}

// narrow draws a job that most nodes take, wide one that needs several of them.
func narrow(t *rapid.T) *job.Spec { return cpus(t, 1, rapid.IntRange(1, 2).Draw(t, "cpus")) }

func wide(t *rapid.T) *job.Spec {
	return cpus(t, rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 5).Draw(t, "cpus of each"))
}

func cpus(t *rapid.T, nodes, each int) *job.Spec {
	s := &job.Spec{Groups: []job.TaskGroup{{
		Nodes: job.Range{Min: nodes, Max: nodes}, Tasks: job.Count{Want: nodes}, TasksPerNode: 1,
		PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(each)}},
	}}}
	if rapid.Bool().Draw(t, "limited") {
		s.TimeLimit = time.Duration(rapid.IntRange(1, 20).Draw(t, "limit")) * time.Second
	}
	return s
}
