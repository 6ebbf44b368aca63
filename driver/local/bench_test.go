package local_test

import (
	"errors"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// BenchmarkGang is the time from the launch of a gang of 4 nodes until its script
// runs, and until nothing of it lives.
func BenchmarkGang(b *testing.B) {
	naming, _ := local.FindNaming(b.Context(), "")
	root := b.TempDir()
	nodes := local.VirtualRoom(local.RoomConfig{Naming: naming, Seed: root}, four())
	e, err := local.New(local.Config{Root: root, Nodes: nodes, Naming: naming})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	reached := errors.New("reached")
	wait := func(ref engine.Ref, is func(engine.Report) bool) {
		err := e.Watch(b.Context(), "", func(ev engine.Event) error {
			if ev.Report.Ref == ref && is(ev.Report) {
				return reached
			}
			return nil
		})
		if !errors.Is(err, reached) {
			b.Fatal(err)
		}
	}
	var toStart, n time.Duration
	dir := b.TempDir()
	for b.Loop() {
		n++
		l := &engine.Launch{
			Ref:    engine.Ref{Allocation: uint64(n), Attempt: 1},
			Job:    &job.Job{ID: 1, Spec: &job.Spec{WorkDir: dir, Groups: []job.TaskGroup{{}}, Program: job.Program{Kind: job.Batch}}},
			Script: []byte("#!/bin/sh\n"), Grace: time.Second,
		}
		for _, node := range nodes {
			l.Claims = append(l.Claims, fleet.Claim{Node: node.Name, Tasks: 1})
		}
		began := time.Now()
		if err := e.Launch(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		wait(l.Ref, func(r engine.Report) bool { return len(r.Tasks) > 0 })
		toStart += time.Since(began)
		wait(l.Ref, gone)
		if err := e.Forget(b.Context(), l.Ref); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(toStart.Microseconds())/float64(n)/1000, "ms-to-start")
}
