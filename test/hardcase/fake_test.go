package hardcase

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/store"
)

// cluster is a control plane over the fake engine: for what takes more nodes or jobs
// than one machine has.
type cluster struct {
	*control.Control
	t     *testing.T
	world *fake.World
}

func newCluster(t *testing.T, n int, script func(*engine.Launch) fake.Outcome) *cluster {
	t.Helper()
	var room []fleet.Node
	for i := range n {
		room = append(room, fleet.Node{
			Name: fmt.Sprintf("n%03d", i), Pool: "p", State: fleet.Up,
			Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 512 * resource.GiB},
		})
	}
	c := &cluster{t: t, world: fake.NewWorld(fake.Config{Now: time.Now, Nodes: room, Script: script})}
	e := c.world.Open()
	var err error
	if c.Control, err = control.Open(t.Context(), control.Config{Store: new(store.Memory), Pools: []pools.Pool{{Pool: fleet.Pool{Name: "p"}, Engine: e}}, Who: t.Name(), Keep: -1}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ticks := make(chan struct{})
	go func() { // the engine's time passes
		defer close(ticks)
		c.world.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ticks
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		e.Close()
	})
	return c
}

func (c *cluster) submit(s *job.Spec) job.ID {
	c.t.Helper()
	s.Program = job.Program{Kind: job.Direct, Args: []string{"true"}}
	got, err := c.Submit(c.t.Context(), control.Submission{Spec: s, By: job.Actor{Name: "me"}})
	if err != nil {
		c.t.Fatal(err)
	}
	return got.ID
}

// until follows the events until one satisfies is, and returns all up to it.
func (c *cluster) until(after uint64, what string, is func(state.Event) bool) (seen []state.Event) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
	defer cancel()
	for {
		evs, last, gap, err := c.Events(ctx, after)
		if err != nil || gap {
			c.t.Fatalf("in vain: %s (%v, gap %t)", what, err, gap)
		}
		for i, e := range evs {
			if is(e) {
				return append(seen, evs[:i+1]...)
			}
		}
		seen, after = append(seen, evs...), last
	}
}

// wide is a gang with a task on each of n nodes, which it has for itself.
func wide(n int) *job.Spec {
	return &job.Spec{Name: "wide", Groups: []job.TaskGroup{{
		Nodes: job.Range{Min: n, Max: n}, Tasks: job.Count{Want: n}, TasksPerNode: 1,
		PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(8)}},
	}}}
}

// An array of 30,000 tasks on nodes of which a third disappears while they run: every
// task that was lost comes back exactly once, no other does. (On the fake engine: one
// machine has not that many processes to lose.)
func TestHardCase_9_lostTasks(t *testing.T) {
	const tasks = 30_000
	gone := func(node string) bool { return (node[3]-'0')%3 == 0 }
	c := newCluster(t, 30, func(l *engine.Launch) fake.Outcome {
		if node := l.Claims[0].Node; l.Ref.Attempt == 1 && gone(node) {
			return fake.Outcome{Run: fake.Never, LoseNode: node}
		}
		return fake.Outcome{}
	})
	spec := &job.Spec{Name: "sweep", Requeue: true, Array: &job.ArraySpec{}, Groups: []job.TaskGroup{{
		Tasks: job.Count{Want: 1}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(1)}},
	}}}
	for i := range uint32(tasks) {
		spec.Array.Indices = append(spec.Array.Indices, i)
	}
	c.submit(spec)
	ended := 0
	seen := c.until(0, "every task ends", func(e state.Event) bool {
		if e.Kind == state.EventEnded {
			ended++
		}
		return ended == tasks
	})

	begun, lost, done := map[job.ID]int{}, map[job.ID]int{}, map[job.ID]int{}
	for _, e := range seen {
		switch e.Kind {
		case state.EventAllocated:
			begun[e.Job]++
		case state.EventRequeued:
			lost[e.Job]++
		case state.EventEnded:
			done[e.Job]++
			if e.State != "COMPLETED" {
				t.Errorf("task %s is %s", e.Name, e.State)
			}
		}
	}
	for id := job.ID(1); id <= tasks; id++ {
		if lost[id] > 1 || begun[id] != 1+lost[id] || done[id] != 1 {
			t.Fatalf("task %d began %d times, was lost %d times and ended %d times", id, begun[id], lost[id], done[id])
		}
	}
	if len(lost) < tasks/10 {
		t.Errorf("only %d tasks were lost", len(lost))
	}
	if err := c.Check(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("%d of %d tasks were lost and came back", len(lost), tasks)
}

