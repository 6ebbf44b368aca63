package jobs

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestPoolMoves: how often a job may move still is told while it waits, and from when on after a move. A document
// of an earlier version has no pools.
//
// Seen to fail with: the bounds of a job that runs.
func TestPoolMoves(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	v := &state.View{Job: job.Job{State: job.Pending}}
	if m := poolMoves(v); m != nil {
		t.Errorf("of one that did not move: %+v", m)
	}
	v.PoolMoves = state.PoolMoves{Count: 1, At: at.UnixNano(), Under: &state.PoolMove{From: "k", To: "c", Why: "x"}}
	if m := poolMoves(v); m.Left != 2 || !m.Next.Equal(at.Add(time.Hour)) || !m.Last.At.Equal(at) || m.Last.From != "" || m.Under.From != "k" || m.Under.To != "c" {
		t.Errorf("%+v, last %+v, under %+v", m, m.Last, m.Under)
	}
	v.PoolMoves = state.PoolMoves{Count: 3, At: at.UnixNano(), From: "b", To: "k", Why: "y"}
	if m := poolMoves(v); m.Left != 0 || !m.Next.IsZero() || m.Last.From != "b" || m.Last.To != "k" || m.Last.Why != "y" {
		t.Errorf("%+v, last %+v", m, m.Last)
	}
	v.PoolMoves.Count, v.Job.State = 1, job.Running
	if m := poolMoves(v); m.Left != 0 || !m.Next.IsZero() {
		t.Errorf("of one that runs: %+v", m)
	}
}

// TestSelectByPool: a job is of the pool that runs it, one that waits of that in which it waits, which may be another
// one than that of its last attempt; those that name none wait in the server's own.
//
// Seen to fail with: the pool of the last attempt of one that moved.
func TestSelectByPool(t *testing.T) {
	views := func() []pools.View {
		return []pools.View{{Pool: fleet.Pool{Name: "local"}, Default: true}, {Pool: fleet.Pool{Name: "b"}}}
	}
	for name, c := range map[string]struct {
		view state.View
		want string
	}{
		"waits, and names none":            {state.View{Job: job.Job{State: job.Pending, Spec: &job.Spec{}}}, "local"},
		"waits":                            {state.View{Job: job.Job{State: job.Pending, Spec: &job.Spec{Pool: "b"}}}, "b"},
		"was taken back from b, and moved": {state.View{Job: job.Job{State: job.Pending, Spec: &job.Spec{}}, Pool: "b"}, "local"},
		"waits in b's own scheduler":       {state.View{Job: job.Job{State: job.Pending, Spec: &job.Spec{Pool: "b"}}, Pool: "b", Ref: engine.Ref{Allocation: 1, Attempt: 1}}, "b"},
		"runs":                             {state.View{Job: job.Job{State: job.Running, Spec: &job.Spec{}}, Pool: "b"}, "b"},
	} {
		for _, pool := range []string{"local", "b"} {
			s, err := selectJobs(api.Select{Pools: []string{pool}}, views)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.matchesView(&c.view); got != (pool == c.want) {
				t.Errorf("one that %s is of pool %s: %v", name, pool, got)
			}
		}
	}
	if _, err := selectJobs(api.Select{Pools: []string{"nix"}}, views); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a pool that there is not: %v", err)
	}
}
