package jobs

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
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