// Two gangs of 100 nodes, 100 nodes, submitted at the same moment: one has all of them,
// then the other; no event of one falls between the beginning and the end of the other.
// (On the fake engine; with 12 nodes and real processes in TestHardCase_20_twoGangs.)
func TestHardCase_20_hundredNodes(t *testing.T) {
	c := newCluster(t, 100, func(*engine.Launch) fake.Outcome {
		return fake.Outcome{Ready: 5 * time.Millisecond, Run: 5 * time.Millisecond}
	})
	both := make(chan error, 2)
	for range 2 {
		go func() {
			s := wide(100)
			s.Program = job.Program{Kind: job.Direct, Args: []string{"true"}}
			_, err := c.Submit(t.Context(), control.Submission{Spec: s})
			both <- err
		}()
	}
	for range 2 {
		if err := <-both; err != nil {
			t.Fatal(err)
		}
	}
	ended := 0
	var order []string
	c.until(0, "both end", func(e state.Event) bool {
		switch e.Kind {
		case state.EventAllocated:
			order = append(order, "begins")
			if len(e.Nodes) != 100 {
				t.Errorf("a gang has %d nodes", len(e.Nodes))
			}
		case state.EventEnded:
			order = append(order, "ends")
			ended++
		}
		return ended == 2
	})
	if !slices.Equal(order, []string{"begins", "ends", "begins", "ends"}) {
		t.Errorf("%q", order)
	}
}

// The node of a job falls silent for good: the job's claim becomes uncertain, with an
// event that says so, and stays: cancelling does not free it, nothing else gets the node,
// and with the proof it is free. (On the fake engine: a machine that is silent but on is
// not to be had on one machine; a supervisor that is, is in TestHardCase_15_noAgent.)
func TestHardCase_15_silentNode(t *testing.T) {
	c := newCluster(t, 1, func(l *engine.Launch) fake.Outcome {
		if l.Job.ID > 1 {
			return fake.Outcome{}
		}
		return fake.Outcome{Run: fake.Never, LoseNode: "n000", Silent: true}
	})
	lost := c.submit(wide(1))
	next := c.submit(wide(1))
	seen := c.until(0, "the alarm", func(e state.Event) bool { return e.Kind == state.EventUncertain })
	if alarm := seen[len(seen)-1]; alarm.Job != lost || alarm.Message != "no word from n000" {
		t.Errorf("the alarm says %+v", alarm)
	}
	if _, err := c.Change(t.Context(), job.Actor{Name: "me"}, []job.ID{lost}, control.Cancel{}); err != nil {
		t.Fatal(err)
	}
	c.until(0, "the cancel is known", func(e state.Event) bool { return e.Kind == state.EventCancelled })
	views, err := c.NodeViews(t.Context())
	if err != nil || !slices.Equal(views[0].Jobs, []job.ID{lost}) {
		t.Errorf("the node is held by %v, %v", views[0].Jobs, err)
	}
	if v, err := c.Job(t.Context(), next); err != nil || v.Job.State != job.Pending {
		t.Errorf("the next job is %s, %v", v.Job.State, err)
	}
	c.world.Release(engine.Ref{Allocation: 1, Attempt: 1})
	c.until(0, "the next job ends", func(e state.Event) bool { return e.Kind == state.EventEnded && e.Job == next })
	if v, err := c.Job(t.Context(), lost); err != nil || v.Job.State != job.Cancelled {
		t.Errorf("the lost job is %s, %v", v.Job.State, err)
	}
}
