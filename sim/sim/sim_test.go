package sim_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sim/sim"
)

func nodes(cpus int) []fleet.Node {
	return []fleet.Node{{Name: "n", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(cpus)}}}
}

func cpus(n int, limit time.Duration) *job.Spec {
	g := job.TaskGroup{Tasks: job.Count{Want: n}}
	g.PerTask.CPU = resource.OneCPU
	return &job.Spec{Groups: []job.TaskGroup{g}, TimeLimit: limit}
}

// TestTimes: waiting, backfill, an end before the limit and one at the limit.
func TestTimes(t *testing.T) {
	s := sim.New(sched.Config{}, nodes(4))
	s.Submit(sim.Job{ID: 1, Spec: cpus(3, 10*time.Second), Work: 20 * time.Second})                        // ends at its limit
	s.Submit(sim.Job{ID: 2, Spec: cpus(4, 0), Work: 5 * time.Second, Submit: time.Second})                 // waits for 1
	s.Submit(sim.Job{ID: 3, Spec: cpus(1, 8*time.Second), Work: 2 * time.Second, Submit: 2 * time.Second}) // fills the hole
	s.Submit(sim.Job{ID: 4, Spec: cpus(1, 8*time.Second), Work: time.Second, Submit: 5 * time.Second})     // would delay 2
	want := map[job.ID][2]time.Duration{1: {0, 10}, 2: {10, 15}, 3: {2, 4}, 4: {15, 16}}
	for _, o := range s.Run() {
		if w := want[o.Job]; !o.Started || !o.Ended || o.Start != w[0]*time.Second || o.End != w[1]*time.Second {
			t.Errorf("job %d ran %v–%v, want %d–%d s", o.Job, o.Start, o.End, w[0], w[1])
		}
	}
	if o := s.Outcomes()[1]; len(o.Promised) == 0 || o.Promised[0].At != sched.Instant(10*time.Second) {
		t.Errorf("job 2 was promised %v, want 10 s", o.Promised)
	}
	if s.Step() || len(s.Idle()) != 0 {
		t.Error("the simulation is over and goes on")
	}
}

// TestPeersHoldWhileTheyWait: what the deadlock demonstration is built on.
func TestPeersHoldWhileTheyWait(t *testing.T) {
	s := sim.New(sched.Config{}, nodes(2))
	s.Submit(sim.Job{ID: 1, Spec: cpus(1, 0), Work: time.Second, Peers: 1})
	s.Submit(sim.Job{ID: 2, Spec: cpus(1, 0), Work: 4 * time.Second})
	s.Submit(sim.Job{ID: 3, Spec: cpus(1, 0), Work: time.Second, Peers: 1})
	out := s.Run()
	if out[0].Start != 0 || out[2].Start != 4*time.Second || out[0].End != 5*time.Second || out[2].End != 5*time.Second {
		t.Errorf("%+v", out)
	}
}

func TestOtherEvents(t *testing.T) {
	s := sim.New(sched.Config{}, nil)
	s.Submit(sim.Job{ID: 1, Spec: cpus(1, 0), Work: time.Second})
	s.At(time.Minute, sched.NodeSet{Node: nodes(1)[0]})
	if out := s.Run(); out[0].Start != time.Minute {
		t.Errorf("%+v, want a start when the node came", out)
	}
}
