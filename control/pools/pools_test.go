package pools_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/store"
)

var errDown = errors.New("it is down")

// set is a set of pools that cannot be opened.
func set(t *testing.T, live []ledger.Allocation, names ...string) *pools.Set {
	t.Helper()
	var list []pools.Pool
	for _, n := range names {
		list = append(list, pools.NewUnopened(state.PoolSpec{Name: n, Engine: "slurm"}, errDown))
	}
	ps, err := pools.NewSet(list, nil, live, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ps.Close)
	return ps
}

func TestAReplacedPoolKeepsItsPlace(t *testing.T) {
	ps := set(t, nil, "a", "b", "c")
	other := ps.Make(pools.NewUnopened(state.PoolSpec{Name: "b"}, errDown))
	ps.Add(other)
	if all := ps.AllPools(); len(all) != 3 || all[1] != other || ps.ByName("b") != other {
		t.Error("the pool that replaces b is not in its place")
	}
	if ps.RemovePool("a"); ps.ByName("a") != nil || ps.NameOf(&job.Spec{}) != "b" {
		t.Errorf("without a, jobs that name no pool go to %s", ps.NameOf(&job.Spec{}))
	}
}

func TestTwoPoolsOfOneNameAreRefused(t *testing.T) {
	p := pools.NewUnopened(state.PoolSpec{Name: "a"}, errDown)
	if _, err := pools.NewSet([]pools.Pool{p}, []pools.Pool{p}, nil, slog.New(slog.DiscardHandler), nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
}

// A pool that is not configured any more is in the set for what the ledger holds there, and for
// nothing else.
func TestAHeldPoolStays(t *testing.T) {
	ps := set(t, []ledger.Allocation{{ID: 1, Job: 1, Attempt: 1, Pool: "old"}}, "a")
	if p := ps.ByName("old"); p == nil || !p.IsUnconfigured() || ps.IsNameTaken("old") || !ps.IsGone("old") {
		t.Error("the pool of the allocation is not there, or is more than a place for it")
	}
	if got := ps.ConfiguredNames(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("configured: %v", got)
	}
	if _, err := ps.ForJob(&job.Spec{Pool: "old"}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a job for it: %v", err)
	}
	if _, err := ps.ForJob(&job.Spec{Pool: "never"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a job for a pool that never was: %v", err)
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "a-1.b": true, "": false, "-a": false, ".a": false, "A": false, "a b": false} {
		if err := pools.CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestSharedMachines: of another pool by its record, or by its report where there is no record yet.
func TestSharedMachines(t *testing.T) {
	st := state.New()
	st.OnMachines = state.NewNodesByMachine([]fleet.Node{{Pool: "a", Name: "n1"}, {Pool: "a", Name: "n2"}, {Pool: "a", Name: "big", Hosts: []string{"h7"}}, {Pool: "q", Name: "n9"}})
	owns := state.OwnersSet{Owners: []fleet.MachineOwner{{Machine: "n2", Pool: "q", Epoch: 1}, {Machine: "n3", Pool: "b", Epoch: 1}}}
	if err := st.Apply(store.Record{Seq: 1, Kind: state.KindOwner, Data: state.MustJSON(owns)}, nil); err != nil {
		t.Fatal(err)
	}
	found := pools.SharedMachines("q", st, []fleet.Node{
		{Name: "n1"}, {Name: "n2"}, {Name: "n3"}, {Name: "n9"}, {Name: "virtual", Hosts: []string{"h7"}},
	})
	if len(found) != 1 || found[0].State != engine.Warning || !strings.HasPrefix(found[0].Text, "n[1,3],virtual: on h7,n1 of pool a, n3 of pool b; ") {
		t.Errorf("%+v", found)
	}
	found = pools.SharedMachines("q", st, []fleet.Node{{Name: "n1"}, {Name: "ip-1", Hosts: []string{"h7", "ip-1"}}})
	if len(found) != 2 || found[1].Text != "nodes on several machines cannot be handed over: ip-1 on h7 and ip-1" { // two names of a Kubernetes node
		t.Errorf("of a node with two names: %+v", found)
	}
	if found := pools.SharedMachines("q", st, []fleet.Node{{Name: "n2"}, {Name: "n9"}}); found != nil {
		t.Errorf("its own: %+v", found)
	}
}

// An engine that lives and fails is asked again after its heartbeats, less and less often.
func TestHeartbeats(t *testing.T) {
	down := fault.New(fault.Unavailable, "no answer")
	var s pools.EngineStatus
	now := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	fail := func() { s.NoteAsked(now); s.NoteAnswer(now, engine.Info{}, down) }
	beat := func(err error) bool { s.NoteHeartbeatAsked(now); return s.NoteHeartbeat(now, err) }
	if fail(); beat(nil) {
		t.Error("it is asked again at the instant at which it failed")
	}
	for _, wait := range []time.Duration{1, 2, 4} { // intervals until it is asked again
		now = now.Add(wait*pools.HeartbeatInterval - time.Second)
		if beat(nil) {
			t.Errorf("it is asked again before %d intervals", wait)
		}
		if now = now.Add(time.Second); !beat(nil) {
			t.Errorf("it is not asked again after %d intervals", wait)
		}
		fail()
	}
	beat(down)
	var v pools.View
	if s.FillView(&v); !v.Quiet.Equal(now) || v.Hush == nil || v.Failed == nil {
		t.Errorf("%+v", v)
	}
	now = now.Add(pools.HeartbeatInterval)
	if !beat(nil) {
		t.Error("an engine that gave no sign of life is not asked again at once when it does")
	}
	s.NoteAsked(now)
	s.NoteAnswer(now, engine.Info{Name: "x"}, nil)
	if s.FillView(&v); !v.Quiet.IsZero() || v.Failed != nil || v.Info == nil || !v.Heard.Equal(now) {
		t.Errorf("%+v", v)
	}
}
