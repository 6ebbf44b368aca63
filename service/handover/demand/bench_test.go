package demand

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
)

// largeSite is so many pools of so many machines each, half of them with more work than room.
func largeSite(pools, machines, wants int) *Input {
	draw := rand.New(rand.NewPCG(1, 1))
	in := &Input{Now: noon, Unit: "GPU", Memory: Memory{Lacks: map[string]time.Time{}}}
	var names []string
	for i := range pools {
		p := account.HandoverPool{Name: fmt.Sprintf("p%02d", i), Min: machines / 10, Requeue: i%3 == 0}
		in.Rules.Pools = append(in.Rules.Pools, p)
		in.Memory.Lacks[p.Name] = noon.Add(-time.Hour)
		names = append(names, p.Name)
	}
	for i, name := range names {
		for k := range machines {
			m := Machine{Name: fmt.Sprintf("m%02d-%03d", i, k), Pool: name, Could: names, Units: 8}
			for free := 8; free > 0 && (i%2 == 0 || draw.IntN(2) == 0); {
				n := 1 + draw.IntN(free)
				m.Runs = append(m.Runs, Run{Units: n, Ends: noon.Add(time.Duration(draw.IntN(600)) * time.Minute), Requeue: true, Lost: int64(draw.IntN(100_000))})
				free -= n
			}
			in.Machines = append(in.Machines, m)
		}
		for range wants / pools {
			in.Waiting = append(in.Waiting, Want{Pool: name, Units: 1 + draw.IntN(16), Count: 1, Wait: time.Duration(draw.IntN(600)) * time.Minute, Takes: time.Duration(1+draw.IntN(300)) * time.Minute})
		}
	}
	return in
}

func BenchmarkDecide(b *testing.B) {
	for _, c := range []struct{ pools, machines int }{{2, 20}, {2, 500}, {20, 500}} {
		b.Run(fmt.Sprintf("%dx%d", c.pools, c.machines), func(b *testing.B) {
			in := largeSite(c.pools, c.machines, 1000)
			moves := 0
			for b.Loop() {
				moves = len(Decide(in).Moves)
			}
			b.ReportMetric(float64(moves), "moves")
		})
	}
}
