package sched_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// BenchmarkSteady holds the queue at one length: whatever starts is replaced by a
// new submission. One op is one step: all that happens at one instant. Jobs are of
// twelve shapes, from one GPU to 256 nodes, and four limits, and run for 30 to 100 %
// of their limits (docs/explanation/benchmarks.md).
func BenchmarkSteady(b *testing.B) {
	for _, nodes := range []int{1000, 10000} {
		for _, pending := range []int{10000, 100000} {
			b.Run(fmt.Sprintf("nodes=%d/pending=%d", nodes, pending), func(b *testing.B) { steady(b, nodes, pending, nil) })
		}
	}
}

// BenchmarkPlanned is BenchmarkSteady with starts planned for the first jobs of the
// queue.
func BenchmarkPlanned(b *testing.B) {
	for _, more := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("nodes=1000/pending=10000/reservations=%d", more), func(b *testing.B) {
			steady(b, 1000, 10000, &account.Policy{Backfill: account.Backfill{Reservations: more}})
		})
	}
}

// BenchmarkEverything is BenchmarkSteady with all rules at work.
func BenchmarkEverything(b *testing.B) {
	for _, size := range [][2]int{{1000, 10000}, {10000, 100000}} {
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", size[0], size[1]), func(b *testing.B) {
			steady(b, size[0], size[1], everything(size[0]))
		})
	}
}

// BenchmarkGrowth is BenchmarkEverything for fleets and queues of many sizes.
func BenchmarkGrowth(b *testing.B) {
	for _, nodes := range []int{1000, 10000, 100000} {
		for _, pending := range []int{10000, 100000, 1000000} {
			b.Run(fmt.Sprintf("rules=none/nodes=%d/pending=%d", nodes, pending), func(b *testing.B) { steady(b, nodes, pending, nil) })
			b.Run(fmt.Sprintf("rules=all/nodes=%d/pending=%d", nodes, pending), func(b *testing.B) {
				steady(b, nodes, pending, everything(nodes))
			})
		}
	}
}

// BenchmarkFullPass: nothing has room, and everything is looked at again, because the
// rules are set anew.
func BenchmarkFullPass(b *testing.B) {
	for _, x := range []struct {
		name   string
		policy *account.Policy
	}{{"none", &account.Policy{}}, {"all", everything(10000)}} {
		b.Run("rules="+x.name+"/nodes=10000/pending=100000", func(b *testing.B) {
			s := newSteadily(10000, 100000, x.policy)
			s.fill()
			c := s.core
			b.ReportAllocs()
			for b.Loop() {
				c.Relook(s.now)
			}
		})
	}
}

// BenchmarkNever: a job comes that the fleet can never take.
func BenchmarkNever(b *testing.B) {
	s := newSteadily(10000, 100000, everything(10000))
	s.fill()
	b.ReportAllocs()
	for b.Loop() {
		if len(s.core.Feasible(gang(1, 1, 9, time.Hour))) == 0 {
			b.Fatal("9 GPUs are to be found on a node with 8")
		}
	}
}

// TestPendingJobsAreSmall counts what a pending job costs the core. Specifications are
// shared, as those of an array are; what a caller keeps of a job is not counted.
func TestPendingJobsAreSmall(t *testing.T) {
	const jobs = 200_000
	c := sched.New(sched.Config{})
	c.Step(1, sched.NodeSet{Node: gpuNode(0)}, sched.PolicySet{Policy: everything(1)})
	s := newSteadily(1, 0, everything(1))
	events := make([]sched.Event, jobs)
	for i := range events {
		events[i] = s.submit()
	}
	before := heapInUse()
	c.Step(2, events...)
	each := float64(heapInUse()-before) / jobs
	runtime.KeepAlive(events)
	if each > 300 {
		t.Errorf("a pending job takes %.0f bytes, at most 300 are wanted", each)
	}
	t.Logf("%.0f bytes a job", each)
	runtime.KeepAlive(c)
}

var (
	warm  = flag.Int("warm", 2000, "steps before those that are measured")
	worst = flag.Float64("worst", 0, "this part of the steps, those that take longest, are made once more and labelled step=worst for the profiler")
)

// steady measures steps. The first wave of jobs, which all start at one instant, is
// not the steady state and is not measured.
func steady(b *testing.B, nodes, pending int, policy *account.Policy) {
	s := newSteadily(nodes, pending, policy)
	before := heapInUse()
	s.fill()
	bytes := heapInUse() - before
	for range *warm {
		s.step()
	}
	took := make([]time.Duration, 0, 1<<16)
	started := s.started
	b.ReportAllocs()
	for b.Loop() {
		took = append(took, s.step())
	}
	if *worst > 0 {
		relive(nodes, pending, policy, took)
	}
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Nanoseconds()) / 1000 }
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

