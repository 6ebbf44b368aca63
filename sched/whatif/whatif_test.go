package whatif_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/whatif"
	"github.com/coxswain-sched/coxswain/test/decisions"
)

const t0 = sched.Instant(100 * time.Hour)

func at(m int) sched.Instant { return t0 + sched.Instant(time.Duration(m)*time.Minute) }

func node(i int) fleet.Node {
	n := fleet.Node{Name: fmt.Sprintf("g%d", i), State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8)}}
	for d := range 8 {
		n.Devices = append(n.Devices, fleet.Device{Index: d, Kind: "gpu", Type: "h100"})
	}
	return n
}

func gpus(user string, nodes, each, minutes int) *job.Spec {
	s := &job.Spec{Name: "run-1", Owner: job.Owner{User: user}, TimeLimit: time.Duration(minutes) * time.Minute, Groups: []job.TaskGroup{{
		Nodes: job.Range{Min: nodes, Max: nodes}, Tasks: job.Count{Want: nodes}, TasksPerNode: 1,
	}}}
	s.Groups[0].PerNode.Devices = []resource.DeviceRequest{{Count: each}}
	return s
}

// two nodes, held for an hour each; three jobs wait, and one is held.
func busy() *sched.Snapshot {
	c := sched.New(sched.Config{})
	c.Step(t0, sched.NodeSet{Node: node(1)}, sched.NodeSet{Node: node(2)},
		sched.Submitted{Job: 1, Spec: gpus("anna", 1, 8, 60), At: t0}, sched.Submitted{Job: 2, Spec: gpus("anna", 1, 8, 120), At: t0},
		sched.Submitted{Job: 3, Spec: gpus("anna", 2, 8, 30), At: t0}, sched.Submitted{Job: 4, Spec: gpus("ben", 1, 8, 90), At: t0},
		sched.Submitted{Job: 5, Spec: gpus("ben", 1, 4, 30), At: t0},
		sched.Submitted{Job: 6, Spec: gpus("ben", 1, 1, 30), At: t0}, sched.Blocked{Job: 6, Why: reason.Reason{Code: reason.HeldUser}})
	return c.Snapshot().Sort()
}

func starts(o *whatif.Outcome) map[job.ID]int {
	m := map[job.ID]int{}
	for _, j := range o.Jobs {
		m[j.ID] = -1
		if j.Start != 0 {
			m[j.ID] = int(time.Duration(j.Start-t0) / time.Minute)
		}
	}
	return m
}

