package demand

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/whatif"
)

// site is four machines that are nodes of both pools, and a core that has decided.
type site struct {
	core *sched.Core
	now  sched.Instant
}

func newSite() *site {
	s := &site{core: sched.New(sched.Config{}), now: sched.Instant(noon.UnixNano())}
	var events []sched.Event
	for i, owner := range []string{"slurm", "slurm", "kube", "kube"} {
		for _, pool := range []string{"slurm", "kube"} {
			n := fleet.Node{Name: pool[:1] + string(rune('1'+i)), Hosts: []string{"m" + string(rune('1'+i))}, Pool: pool, State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(64), Memory: 1 << 40}}
			if pool != owner {
				n.State, n.Why = fleet.Draining, "it is "+owner+"'s"
			}
			for d := range 8 {
				n.Devices = append(n.Devices, fleet.Device{Index: d, Minor: -1, Kind: "gpu", NUMA: -1, Declared: true})
			}
			events = append(events, sched.NodeSet{Node: n})
		}
	}
	s.core.Step(s.now, events...)
	return s
}

// spec is a job of so many GPUs on one node; limit 0: a replica of a service.
func spec(pool string, gpus int, limit time.Duration) *job.Spec {
	g := job.TaskGroup{Tasks: job.Count{Want: 1}}
	g.PerTask.Devices = []resource.DeviceRequest{{Kind: "gpu", Count: gpus}}
	g.PerTask.CPU = resource.OneCPU
	out := &job.Spec{Pool: pool, Groups: []job.TaskGroup{g}, TimeLimit: limit, Requeue: true, Owner: job.Owner{User: "ann"}}
	if limit == 0 {
		out.Serve, out.Part = &job.Serve{Ports: []job.Port{{Name: "http"}}}, &job.Part{Controller: "service/team/chat", Revision: 1}
	}
	return out
}

func (s *site) submit(id job.ID, spec *job.Spec) {
	s.core.Step(s.now, sched.Submitted{Job: id, Spec: spec, At: s.now})
}

// rules of both pools, by which a machine goes after a minute.
func siteRules() *account.Handover {
	r := twoPools()
	r.Pools[0].After = span(time.Minute)
	return &r
}

func (s *site) observe(owners ...fleet.MachineOwner) *Input {
	state := s.core.Snapshot()
	state.Sort()
	return Observe(&Site{
		State: state, Now: s.now, Took: whatif.Limits, Owners: owners,
		Why: map[job.ID]reason.Code{4: reason.Resources, 5: reason.Quota}, Held: func(string) int { return 7 },
	}, siteRules())
}

// TestObserve: what the state of a core says is what the decision is asked about.
//
// Seen to fail without each of: the owner's record, the filter of reasons, the estimate of ends, the time since
// the last checkpoint, and the look ahead.
func TestObserve(t *testing.T) {
	s := newSite()
	s.submit(1, spec("kube", 8, 0))
	s.submit(2, spec("kube", 8, 0))
	s.submit(3, spec("slurm", 8, 2*time.Hour))
	s.now += sched.Instant(time.Hour)
	s.core.Step(s.now, sched.Saved{Job: 3, At: s.now - sched.Instant(10*time.Minute)})
	s.submit(4, spec("kube", 4, 0))
	s.submit(5, spec("kube", 4, time.Hour))
	s.submit(6, spec("slurm", 16, time.Hour)) // no node is so large
	in := s.observe(fleet.MachineOwner{Machine: "m1", Pool: "slurm", Epoch: 2, Step: fleet.StepRelease, Last: "kube", At: noon})

	if len(in.Machines) != 4 || in.Unit != "GPU" || !in.Now.Equal(noon.Add(time.Hour)) {
		t.Fatalf("%+v", in)
	}
	busy, replicas := 0, 0
	for i, pool := range []string{"slurm", "slurm", "kube", "kube"} {
		m := &in.Machines[i]
		if m.Pool != pool || m.Units != 8 || len(m.Could) != 2 || m.Away || m.To != "" || m.Came.IsZero() != (m.Name != "m1") {
			t.Errorf("%+v, want a machine of %s", m, pool)
		}
		for _, r := range m.Runs {
			switch {
			case pool == "kube" && r.Replica && !r.Requeue && r.Ends.IsZero() && r.Units == 8:
				replicas++
			case pool == "slurm" && r.Requeue && r.Ends.Equal(noon.Add(2*time.Hour)) && r.Lost == 8*600:
				busy++
			default:
				t.Errorf("%s: %+v", m.Name, r)
			}
		}
	}
	if busy != 1 || replicas != 2 {
		t.Errorf("%d jobs and %d replicas", busy, replicas)
	}
	want := []Want{{Pool: "kube", Units: 4, Count: 1, Wait: -1, Service: "team/chat", Held: 7}, {Pool: "slurm", Units: 16, Count: 1, Wait: -1, Takes: time.Hour + 0}}
	if len(in.Waiting) != 2 || in.Waiting[0] != want[0] || in.Waiting[1] != want[1] {
		t.Errorf("waiting %+v, want %+v", in.Waiting, want)
	}

	in = s.observe(fleet.MachineOwner{Machine: "m1", Pool: "slurm", Next: "kube", Epoch: 3, Step: fleet.StepAsked, At: noon}, fleet.MachineOwner{Machine: "m2", Pool: "slurm", Epoch: 3, Step: fleet.StepRelease, At: noon})
	if in.Machines[0].To != "kube" || !in.Machines[1].Tried.Equal(noon) {
		t.Errorf("%+v", in.Machines[:2])
	}
}

// TestWhatItWouldDo: a replica that waits starts in the simulation of the hand-over that is decided.
//
// Seen to fail with a node that is not set later.
func TestWhatItWouldDo(t *testing.T) {
	s := newSite()
	s.submit(1, spec("kube", 8, 0))
	s.submit(2, spec("kube", 8, 0))
	s.submit(4, spec("kube", 8, 0))
	in := s.observe()
	in.Memory.Lacks = map[string]time.Time{"kube": in.Now.Add(-time.Hour)}
	out := Decide(in)
	if moved(out) != "m1>kube" {
		t.Fatalf("%+v", out)
	}
	state := s.core.Snapshot()
	state.Sort()
	change := &whatif.Change{}
	for _, n := range state.Nodes {
		if n.Machines()[0] == out.Moves[0].Machine && n.Pool == "kube" {
			n.State = fleet.Up
			change.Later = append(change.Later, whatif.LaterNode{In: 5 * time.Minute, Node: n})
		}
	}
	after := whatif.Run(state, s.now, change, whatif.Limits, whatif.Bounds{})
	if len(after.Jobs) != 1 || after.Jobs[0].Start != s.now+sched.Instant(5*time.Minute) {
		t.Errorf("%+v", after.Jobs)
	}
}
