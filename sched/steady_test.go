package sched_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/account"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// BenchmarkSteady holds the queue at one length: whatever starts is replaced by a
// new submission. One op is one step: all that happens at one instant. Jobs are of
// twelve shapes, from one GPU to 256 nodes, and four limits, and run for 30 to 100 %
// of their limits (scheduling.md 3.7).
func BenchmarkSteady(b *testing.B) {
	for _, nodes := range []int{1000, 10000} {
		for _, pending := range []int{10000, 100000} {
			b.Run(fmt.Sprintf("nodes=%d/pending=%d", nodes, pending), func(b *testing.B) { steady(b, nodes, pending) })
		}
	}
}

// BenchmarkSteadyPlanned is BenchmarkSteady with starts planned for the first jobs
// of the queue.
func BenchmarkSteadyPlanned(b *testing.B) {
	for _, more := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("nodes=1000/pending=10000/reservations=%d", more), func(b *testing.B) {
			steady(b, 1000, 10000, sched.PolicySet{Policy: &account.Policy{Backfill: account.Backfill{Reservations: more}}})
		})
	}
}

func steady(b *testing.B, nodes, pending int, events ...sched.Event) {
	s := &steadily{r: rand.New(rand.NewPCG(1, 2)), core: sched.New(sched.Config{}), work: map[job.ID]time.Duration{}}
	for i := range nodes {
		events = append(events, sched.NodeSet{Node: gpuNode(i)})
	}
	s.core.Step(0, events...)
	before := heapInUse()
	events = nil
	for range pending {
		events = append(events, s.submit(nodes))
	}
	s.take(s.core.Step(s.now, events...))
	bytes := heapInUse() - before
	for range 2000 { // the first wave of jobs is not the steady state
		s.step(nodes, pending)
	}
	var took []time.Duration
	started := s.started
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		took = append(took, s.step(nodes, pending))
	}
	b.StopTimer()
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) }
	total := time.Duration(0)
	for _, t := range took {
		total += t
	}
	b.ReportMetric(at(0.5), "p50-us")
	b.ReportMetric(at(0.99), "p99-us")
	b.ReportMetric(at(0.999), "p99.9-us")
	b.ReportMetric(float64(s.started-started)/total.Seconds(), "starts/s")
	b.ReportMetric(float64(bytes)/float64(pending), "B/job")
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func gpuNode(i int) fleet.Node {
	n := fleet.Node{
		Name: fmt.Sprintf("gpu%d", i+1), State: fleet.Up, Path: []string{fmt.Sprintf("spine%d", i/512), fmt.Sprintf("leaf%d", i/32)},
		Capacity: resource.Vector{CPU: resource.CPUs(128), Memory: 1024 * resource.GiB},
	}
	for d := range 8 {
		n.Devices = append(n.Devices, fleet.Device{Index: d, Kind: "gpu", Type: "h100", NUMA: d / 4})
	}
	return n
}

// steadily drives a core through invented time.
type steadily struct {
	r       *rand.Rand
	core    *sched.Core
	now     sched.Instant
	last    job.ID
	work    map[job.ID]time.Duration
	ends    planned
	waiting int
	started int
}

func (s *steadily) submit(nodes int) sched.Submitted {
	shapes := [][2]int{{1, 1}, {1, 1}, {1, 2}, {1, 4}, {1, 8}, {1, 8}, {2, 8}, {4, 8}, {8, 8}, {16, 8}, {64, 8}, {256, 8}}
	weights := []int{20, 20, 15, 15, 10, 8, 5, 3, 2, 1, 1, 1}
	limits := []time.Duration{time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour}
	x, k := s.r.IntN(101), 0
	for x >= weights[k] {
		x -= weights[k]
		k++
	}
	shape, limit := shapes[k], limits[s.r.IntN(len(limits))]
	if shape[0] > nodes/4 {
		shape[0] = 4
	}
	spec := gang(shape[0], 1, shape[1], limit)
	s.last++
	s.waiting++
	s.work[s.last] = time.Duration(float64(limit) * (0.3 + 0.7*s.r.Float64()))
	return sched.Submitted{Job: s.last, Spec: spec, At: s.now}
}

func (s *steadily) take(decisions []sched.Decision) {
	for _, d := range decisions {
		if d, ok := d.(sched.Start); ok {
			heap.Push(&s.ends, end{s.now + sched.Instant(s.work[d.Job]), d.Job})
			delete(s.work, d.Job)
			s.waiting--
			s.started++
		}
	}
}

func (s *steadily) step(nodes, pending int) time.Duration {
	var events []sched.Event
	s.now = s.ends[0].at
	for len(s.ends) > 0 && s.ends[0].at == s.now {
		events = append(events, sched.Released{Job: heap.Pop(&s.ends).(end).job})
	}
	for s.waiting < pending {
		events = append(events, s.submit(nodes))
	}
	start := time.Now()
	out := s.core.Step(s.now, events...)
	took := time.Since(start)
	s.take(out)
	return took
}

type end struct {
	at  sched.Instant
	job job.ID
}

type planned []end

func (p planned) Len() int           { return len(p) }
func (p planned) Less(i, j int) bool { return p[i].at < p[j].at }
func (p planned) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *planned) Push(x any)        { *p = append(*p, x.(end)) }
func (p *planned) Pop() any {
	old := *p
	x := old[len(old)-1]
	*p = old[:len(old)-1]
	return x
}
