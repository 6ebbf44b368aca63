package sched_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/reason"
	"github.com/coxswain-sched/coxswain/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// node returns a node that is up, with 8 CPUs, 64 GiB and so many alike GPUs.
func node(name string, gpus int) fleet.Node {
	n := fleet.Node{Name: name, State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 64 * resource.GiB}}
	for i := range gpus {
		n.Devices = append(n.Devices, fleet.Device{Index: i, Kind: "gpu", Type: "h100", NUMA: -1})
	}
	return n
}

// gang returns a specification of nodes × tasks with so many GPUs a task.
func gang(nodes, tasksPerNode, gpusPerTask int, limit time.Duration) *job.Spec {
	g := job.TaskGroup{
		Nodes: job.Range{Min: nodes, Max: nodes}, Tasks: job.Count{Want: nodes * tasksPerNode}, TasksPerNode: tasksPerNode,
		PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.OneCPU}},
	}
	if gpusPerTask > 0 {
		g.PerTask.Devices = []resource.DeviceRequest{{Count: gpusPerTask}}
	}
	return &job.Spec{Groups: []job.TaskGroup{g}, TimeLimit: limit}
}

func TestTwoGangsRunOneAfterTheOther(t *testing.T) {
	c := sched.New(sched.Config{})
	spec := gang(1, 5, 1, 0)
	out := c.Step(1, sched.NodeSet{Node: node("a", 8)}, sched.Submitted{Job: 1, Spec: spec}, sched.Submitted{Job: 2, Spec: spec})
	if len(out) != 3 {
		t.Fatalf("got %d decisions, want a start, a promise and a wait: %+v", len(out), out)
	}
	if s, ok := out[0].(sched.Start); !ok || s.Job != 1 || len(s.Claims) != 1 || len(s.Claims[0].Devices) != 5 {
		t.Errorf("first decision is %+v, want the start of job 1 on 5 devices", out[0])
	}
	if p, ok := out[1].(sched.Promise); !ok || p.Job != 2 || p.At != 0 {
		t.Errorf("second decision is %+v, want a promise without a time to job 2", out[1])
	}
	if w, ok := out[2].(sched.Wait); !ok || w.Job != 2 || w.Why.Code != reason.Resources || w.Why.Need != 5 || w.Why.Free != 3 {
		t.Errorf("third decision is %+v, want job 2 to wait for 5 GPUs of which 3 are free", out[2])
	}
	if again := c.Step(2); again != nil {
		t.Errorf("nothing happened and the core decided %+v", again)
	}
	out = c.Step(3, sched.Released{Job: 1})
	if s, ok := out[0].(sched.Start); len(out) != 1 || !ok || s.Job != 2 {
		t.Errorf("after job 1 ended: %+v, want the start of job 2", out)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