// relive makes the same steps again, twice to find those that take long each time and
// not because of other work on the machine, and then so that a profile tells them from
// the others (go tool pprof -tagfocus step=worst).
func relive(nodes, pending int, policy *account.Policy, took []time.Duration) {
	anew := func() *steadily {
		s := newSteadily(nodes, pending, policy)
		s.fill()
		for range *warm {
			s.step()
		}
		return s
	}
	least := slices.Clone(took)
	for range 2 {
		s := anew()
		for i := range least {
			least[i] = min(least[i], s.step())
		}
	}
	sorted := slices.Sorted(slices.Values(least))
	bound := sorted[int((1-*worst)*float64(len(sorted)-1))]
	s := anew()
	for _, t := range least {
		label := "other"
		if t >= bound {
			label = "worst"
		}
		pprof.Do(context.Background(), pprof.Labels("step", label), func(context.Context) { s.step() })
	}
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

// steadily drives a core through invented time. It makes no garbage in a step but
// what is told of a new job, so that what is measured is the core's.
type steadily struct {
	r              *rand.Rand
	core           *sched.Core
	nodes, pending int
	owned          bool // jobs belong to those whom everything knows
	now            sched.Instant
	last           job.ID
	work           map[job.ID]running
	specs          map[kindOfSpec]*job.Spec
	ends           ends
	events         []sched.Event
	waiting        int
	started        int
	watch          func([]sched.Event, []sched.Decision)
}

// running is how long a job runs, and what it is.
type running struct {
	takes   time.Duration
	spec    *job.Spec
	attempt int
}

// kindOfSpec is all in which two jobs can differ.
type kindOfSpec struct {
	shape, user int
	limit       time.Duration
	qos         string
	licensed    bool
}

func newSteadily(nodes, pending int, policy *account.Policy) *steadily {
	s := &steadily{
		r: rand.New(rand.NewPCG(1, 2)), core: sched.New(sched.Config{}), nodes: nodes, pending: pending,
		owned: policy != nil && len(policy.Accounts) > 0, now: sched.Instant(time.Hour), work: map[job.ID]running{}, specs: map[kindOfSpec]*job.Spec{},
	}
	var events []sched.Event
	for i := range nodes {
		events = append(events, sched.NodeSet{Node: gpuNode(i)})
	}
	if policy != nil {
		events = append(events, sched.PolicySet{Policy: policy})
	}
	s.tell(events)
	return s
}

// fill submits the first jobs.
func (s *steadily) fill() {
	var events []sched.Event
	for range s.pending {
		events = append(events, s.submit())
	}
	s.tell(events)
}

func (s *steadily) tell(events []sched.Event) time.Duration {
	start := time.Now()
	out := s.core.Step(s.now, events...)
	took := time.Since(start)
	s.take(out)
	if s.watch != nil {
		s.watch(events, out)
	}
	return took
}

// submit draws a job.
func (s *steadily) submit() sched.Submitted {
	weights := []int{20, 20, 15, 15, 10, 8, 5, 3, 2, 1, 1, 1}
	limits := []time.Duration{time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour}
	x, k := s.r.IntN(101), kindOfSpec{}
	for x >= weights[k.shape] {
		x -= weights[k.shape]
		k.shape++
	}
	k.limit = limits[s.r.IntN(len(limits))]
	if s.owned {
		s.own(&k)
	}
	s.last++
	spec := s.spec(k)
	s.work[s.last] = running{time.Duration(float64(k.limit) * (0.3 + 0.7*s.r.Float64())), spec, 0}
	return s.queue(s.last)
}

// queue submits a job, for the first time or again.
func (s *steadily) queue(id job.ID) sched.Submitted {
	s.waiting++
	return sched.Submitted{Job: id, Spec: s.work[id].spec, At: s.now}
}

// spec is the same one for all jobs that are alike, as that of an array is.
func (s *steadily) spec(k kindOfSpec) *job.Spec {
	if spec := s.specs[k]; spec != nil {
		return spec
	}
	shape := [][2]int{{1, 1}, {1, 1}, {1, 2}, {1, 4}, {1, 8}, {1, 8}, {2, 8}, {4, 8}, {8, 8}, {16, 8}, {64, 8}, {256, 8}}[k.shape]
	if shape[0] > s.nodes/4 {
		shape[0] = 4
	}
	spec := gang(shape[0], 1, shape[1], k.limit)
	if s.owned {
		k.name(spec)
	}
	s.specs[k] = spec
	return spec
}

func (s *steadily) take(decisions []sched.Decision) {
	for _, d := range decisions {
		switch d := d.(type) {
		case sched.Start:
			s.ends.push(end{s.now + sched.Instant(s.work[d.Job].takes), d.Job, s.work[d.Job].attempt, false})
			s.waiting--
			s.started++
		case sched.Preempt: // it goes after its grace time, and comes back
			s.ends.push(end{s.now + sched.Instant(d.Grace), d.Job, s.work[d.Job].attempt, true})
		}
	}
}

// step goes on to the next instant at which a job ends, and makes the queue full.
func (s *steadily) step() time.Duration {
	s.events = s.events[:0]
	for len(s.events) == 0 {
		s.now = s.ends[0].at
		for len(s.ends) > 0 && s.ends[0].at == s.now {
			e := s.ends.pop()
			w, known := s.work[e.job]
			switch {
			case !known || w.attempt != e.attempt: // it has ended before its grace time, or was stopped before its end
			case e.again:
				s.events = append(s.events, sched.Released{Job: e.job}, s.queue(e.job))
				s.work[e.job] = running{w.takes, w.spec, w.attempt + 1}
			default:
				s.events = append(s.events, sched.Released{Job: e.job})
				delete(s.work, e.job)
			}
		}
	}
	for s.waiting < s.pending {
		s.events = append(s.events, s.submit())
	}
	return s.tell(s.events)
}

// end is when a job ends.
type end struct {
	at      sched.Instant
	job     job.ID
	attempt int
	again   bool // it is preempted, and waits again
}

// ends is a heap of ends, the next one first.
type ends []end

func (h ends) before(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].job < h[j].job
}

func (h *ends) push(e end) {
	*h = append(*h, e)
	a := *h
	for i := len(a) - 1; i > 0 && a.before(i, (i-1)/2); i = (i - 1) / 2 {
		a[i], a[(i-1)/2] = a[(i-1)/2], a[i]
	}
}

func (h *ends) pop() end {
	a := *h
	first, last := a[0], len(a)-1
	a[0] = a[last]
	a = a[:last]
	*h = a
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(a); child++ {
			if a.before(child, least) {
				least = child
			}
		}
		if least == i {
			return first
		}
		a[i], a[least] = a[least], a[i]
		i = least
	}
}
