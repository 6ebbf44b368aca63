package hardcase

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// used is what is taken of a node.
type used struct {
	cpus    float64
	memory  int64
	devices int
}

// held adds up what jobs say they hold, and what nodes say is held, as of one moment:
// nothing happened between the two. false: something did.
func held(p *plane.Plane) (jobs, nodes map[string]used, same bool) {
	ctx := p.T.Context()
	list := func() *api.Jobs {
		page, err := p.JobsPage(ctx, client.Query{Limit: 1000})
		if err != nil {
			p.T.Fatal(err)
		}
		return page
	}
	before := list()
	all, err := p.Nodes(ctx)
	if err != nil {
		p.T.Fatal(err)
	}
	if after := list(); after.Change != before.Change {
		return nil, nil, false
	}
	jobs, nodes = map[string]used{}, map[string]used{}
	for _, n := range all.Nodes {
		u := used{cpus: n.CPUsUsed, memory: n.MemoryUsed}
		for _, d := range n.Devices {
			u.devices += len(d.Jobs)
		}
		nodes[n.Name], jobs[n.Name] = u, used{}
	}
	for _, j := range before.Jobs {
		for _, c := range j.Claims {
			if j.State == "RUNNING" || j.State == "SUSPENDED" {
				u := jobs[c.Node]
				jobs[c.Node] = used{u.cpus + c.CPUs, u.memory + c.Memory, u.devices + len(c.Devices)}
			}
		}
	}
	return jobs, nodes, true
}

// Replicas that fail and are requeued, cancelled and held while they start and end: at
// every moment what the ledger has taken of each node is the sum of what the live
// attempts hold, and nothing in the end. (Replicas whose number changes while they run
// come with elastic jobs.)
func TestHardCase_33_sums(t *testing.T) {
	p := plane.New(t, nodes(3, 2)).Start()
	rnd := rand.New(rand.NewPCG(33, 0))
	judge := func() (total used) {
		p.Await("a moment in which nothing happens", func() bool {
			jobs, nodes, same := held(p)
			if same && !maps.Equal(jobs, nodes) {
				t.Fatalf("jobs hold %v and the ledger says %v", jobs, nodes)
			}
			total = used{}
			for _, u := range nodes {
				total = used{total.cpus + u.cpus, total.memory + u.memory, total.devices + u.devices}
			}
			return same
		})
		return total
	}
	var replicas []string
	for i := range 8 {
		array := p.Submit("[ \"$SLURM_RESTART_COUNT\" ] || exec sleep 60; exit $((SLURM_ARRAY_TASK_ID % 2))", "--array=1-3%2", "--requeue",
			fmt.Sprintf("--gpus=%d", i%3*(1+i%2)), fmt.Sprintf("--mem=%dM", 64+i), fmt.Sprintf("--nodes=%d", 1+i%2))
		replicas = append(replicas, array+"_1", array+"_2", array+"_3")
	}
	verbs := []string{api.VerbRequeue, api.VerbRequeue, api.VerbRequeue, api.VerbCancel, api.VerbHold, api.VerbRelease}
	busy := 0
	for range 150 {
		ch := &api.Change{Verb: verbs[rnd.IntN(len(verbs))], Select: api.Select{IDs: []string{replicas[rnd.IntN(len(replicas))]}}}
		if _, err := p.Client.Change(t.Context(), ch); err != nil {
			t.Fatal(err) // what a job's state does not allow is in the answer, not in the error
		}
		if judge() != (used{}) {
			busy++
		}
	}
	if busy < 50 {
		t.Errorf("only at %d moments was anything held", busy)
	}
	now := 0.0
	if _, err := p.Client.Change(t.Context(), &api.Change{Verb: api.VerbCancel, Select: api.Select{All: true}, Grace: &now}); err != nil {
		t.Fatal(err)
	}
	for _, r := range replicas {
		p.Until(r, "ends", func(j *api.Job) bool { return !j.Ended.IsZero() && j.State != "PENDING" })
	}
	if left := judge(); left != (used{}) {
		t.Errorf("nothing runs, and the ledger says %+v", left)
	}
}
