package sched_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// BenchmarkParts measures one step in a fleet that is full of parts of devices: a job
// ends and one arrives, which is placed. Nobody waits.
func BenchmarkParts(b *testing.B) {
	for _, nodes := range []int{1000} {
		for _, placement := range []string{account.PlaceTight, account.PlaceLearned} {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, placement), func(b *testing.B) { parts(b, nodes, placement) })
		}
	}
}

func parts(b *testing.B, nodes int, placement string) {
	r := rand.New(rand.NewSource(1))
	c := sched.New(sched.Config{})
	events := []sched.Event{sched.PolicySet{Policy: &account.Policy{Placement: placement}}}
	for i := range nodes {
		events = append(events, sched.NodeSet{Node: gpuNode(i)})
	}
	c.Step(1, events...)
	var specs []*job.Spec
	for _, milli := range []resource.Share{100, 200, 250, 300, 500, 600, 750, 1000, 1000, 1000} {
		for _, cpus := range []int{2, 4, 8} {
			g := job.TaskGroup{Tasks: job.Count{Want: 1}}
			g.PerTask.CPU = resource.CPUs(cpus)
			g.PerTask.Devices = []resource.DeviceRequest{{Count: 1, Share: milli}}
			specs = append(specs, &job.Spec{Groups: []job.TaskGroup{g}})
		}
	}
	now, next := sched.Instant(1), job.ID(0)
	var running []job.ID
	arrive := func(events ...sched.Event) {
		now++
		next++
		id := next
		if _, ok := started(c.Step(now, append(events, sched.Submitted{Job: id, Spec: specs[r.Intn(len(specs))], At: now})...), id); ok {
			running = append(running, id)
			return
		}
		c.Step(now, sched.Withdrawn{Job: id})
	}
	for len(running) < 10*nodes {
		arrive()
	}
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		i := r.Intn(len(running))
		id := running[i]
		running = slices.Delete(running, i, i+1)
		from := time.Now()
		arrive(sched.Released{Job: id})
		took = append(took, time.Since(from))
	}
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Nanoseconds()) / 1000 }
	b.ReportMetric(at(0.5), "p50-us")
	b.ReportMetric(at(0.99), "p99-us")
	b.ReportMetric(at(0.999), "p99.9-us")
}
