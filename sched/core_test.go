package sched_test

import (
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
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

// starts lists who a step starts.
func starts(decisions []sched.Decision) []job.ID {
	var out []job.ID
	for _, d := range decisions {
		if s, ok := d.(sched.Start); ok {
			out = append(out, s.Job)
		}
	}
	return out
}

func TestWithoutBackfillNothingOvertakes(t *testing.T) {
	c := sched.New(sched.Config{NoBackfill: true})
	out := c.Step(1, sched.NodeSet{Node: node("a", 8)},
		sched.Submitted{Job: 1, Spec: gang(1, 5, 1, time.Hour)},
		sched.Submitted{Job: 2, Spec: gang(1, 5, 1, time.Hour)},
		sched.Submitted{Job: 3, Spec: gang(1, 1, 1, time.Minute)})
	if got := starts(out); !slices.Equal(got, []job.ID{1}) {
		t.Errorf("started %v, want job 1 alone", got)
	}
	if w, ok := out[len(out)-1].(sched.Wait); !ok || w.Job != 3 || w.Why.Code != reason.Priority {
		t.Errorf("job 3 is told %+v, want that others are before it", out[len(out)-1])
	}
	if got := starts(c.Step(2, sched.Released{Job: 1})); !slices.Equal(got, []job.ID{2, 3}) {
		t.Errorf("then started %v, want 2 and 3", got)
	}
}

// TestDepth: kinds behind the bound are looked at again when those before them have
// started; nobody is forgotten.
func TestDepth(t *testing.T) {
	c := sched.New(sched.Config{Depth: 1})
	events := []sched.Event{sched.NodeSet{Node: node("a", 8)}, sched.Submitted{Job: 1, Spec: gang(1, 6, 1, 0)}, sched.Submitted{Job: 2, Spec: gang(1, 8, 1, time.Hour)}}
	for id := job.ID(3); id <= 6; id++ { // fit now and would be in the way
		s := gang(1, 1, 1, 0)
		s.Groups[0].PerTask.Memory = resource.Amount(id)
		events = append(events, sched.Submitted{Job: id, Spec: s})
	}
	if got := starts(c.Step(1, events...)); !slices.Equal(got, []job.ID{1}) {
		t.Fatalf("started %v, want job 1 alone", got)
	}
	c.Step(2, sched.Released{Job: 1})
	if got := starts(c.Step(3, sched.Released{Job: 2})); !slices.Equal(got, []job.ID{3, 4, 5, 6}) {
		t.Errorf("started %v, want the other four", got)
	}
}

// TestBackfillRules: the site's rules of backfill reach each of the passes: the plain one
// behind the head, the one with planned starts, and Slurm's.
func TestBackfillRules(t *testing.T) {
	for name, c := range map[string]struct {
		policy account.Policy
		want   []job.ID
	}{
		"none":                           {account.Policy{}, []job.ID{1, 4}},
		"off":                            {account.Policy{Backfill: account.Backfill{Off: true}}, []job.ID{1}},
		"depth":                          {account.Policy{Backfill: account.Backfill{Depth: 1}}, []job.ID{1}},
		"planned":                        {account.Policy{Backfill: account.Backfill{Reservations: 1}}, []job.ID{1, 4}},
		"planned, off":                   {account.Policy{Backfill: account.Backfill{Reservations: 1, Off: true}}, []job.ID{1}},
		"planned, depth":                 {account.Policy{Backfill: account.Backfill{Reservations: 1, Depth: 1}}, []job.ID{1}},
		"Slurm":                          {account.Policy{Compat: "slurm"}, []job.ID{1, 4}},
		"Slurm, off":                     {account.Policy{Compat: "slurm", Backfill: account.Backfill{Off: true}}, []job.ID{1}},
		"Slurm, depth":                   {account.Policy{Compat: "slurm", Backfill: account.Backfill{Depth: 2}}, []job.ID{1}},
		"Slurm's backfill alone":         {account.Policy{Compat: "slurm-backfill"}, []job.ID{1, 4}},
		"Slurm's backfill alone, depth":  {account.Policy{Compat: "slurm-backfill", Backfill: account.Backfill{Depth: 3}}, []job.ID{1}},
		"Slurm's backfill alone and off": {account.Policy{Compat: "slurm-backfill", Backfill: account.Backfill{Off: true}}, []job.ID{1}},
	} {
		core := sched.New(sched.Config{})
		spec := func(cpus int, limit time.Duration) *job.Spec { return gang(1, cpus, 1, limit) }
		got := starts(core.Step(1, sched.PolicySet{Policy: &c.policy}, sched.NodeSet{Node: node("a", 8)},
			sched.Submitted{Job: 1, Spec: spec(5, time.Hour), At: 1}, sched.Submitted{Job: 2, Spec: spec(8, time.Hour), At: 2},
			sched.Submitted{Job: 3, Spec: spec(1, 2*time.Hour), At: 3},
			sched.Submitted{Job: 5, Spec: spec(1, 3*time.Hour), At: 3}, sched.Submitted{Job: 4, Spec: spec(2, 20*time.Minute), At: 4}))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: started %v, want %v", name, got, c.want)
		}
		if err := core.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResubmittedWhileItRuns: a job that holds resources is not queued.
func TestResubmittedWhileItRuns(t *testing.T) {
	c := sched.New(sched.Config{})
	one := sched.Submitted{Job: 1, Spec: gang(1, 1, 1, 0)}
	c.Step(1, sched.NodeSet{Node: node("a", 2)}, one)
	if out := c.Step(2, one); out != nil {
		t.Errorf("a running job was queued again: %+v", out)
	}
	if got := starts(c.Step(3, sched.Released{Job: 1}, one)); !slices.Equal(got, []job.ID{1}) {
		t.Errorf("after its end started %v, want job 1 again", got)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// TestEventsAboutNobody do nothing and do no harm.
func TestEventsAboutNobody(t *testing.T) {
	c := sched.New(sched.Config{})
	out := c.Step(1, sched.Withdrawn{Job: 1}, sched.Blocked{Job: 1}, sched.Unblocked{Job: 1}, sched.Extended{Job: 1, Until: 2},
		sched.Released{Job: 1}, sched.NodeRemoved{Name: "x"})
	if out != nil || c.Reasons(1, 1) != nil {
		t.Errorf("decided %+v about a job that does not exist", out)
	}
}

// TestRestoredTakesFromTheQueue: control restores what runs, wherever the core
// thought it was, and however often.
func TestRestoredTakesFromTheQueue(t *testing.T) {
	c := sched.New(sched.Config{})
	spec := gang(1, 1, 1, 0)
	claim := func(i int) []fleet.Claim {
		return []fleet.Claim{{Node: "a", Tasks: 1, Devices: []fleet.DeviceClaim{{Index: i, Share: resource.WholeDevice}}}}
	}
	c.Step(1, sched.Submitted{Job: 1, Spec: spec}, sched.Restored{Job: 1, Spec: spec, Claims: claim(0)}, sched.Restored{Job: 1, Spec: spec, Claims: claim(1)})
	out := c.Step(2, sched.NodeSet{Node: node("a", 2)}, sched.Submitted{Job: 2, Spec: spec})
	if s, ok := out[0].(sched.Start); !ok || s.Claims[0].Devices[0].Index != 0 {
		t.Errorf("decided %+v, want job 2 on device 0", out)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// TestReasonsAreOrderedAndDated: the gate that was told comes first with the time
// since when it is the first one.
func TestReasonsAreOrderedAndDated(t *testing.T) {
	c := sched.New(sched.Config{})
	at := func(s int) sched.Instant { return sched.Instant(time.Duration(s) * time.Second) }
	c.Step(at(10), sched.NodeSet{Node: node("a", 8)}, sched.Submitted{Job: 1, Spec: gang(1, 6, 1, 0)}, sched.Submitted{Job: 2, Spec: gang(1, 4, 1, 0)})
	c.Step(at(20), sched.Submitted{Job: 3, Spec: gang(1, 4, 1, 0)}, sched.Blocked{Job: 2, Why: reason.Reason{Code: reason.HeldUser}})
	codes := func(id job.ID) (out []reason.Code) {
		for _, r := range c.Reasons(at(30), id) {
			out = append(out, r.Code)
		}
		return out
	}
	if got := codes(2); !slices.Equal(got, []reason.Code{reason.HeldUser, reason.Resources}) {
		t.Errorf("job 2 waits because of %v", got)
	}
	if got := c.Reasons(at(30), 3); len(got) != 1 || got[0].Code != reason.Resources || got[0].Since != 20 || got[0].Need != 4 || got[0].Free != 2 {
		t.Errorf("job 3 waits because of %+v, want 4 GPUs of which 2 are free since 20 s", got)
	}
	if got := codes(1); got != nil {
		t.Errorf("job 1 runs and waits because of %v", got)
	}
}