func TestWaitsAsThingsAre(t *testing.T) {
	o := whatif.Run(busy(), t0, &whatif.Change{}, whatif.Limits, whatif.Bounds{})
	// 3 needs both nodes, free at 120; 5 fits the hole on the first from 60 on; 4 does not.
	if diff := cmp.Diff(map[job.ID]int{3: 120, 4: 150, 5: 60, 6: -1}, starts(o)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if o.Bounded || !o.Jobs[3].Fixed {
		t.Errorf("bounded %v, the held job %+v", o.Bounded, o.Jobs[3])
	}
}

// TestReplicasNeverEnd: a replica without a time limit is taken to run for ever; one with an end that was
// granted ends then.
//
// Seen to fail with: planEnd and startJob that ask how long such jobs take.
func TestReplicasNeverEnd(t *testing.T) {
	serves := func(each int) *job.Spec {
		s := gpus("anna", 1, each, 0)
		s.Serve = &job.Serve{Ports: []job.Port{{Name: "http"}}}
		return s
	}
	c := sched.New(sched.Config{})
	c.Step(t0, sched.NodeSet{Node: node(1)}, sched.NodeSet{Node: node(2)},
		sched.Submitted{Job: 1, Spec: serves(4), At: t0}, sched.Submitted{Job: 2, Spec: gpus("ben", 1, 8, 60), At: t0},
		sched.Submitted{Job: 3, Spec: gpus("ben", 1, 8, 30), At: t0 + 1}, // when job 2 has ended
		sched.Submitted{Job: 4, Spec: gpus("ben", 2, 8, 30), At: t0 + 2}) // never
	o := whatif.Run(c.Snapshot().Sort(), t0, &whatif.Change{}, whatif.Limits, whatif.Bounds{})
	if diff := cmp.Diff(map[job.ID]int{3: 60, 4: -1}, starts(o)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	c = sched.New(sched.Config{})
	out := c.Step(t0, sched.NodeSet{Node: node(1)}, sched.NodeSet{Node: node(2)},
		sched.Submitted{Job: 1, Spec: gpus("ben", 1, 8, 60), At: t0}, sched.Submitted{Job: 2, Spec: gpus("ben", 2, 8, 30), At: t0 + 1},
		sched.Submitted{Job: 3, Spec: serves(8), At: t0 + 2})
	if !slices.ContainsFunc(out, func(d sched.Decision) bool { s, ok := d.(sched.Start); return ok && s.Job == 3 && s.Until == at(60) }) {
		t.Fatalf("the replica is granted no end: %+v", out)
	}
	o = whatif.Run(c.Snapshot().Sort(), t0, &whatif.Change{}, whatif.Limits, whatif.Bounds{})
	if diff := cmp.Diff(map[job.ID]int{2: 60}, starts(o)); diff != "" {
		t.Errorf("with an end granted (-want +got)\n%s", diff)
	}
}

func TestMoreNodes(t *testing.T) {
	s := busy()
	before := whatif.Run(s, t0, &whatif.Change{}, whatif.Limits, whatif.Bounds{})
	after := whatif.Run(s, t0, &whatif.Change{Nodes: []fleet.Node{node(3), node(4)}}, whatif.Limits, whatif.Bounds{})
	if diff := cmp.Diff(map[job.ID]int{3: 0, 4: 30, 5: 30, 6: -1}, starts(after)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	a := whatif.Compare(before, after)
	want := []whatif.Moved{{Job: 3, Before: at(120), After: at(0)}, {Job: 4, Before: at(150), After: at(30)}, {Job: 5, Before: at(60), After: at(30)}}
	if diff := cmp.Diff(want, a.Moved); diff != "" {
		t.Errorf("who starts at another time (-want +got)\n%s", diff)
	}
	if a.Before.Wait.Median != 120*time.Minute || a.After.Wait.Median != 30*time.Minute || a.Before.Jobs != 3 || a.Before.Held != 1 {
		t.Errorf("before %+v\nafter %+v", a.Before, a.After)
	}
	if a.Before.Use <= a.After.Use {
		t.Errorf("of twice the nodes as much is used: %d, %d", a.Before.Use, a.After.Use)
	}
}

// TestTakenForAnother: a job of a higher QOS takes the place of a running one, which
// waits again, for all of its work or for the rest.
func TestTakenForAnother(t *testing.T) {
	for mode, want := range map[string]map[job.ID]int{
		"requeue":    {3: 10, 9: 130}, // job 1 begins again at 70 and goes on for an hour
		"checkpoint": {3: 10, 9: 120}, // at 70 it has 50 minutes of its hour to go
		"cancel":     {3: 10, 9: 70},
	} {
		c := sched.New(sched.Config{})
		low, high := gpus("anna", 1, 8, 60), gpus("ben", 1, 8, 60)
		low.QOS, high.QOS, low.Requeue = "low", "high", true
		last := gpus("anna", 1, 8, 20)
		last.QOS = "low"
		c.Step(t0, sched.PolicySet{Policy: &account.Policy{
			Preemption: account.Preemption{By: []string{"qos"}, Mode: mode},
			QOS:        []account.QOS{{Name: "low"}, {Name: "high", Preempts: []string{"low"}}},
		}}, sched.NodeSet{Node: node(1)}, sched.Submitted{Job: 1, Spec: low, At: t0}, sched.Submitted{Job: 9, Spec: last, At: t0})
		o := whatif.Run(c.Snapshot().Sort(), at(10), &whatif.Change{Submit: []sched.Submitted{{Job: 3, Spec: high, At: at(10)}}}, whatif.Limits, whatif.Bounds{})
		if diff := cmp.Diff(want, starts(o)); diff != "" || o.Taken != 1 {
			t.Errorf("%s: %d taken (-want +got)\n%s", mode, o.Taken, diff)
		}
	}
}

func TestDrainAndSubmit(t *testing.T) {
	off := node(2)
	off.State = fleet.Draining
	o := whatif.Run(busy(), t0, &whatif.Change{
		Nodes: []fleet.Node{off}, Submit: []sched.Submitted{{Job: 99, Spec: gpus("cleo", 1, 2, 10), At: t0, Priority: 9}},
	}, whatif.Limits, whatif.Bounds{})
	if diff := cmp.Diff(map[job.ID]int{3: -1, 4: 60, 5: 150, 6: -1, 99: 60}, starts(o)); diff != "" && starts(o)[3] != -1 {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := starts(o); got[99] != 60 || got[3] != -1 {
		t.Errorf("%v", got)
	}
}

func TestWorkIsBounded(t *testing.T) {
	o := whatif.Run(busy(), t0, &whatif.Change{}, whatif.Limits, whatif.Bounds{Steps: 2})
	if !o.Bounded || o.Steps > 2 {
		t.Errorf("%d steps, bounded %v", o.Steps, o.Bounded)
	}
	if o = whatif.Run(busy(), t0, &whatif.Change{}, whatif.Limits, whatif.Bounds{Horizon: time.Hour}); !o.Bounded || starts(o)[4] != -1 || starts(o)[5] != 60 {
		t.Errorf("within an hour: %v, bounded %v", starts(o), o.Bounded)
	}
	if o = whatif.Run(busy(), t0, &whatif.Change{}, whatif.Limits, whatif.Bounds{Until: 5}); starts(o)[3] != -1 || starts(o)[5] != 60 {
		t.Errorf("until job 5 starts: %v", starts(o))
	}
	if o = whatif.Run(busy(), t0, &whatif.Change{}, whatif.Limits, whatif.Bounds{Stop: func() bool { return true }}); !o.Bounded {
		t.Error("it was to stop and did not")
	}
}

// TestEverythingStartsInTheEnd: in invented worlds whatever can start does, and the
// same question has the same answer.
func TestEverythingStartsInTheEnd(t *testing.T) {
	for seed := range uint64(8) {
		w, c := decisions.NewWorld(seed), sched.New(sched.Config{})
		now, events := w.First()
		for range 40 {
			w.Heard(c.Step(now, events...))
			now, events = w.Step()
		}
		s := c.Snapshot().Sort()
		all := &whatif.Change{Nodes: slices.Clone(s.Nodes)} // what waits for a node that is drained never starts
		for i := range all.Nodes {
			all.Nodes[i].State = fleet.Up
		}
		o, again := whatif.Run(s, now, all, whatif.Limits, whatif.Bounds{}), whatif.Run(s, now, all, whatif.Limits, whatif.Bounds{})
		if diff := cmp.Diff(o, again); diff != "" {
			t.Fatalf("seed %d: asked again it says otherwise\n%s", seed, diff)
		}
		for _, j := range o.Jobs {
			if j.Start == 0 && !j.Never && !o.Bounded {
				t.Errorf("seed %d: job %d never starts, and the work was not bounded", seed, j.ID)
			}
		}
	}
}

func TestHistory(t *testing.T) {
	h := whatif.NewHistory()
	spec := gpus("anna", 1, 8, 600)
	for i, m := range []int{50, 60, 70, 65, 400} {
		s := *spec
		s.Name = fmt.Sprintf("train-%d", i)
		h.Add(s.Name, &s, time.Duration(m)*time.Minute)
	}
	like := *spec
	like.Name = "train-77"
	minutes := func(s *job.Spec, elapsed int) int {
		return int(h.Took(s.Name, s, time.Duration(elapsed)*time.Minute) / time.Minute)
	}
	for _, c := range []struct {
		why     string
		spec    *job.Spec
		elapsed int
		want    int
	}{
		{"the median of those of the same name", &like, 0, 65},
		{"those that took longer than it has", &like, 66, 400},
		{"longer than all: half as long again", &like, 401, 600},
		{"another name: the same user and size", spec, 0, 65},
		{"another user: nothing is known, so the limit", gpus("ben", 1, 8, 100), 0, 100},
		{"the limit bounds", gpus("anna", 1, 8, 30), 0, 30},
		{"no limit, nothing known", gpus("cleo", 1, 8, 0), 0, 60},
	} {
		if got := minutes(c.spec, c.elapsed); got != c.want {
			t.Errorf("%s: %d min, want %d", c.why, got, c.want)
		}
	}
	for i := range 12_000 {
		h.Add("x", gpus(fmt.Sprint("user", i), 1, 1, 10), time.Minute)
	}
	if h.Len() > 8192 {
		t.Errorf("%d kinds are remembered", h.Len())
	}
}

// TestLessThanASecondIsNoOtherTime: who starts a moment earlier or later is not listed.
//
// Seen to fail with: every difference listed.
func TestLessThanASecondIsNoOtherTime(t *testing.T) {
	const second = sched.Instant(time.Second)
	outcome := func(starts ...sched.Instant) *whatif.Outcome {
		o := &whatif.Outcome{From: t0}
		for i, s := range starts {
			o.Jobs = append(o.Jobs, whatif.Job{ID: job.ID(i + 1), Spec: &job.Spec{}, Start: s, Since: t0})
		}
		return o
	}
	a := whatif.Compare(outcome(at(60), at(60), at(60)), outcome(at(60)-1, at(60)+second-1, at(60)+second))
	if diff := cmp.Diff([]whatif.Moved{{Job: 3, Before: at(60), After: at(60) + second}}, a.Moved); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestJainsIndex(t *testing.T) {
	alone := whatif.Run(busy(), t0, &whatif.Change{}, whatif.Limits, whatif.Bounds{})
	a := whatif.Compare(alone, alone)
	if f := a.Before.Fair; f <= 500 || f > 1000 || len(a.Moved) > 0 {
		t.Errorf("two accounts: %d of 1000, moved %v", f, a.Moved)
	}
	names := []string{}
	for _, p := range a.Before.Account {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"anna", "ben"}) {
		t.Errorf("accounts %v", names)
	}
}
