package control

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/sched"
)

// A launch that the engine refuses ends the attempt; so does a report of its end
// that comes at the same time. Both in one batch would be a second record about an
// attempt that holds nothing any more, and no journal with it could be replayed.
func TestARefusedLaunchSharesNoBatchWithAnotherWordAboutItsJob(t *testing.T) {
	st := state.New()
	log := slog.New(slog.DiscardHandler)
	ps, err := pools.NewSet([]pools.Pool{pools.NewUnopened(state.PoolSpec{Name: "p"}, errors.New("it is down"))}, nil, nil, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ps.Close()
	l := &loop{parts: &parts{
		cfg:   Config{Clock: realClock{}, Log: log},
		pools: ps,
		state: st, core: sched.New(sched.Config{}), inbox: make(chan message),
	}}
	at := time.Unix(1, 0)
	f, o := st.Specs.UseSpec(&job.Spec{Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}}})
	alloc := ledger.Allocation{ID: 1, Job: 1, Attempt: 1, Pool: "p", Status: ledger.Held, Claims: []fleet.Claim{{Node: "n1"}}}
	for i, r := range []any{&state.AcceptedSubmission{First: 1, Shared: f, OwnDelta: o}, state.Held{Allocation: alloc}} {
		rec := state.NewRecord(at, []string{state.KindSubmitted, state.KindHeld}[i], 1, job.Actor{}, r)
		rec.Seq = uint64(i + 1)
		if err := st.Apply(rec, nil); err != nil {
			t.Fatal(err)
		}
	}
	ref := engine.Ref{Allocation: 1, Attempt: 1}
	end := engine.Report{Ref: ref, Job: 1, Phase: engine.Ended, Gone: true, Cause: engine.LaunchFailed, Version: 1}
	l.carry = []message{l.launchRefused(1, ref, errors.New("no such image"), false), l.reportMessage(l.pools.AllPools()[0], end)}
	l.takeMessages()
	if len(l.batch) != 1 || len(l.carry) != 1 {
		t.Fatalf("%d records in the batch, %d messages left; want one of each", len(l.batch), len(l.carry))
	}
}
