package sched_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// busy returns a core with 1,000 nodes of 8 GPUs in leaves of 32, full of running
// jobs, with so many jobs pending, and the numbers of what runs.
func busy(b *testing.B, pending int, shapes func(i int) *job.Spec) (*sched.Core, []job.ID, job.ID) {
	c := sched.New(sched.Config{})
	var events []sched.Event
	for i := range 1000 {
		n := fleet.Node{
			Name: fmt.Sprintf("gpu%d", i+1), State: fleet.Up, Path: []string{fmt.Sprintf("spine%d", i/256), fmt.Sprintf("leaf%d", i/32)},
			Capacity: resource.Vector{CPU: resource.CPUs(128), Memory: 1024 * resource.GiB},
		}
		for d := range 8 {
			n.Devices = append(n.Devices, fleet.Device{Index: d, Kind: "gpu", Type: "h100", NUMA: d / 4})
		}
		events = append(events, sched.NodeSet{Node: n})
	}
	id := job.ID(0)
	for range pending + 2000 {
		id++
		events = append(events, sched.Submitted{Job: id, Spec: shapes(int(id)), At: sched.Instant(id)})
	}
	var running []job.ID
	for _, d := range c.Step(sched.Instant(time.Hour), events...) {
		if s, ok := d.(sched.Start); ok {
			running = append(running, s.Job)
		}
	}
	return c, running, id
}

// mixed is a mix of shapes: 1 to 8 GPUs of one node, gangs of 2 to 32 nodes.
func mixed() func(int) *job.Spec {
	r := rand.New(rand.NewPCG(1, 2))
	limits := []time.Duration{time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour}
	shapes := []func(time.Duration) *job.Spec{
		func(l time.Duration) *job.Spec { return gang(1, 1, 1, l) },
		func(l time.Duration) *job.Spec { return gang(1, 1, 2, l) },
		func(l time.Duration) *job.Spec { return gang(1, 1, 4, l) },
		func(l time.Duration) *job.Spec { return gang(1, 8, 1, l) },
		func(l time.Duration) *job.Spec { return gang(2, 8, 1, l) },
		func(l time.Duration) *job.Spec { return gang(8, 8, 1, l) },
		func(l time.Duration) *job.Spec { return gang(32, 8, 1, l) },
	}
	return func(int) *job.Spec { return shapes[r.IntN(len(shapes))](limits[r.IntN(len(limits))]) }
}

// BenchmarkStepNothingStartable: a full fleet, 10,000 jobs wait, one more comes.
func BenchmarkStepNothingStartable(b *testing.B) {
	shape := mixed()
	c, _, id := busy(b, 10000, shape)
	for b.Loop() {
		id++
		c.Step(sched.Instant(2*time.Hour), sched.Submitted{Job: id, Spec: gang(1, 8, 1, time.Hour), At: sched.Instant(id)})
		c.Step(sched.Instant(2*time.Hour), sched.Withdrawn{Job: id})
	}
}

// BenchmarkStep: a full fleet, 10,000 jobs wait; one running job ends and a new
// one is submitted.
func BenchmarkStep(b *testing.B) {
	shape := mixed()
	c, running, id := busy(b, 10000, shape)
	now := sched.Instant(2 * time.Hour)
	started := 0
	for b.Loop() {
		id++
		now += sched.Instant(time.Second)
		done := running[0]
		running = running[1:]
		for _, d := range c.Step(now, sched.Released{Job: done}, sched.Submitted{Job: id, Spec: shape(0), At: now}) {
			if s, ok := d.(sched.Start); ok {
				running = append(running, s.Job)
				started++
			}
		}
	}
	b.ReportMetric(float64(started)/float64(b.N), "starts/op")
}

// BenchmarkStepManyShapes: every waiting job is of a shape of its own.
func BenchmarkStepManyShapes(b *testing.B) {
	n := 0
	own := func(int) *job.Spec {
		n++
		s := gang(1, 8, 1, time.Duration(n)*time.Second)
		s.Groups[0].PerTask.Memory = resource.Amount(n) * resource.MiB
		return s
	}
	c, running, id := busy(b, 10000, own)
	now := sched.Instant(2 * time.Hour)
	for b.Loop() {
		id++
		now += sched.Instant(time.Second)
		done := running[0]
		running = running[1:]
		for _, d := range c.Step(now, sched.Released{Job: done}, sched.Submitted{Job: id, Spec: own(0), At: now}) {
			if s, ok := d.(sched.Start); ok {
				running = append(running, s.Job)
			}
		}
	}
}

// BenchmarkGangs places gangs on an empty fleet of nodes with 8 GPUs, a task with a GPU on each
// node of a gang, as `make bench-kube` has them for kube-scheduler. One op is all of them: in one
// step, or in a step each, as they come.
func BenchmarkGangs(b *testing.B) {
	for _, x := range []struct{ nodes, gangs, size int }{{1000, 500, 8}, {1000, 50, 128}, {5000, 500, 40}} {
		for _, how := range []string{"at once", "one by one", "at once, in leaves of 32"} {
			b.Run(fmt.Sprintf("nodes=%d/gangs=%dx%d/%s", x.nodes, x.gangs, x.size, how), func(b *testing.B) {
				placeGangs(b, x.nodes, x.gangs, x.size, how)
			})
		}
	}
}

func placeGangs(b *testing.B, nodes, gangs, size int, how string) {
	fleetOf := make([]sched.Event, nodes)
	for i := range fleetOf {
		n := gpuNode(i)
		if !strings.HasSuffix(how, "leaves of 32") {
			n.Path = nil
		}
		fleetOf[i] = sched.NodeSet{Node: n}
	}
	steps := make([][]sched.Event, 0, gangs)
	for i := range gangs {
		come := sched.Event(sched.Submitted{Job: job.ID(i + 1), Spec: gang(size, 1, 1, time.Hour), At: 2})
		if how == "one by one" || i == 0 {
			steps = append(steps, nil)
		}
		steps[len(steps)-1] = append(steps[len(steps)-1], come)
	}
	b.ReportAllocs()
	var heap uint64
	for b.Loop() {
		b.StopTimer()
		before := heapInUse()
		c := sched.New(sched.Config{})
		c.Step(1, fleetOf...)
		b.StartTimer()
		placed := 0
		for _, events := range steps {
			for _, d := range c.Step(2, events...) {
				if s, ok := d.(sched.Start); ok {
					placed += len(s.Claims)
				}
			}
		}
		b.StopTimer()
		if placed != gangs*size {
			b.Fatalf("%d of %d tasks have a node", placed, gangs*size)
		}
		heap = heapInUse() - before
		runtime.KeepAlive(c)
		b.StartTimer()
	}
	b.ReportMetric(float64(heap)/(1<<20), "MiB-kept")
}
