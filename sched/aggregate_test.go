package sched_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

// farPool is a pool of n nodes with 8 h100 each as one node.
func farPool(n int) fleet.Node {
	all := make([]fleet.Node, n)
	for i := range all {
		all[i] = node(fmt.Sprintf("far%d", i), 8)
		for d := range all[i].Devices {
			all[i].Devices[d].Type = "h100"
		}
	}
	return aggregate.Node("far", all)
}

// farGang is a gang of nodes with 8 h100 each, as the core is told of it.
func farGang(acct, user string, nodes int, limit time.Duration) *job.Spec {
	return aggregate.Spec(&job.Spec{
		Pool: "far", Account: acct, Owner: job.Owner{User: user}, TimeLimit: limit,
		Groups: []job.TaskGroup{{
			Nodes: job.Range{Min: nodes, Max: nodes}, TasksPerNode: 1, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.OneCPU}},
			PerNode: resource.Requirements{Devices: []resource.DeviceRequest{{Type: "h100", Count: 8}}},
		}},
	})
}

// TestLimitsOfAPoolAsAWhole: nodes and devices of a pool that is one node count as those of
// others do, in limits, quotas and the largest share of one node.
func TestLimitsOfAPoolAsAWhole(t *testing.T) {
	for name, tt := range map[string]struct {
		group, job, node account.TRES
		starts           int
		limit            string
	}{
		"nodes":            {group: account.TRES{"node": 5}, starts: 2, limit: "AssocGrpNodeLimit"},
		"GPUs":             {group: account.TRES{"gpu": 32_000}, starts: 2, limit: "AssocGrpGRES"},
		"GPUs of a type":   {group: account.TRES{"gpu:h100": 16_000}, starts: 1, limit: "AssocGrpGRES"},
		"CPUs":             {group: account.TRES{"cpu": 4000}, starts: 2, limit: "AssocGrpCpuLimit"},
		"GPUs of one node": {node: account.TRES{"gpu": 8000}, starts: 3},
		"of one node less": {node: account.TRES{"gpu": 7000}, limit: "MaxGRESPerNode"},
		"nodes of one job": {job: account.TRES{"node": 1}, limit: "AssocMaxNodePerJobLimit"},
	} {
		p := shared()
		l := &p.Accounts[0].Limits
		l.Group, l.Job, l.Node = tt.group, tt.job, tt.node
		c := sched.New(sched.Config{})
		events := []sched.Event{sched.PolicySet{Policy: p}, sched.NodeSet{Node: farPool(100)}}
		for id := job.ID(1); id <= 3; id++ {
			events = append(events, sched.Submitted{Job: id, Spec: farGang("a", "u", 2, time.Hour), At: sched.Instant(id)})
		}
		out := c.Step(sched.Instant(time.Hour), events...)
		if got := len(starts(out)); got != tt.starts {
			t.Errorf("%s: %d started, want %d: %+v", name, got, tt.starts, out)
		}
		if why := c.Reasons(sched.Instant(time.Hour), 3); tt.limit != "" && (len(why) == 0 || why[0].Code.Limit() == "") {
			t.Errorf("%s: job 3 waits for %v, want %s", name, why, tt.limit)
		}
	}
}

// TestChargedFromTheStartThere: a job that waits in the queue of its pool's own scheduler is
// charged for nothing, also after a restart; from its start on as others are.
func TestChargedFromTheStartThere(t *testing.T) {
	at := func(minutes int) sched.Instant {
		return sched.Instant(time.Hour) + sched.Instant(minutes)*sched.Instant(time.Minute)
	}
	c := sched.New(sched.Config{})
	spec := farGang("a", "u", 2, time.Hour)
	out := c.Step(at(0), sched.PolicySet{Policy: shared()}, sched.NodeSet{Node: farPool(4)}, sched.Submitted{Job: 1, Spec: spec})
	var claims []fleet.Claim
	for _, d := range out {
		if s, ok := d.(sched.Start); ok {
			claims = s.Claims
		}
	}
	if len(claims) != 1 || claims[0].Node != "@far" || claims[0].Tasks != 2 || claims[0].Take.Get("gres/gpu") != 16 {
		t.Fatalf("it has %+v of %+v", claims, out)
	}
	used := func(c *sched.Core) (sum float64) {
		_, entries := c.Usage()
		for _, e := range entries {
			sum += e.Raw
		}
		return sum
	}
	again := sched.New(sched.Config{})
	again.Step(at(0), sched.PolicySet{Policy: shared()}, sched.NodeSet{Node: farPool(4)}, sched.Restored{Job: 1, Spec: spec, Claims: claims, Began: at(0), Until: at(60), Waits: true})
	loaded := sched.Load(c.Snapshot())
	for name, c := range map[string]*sched.Core{"told": c, "restored": again, "loaded": loaded} {
		c.Step(at(10))
		if u := used(c); u != 0 || len(c.Owes(at(10), 1)) != 0 {
			t.Errorf("%s: charged %v before it began, owes %v", name, u, c.Owes(at(10), 1))
		}
		c.Step(at(20), sched.Extended{Job: 1, Until: at(80), Began: at(20)})
		c.Step(at(30))
		if u := used(c); u < 600*2*2 {
			t.Errorf("%s: charged %v ten minutes after its start", name, u)
		}
	}
}

// TestAPoolAsAWholeIsOrdered: what the pool has no room for as a whole waits, with what it
// lacks as people call it, and goes when there is.
func TestAPoolAsAWholeIsOrdered(t *testing.T) {
	c := sched.New(sched.Config{})
	out := c.Step(1, sched.NodeSet{Node: farPool(4)}, sched.Submitted{Job: 1, Spec: farGang("", "u", 3, time.Hour)}, sched.Submitted{Job: 2, Spec: farGang("", "u", 2, time.Hour), At: 2})
	if got := starts(out); len(got) != 1 || got[0] != 1 {
		t.Fatalf("%+v", out)
	}
	why := c.Reasons(1, 2)
	if len(why) == 0 || why[0].Code != reason.Resources || why[0].String() != "needs 16 GPUs, free now: 8 GPUs" {
		t.Errorf("job 2 waits: %v", why)
	}
	if got := starts(c.Step(2, sched.Released{Job: 1})); len(got) != 1 || got[0] != 2 {
		t.Errorf("then %v start", got)
	}
}

// BenchmarkPoolAsAWhole is a step of a pool of 10,000 nodes with 8 devices each in which as
// many jobs are held: one ends and the next one is handed over.
func BenchmarkPoolAsAWhole(b *testing.B) {
	for _, live := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(live), func(b *testing.B) {
			c := sched.New(sched.Config{})
			spec := farGang("", "u", 10_000/live, time.Hour)
			now := sched.Instant(1)
			c.Step(now, sched.NodeSet{Node: farPool(10_000)})
			var events []sched.Event
			for id := range job.ID(live + 100) {
				events = append(events, sched.Submitted{Job: id + 1, Spec: spec, At: sched.Instant(id)})
			}
			if got := len(starts(c.Step(now, events...))); got != live {
				b.Fatalf("%d started", got)
			}
			next := job.ID(live + 101)
			for id := job.ID(1); b.Loop(); id++ {
				now += sched.Instant(time.Second)
				out := c.Step(now, sched.Released{Job: id}, sched.Submitted{Job: next, Spec: spec, At: now})
				if len(starts(out)) != 1 {
					b.Fatalf("%+v", out)
				}
				next++
			}
		})
	}
}
