package sched_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// busyPools returns a core with so many pools of so many nodes of 8 GPUs, full of running jobs, with so many
// jobs pending, and the numbers of what runs in its order.
func busyPools(b *testing.B, pools, nodes, pending int, shape func(int) *job.Spec) (c *sched.Core, running []job.ID, id job.ID) {
	c = sched.New(sched.Config{})
	var events []sched.Event
	for p := range pools {
		for i := range nodes {
			n := fleet.Node{
				Name: fmt.Sprintf("gpu%d-%d", p, i+1), Pool: fmt.Sprintf("pool%d", p), State: fleet.Up,
				Path:     []string{fmt.Sprintf("spine%d-%d", p, i/256), fmt.Sprintf("leaf%d-%d", p, i/32)},
				Capacity: resource.Vector{CPU: resource.CPUs(128), Memory: 1024 * resource.GiB},
			}
			for d := range 8 {
				n.Devices = append(n.Devices, fleet.Device{Index: d, Kind: "gpu", Type: "h100", NUMA: d / 4})
			}
			events = append(events, sched.NodeSet{Node: n})
		}
	}
	for range pending + 2*pools*nodes {
		id++
		events = append(events, sched.Submitted{Job: id, Spec: shape(int(id)), At: sched.Instant(id)})
	}
	for _, d := range c.Step(sched.Instant(time.Hour), events...) {
		if s, ok := d.(sched.Start); ok {
			running = append(running, s.Job)
		}
	}
	return c, running, id
}

// threadTime is the time on the processor of this thread: what others do on the machine does not count.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkPools compares decisions over 20 pools of 500 nodes with those over one pool of 10,000: all
// is full, 10,000 jobs and more wait; one running job ends and a new one is submitted. Its p99
// should be at most 1.3 times as long in 20 pools.
func BenchmarkPools(b *testing.B) {
	for _, x := range []struct{ pools, nodes int }{{1, 10_000}, {20, 500}} {
		b.Run(fmt.Sprintf("%dx%d", x.pools, x.nodes), func(b *testing.B) {
			next := mixed()
			shape := func(i int) *job.Spec {
				s := next(i)
				s.Pool = fmt.Sprintf("pool%d", i%x.pools)
				return s
			}
			c, running, id := busyPools(b, x.pools, x.nodes, 10_000, shape)
			now := sched.Instant(2 * time.Hour)
			var took []time.Duration
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				id++
				now += sched.Instant(time.Second)
				done := running[0]
				running = running[1:]
				spec := shape(int(id))
				begun := threadTime(b)
				list := c.Step(now, sched.Released{Job: done}, sched.Submitted{Job: id, Spec: spec, At: now})
				took = append(took, threadTime(b)-begun)
				for _, d := range list {
					if s, ok := d.(sched.Start); ok {
						running = append(running, s.Job)
					}
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}

// BenchmarkExpectedStart is an estimate for a pool that is full, of the fleets of BenchmarkPools.
func BenchmarkExpectedStart(b *testing.B) {
	for _, x := range []struct{ pools, nodes int }{{1, 10_000}, {20, 500}} {
		b.Run(fmt.Sprintf("%dx%d", x.pools, x.nodes), func(b *testing.B) {
			next := mixed()
			shape := func(i int) *job.Spec {
				s := next(i)
				s.Pool = fmt.Sprintf("pool%d", i%x.pools)
				return s
			}
			c, _, _ := busyPools(b, x.pools, x.nodes, 10_000, shape)
			for i := 0; b.Loop(); i++ {
				if _, ok := c.ExpectedStart(sched.Instant(2*time.Hour), shape(i), 0, 0); !ok {
					b.Fatal("never")
				}
			}
		})
	}
}
