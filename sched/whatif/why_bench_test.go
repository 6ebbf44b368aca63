package whatif_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/whatif"
)

// BenchmarkWhy asks of a full fleet of 8-GPU nodes why one job after the other waits:
// every reason, who holds what it needs, and the smallest changes that would start it.
// Jobs are of eleven shapes, four limits and as many accounts as are said, so that the
// queue has some thousands of lines.
func BenchmarkWhy(b *testing.B) {
	for _, size := range [][2]int{{100, 1_000}, {1_000, 10_000}, {10_000, 100_000}} {
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", size[0], size[1]), func(b *testing.B) { why(b, size[0], size[1]) })
	}
}

func why(b *testing.B, nodes, pending int) {
	const accounts = 50
	p := &account.Policy{Priority: account.Weights{Age: 1000, FairShare: 10000}}
	for i := range accounts {
		p.Accounts = append(p.Accounts, account.Account{Name: fmt.Sprintf("team%d", i), Shares: 1})
	}
	r := rand.New(rand.NewPCG(1, 2))
	core := sched.New(sched.Config{})
	events := []sched.Event{sched.PolicySet{Policy: p}}
	for i := range nodes {
		events = append(events, sched.NodeSet{Node: node(i)})
	}
	shapes := [][2]int{{1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 8}, {4, 8}, {8, 8}, {16, 8}, {32, 8}, {64, 8}, {128, 8}}
	id := job.ID(0)
	for range nodes + pending {
		id++
		x := shapes[r.IntN(len(shapes))]
		spec := gpus("user", x[0], x[1], []int{60, 240, 720, 1440}[r.IntN(4)])
		spec.Account = fmt.Sprintf("team%d", r.IntN(accounts))
		events = append(events, sched.Submitted{Job: id, Spec: spec, At: t0})
	}
	var freed []sched.Event // a few nodes free for what is short or small
	for _, d := range core.Step(t0, events...) {
		if d, ok := d.(sched.Start); ok && len(freed) < nodes/100 && len(d.Claims) == 1 {
			freed = append(freed, sched.NodeSet{Node: node(nodes + len(freed))})
		}
	}
	core.Step(t0, freed...)
	s := core.Snapshot().Sort()
	a := whatif.NewAdviser(s, t0)
	var took []time.Duration
	changes := 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		id := s.Queue[r.IntN(len(s.Queue))].Job
		at := time.Now()
		core.Reasons(t0, id)
		a.Ahead(id)
		a.Blockers(id)
		changes += len(a.Smallest(id))
		took = append(took, time.Since(at))
	}
	b.StopTimer()
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) }
	b.ReportMetric(at(0.5), "p50-us")
	b.ReportMetric(at(0.99), "p99-us")
	b.ReportMetric(float64(changes)/float64(b.N), "changes")
}
