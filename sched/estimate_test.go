package sched_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// forPool is a specification for a pool.
func forPool(pool string, s *job.Spec) *job.Spec {
	s.Pool = pool
	return s
}

// TestExpectedStartByPool: what a pool is expected to do with a job depends on what runs and waits in that
// pool alone.
//
// Seen to fail with: the jobs that wait in other pools counted, and those that wait not counted.
func TestExpectedStartByPool(t *testing.T) {
	c := sched.New(sched.Config{})
	var events []sched.Event
	for _, pool := range []string{"busy", "idle", "long"} {
		n := node(pool+"1", 8)
		n.Pool = pool
		events = append(events, sched.NodeSet{Node: n})
	}
	id := job.ID(0)
	submit := func(pool string, limit time.Duration, gpus int) {
		id++
		events = append(events, sched.Submitted{Job: id, Spec: forPool(pool, gang(1, 1, gpus, limit)), At: sched.Instant(id)})
	}
	submit("busy", time.Hour, 8)   // 1, runs
	submit("busy", 2*time.Hour, 8) // 2 and 3 wait
	submit("busy", 2*time.Hour, 8)
	submit("long", 5*time.Hour, 4)  // runs
	submit("long", 10*time.Hour, 8) // waits for all of it
	now := sched.Instant(time.Hour)
	c.Step(now, events...)
	hours := func(h float64) sched.Instant { return now + sched.Instant(h*float64(time.Hour)) }
	for _, x := range []struct {
		pool  string
		gpus  int
		limit time.Duration
		id    job.ID
		want  sched.Instant
	}{
		{"idle", 8, time.Hour, 0, now},
		{"busy", 8, time.Hour, 0, hours(1 + 4)},
		{"busy", 8, time.Hour, 2, hours(1)},
		{"busy", 8, time.Hour, 3, hours(1 + 2)},
		{"long", 8, time.Hour, 0, hours(5 + 10)},
	} {
		at, ok := c.ExpectedStart(now, forPool(x.pool, gang(1, 1, x.gpus, x.limit)), 0, x.id)
		if !ok || at != x.want {
			t.Errorf("%d GPUs in %s (job %d): after %s (%v), want %s", x.gpus, x.pool, x.id, time.Duration(at-now), ok, time.Duration(x.want-now))
		}
	}
	if at, ok := c.ExpectedStart(now, forPool("idle", gang(1, 1, 9, time.Hour)), 0, 0); ok {
		t.Errorf("what never fits is expected at %d", at)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
