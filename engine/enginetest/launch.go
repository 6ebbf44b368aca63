package enginetest

import (
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

func testInfo(t *testing.T, h Harness) {
	b := startBench(t, h)
	info, err := b.e.Info(t.Context())
	if err != nil || info.Name == "" || info.Version == "" {
		t.Fatalf("info %+v, %v", info, err)
	}
	switch info.Abilities.Gang {
	case engine.GangStrict, engine.GangApproximate, engine.GangNone:
	default:
		t.Errorf("gang ability %q", info.Abilities.Gang)
	}
	if info.Abilities.Placed == info.Abilities.Delegated {
		t.Errorf("either we place or the engine does: %+v", info.Abilities)
	}
	// An ability that is missing shows before it is used.
	if _, can := b.e.(engine.Suspender); info.Abilities.Suspend && !can {
		t.Error("it says that it can suspend, and is no Suspender")
	}
	nodes, err := b.e.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, n := range nodes {
		if n.Name == "" || names[n.Name] {
			t.Errorf("node %q is there twice or has no name", n.Name)
		}
		names[n.Name] = true
	}
}

func testLaunch(t *testing.T, h Harness) {
	h.run(t, "Twice", func(t *testing.T) {
		b := startBench(t, h)
		l := b.planLaunch(1, 2, Program{Run: Forever})
		b.mustLaunch(l)
		b.mustLaunch(l)
		b.awaitRunning(l.Ref)
		again := *l
		j := *l.Job
		j.Flags |= job.Configuring // what changes in a job while it waits makes no other launch
		again.Job = &j
		b.mustLaunch(&again)
		b.mustStop(l.Ref, engine.Stop{})
		b.awaitGone(l.Ref)
		b.mustLaunch(l) // after its end too
		if all, err := b.e.List(t.Context()); err != nil || len(all) != 1 || !all[0].Gone {
			t.Errorf("list %+v, %v", all, err)
		}
	})
	h.run(t, "Another", func(t *testing.T) {
		b := startBench(t, h)
		l := b.planLaunch(1, 2, Program{Run: Forever})
		b.mustLaunch(l)
		other := *l
		if other.Claims = l.Claims[:1]; h.Delegated {
			other.Claims = []fleet.Claim{{Node: "@all", Tasks: 1}}
		}
		checkKind(t, b.e.Launch(t.Context(), &other), fault.Conflict)
		other = *l
		other.Script = b.Script(Program{Exit: 1})
		checkKind(t, b.e.Launch(t.Context(), &other), fault.Conflict)
		b.awaitRunning(l.Ref) // the first one is not disturbed
	})
	h.run(t, "Refused", func(t *testing.T) {
		b := startBench(t, h)
		nothing := b.planLaunch(1, 1, Program{})
		nothing.Claims = nil
		all := []*engine.Launch{nothing}
		if !h.Delegated {
			nowhere := b.planLaunch(1, 1, Program{})
			nowhere.Claims = []fleet.Claim{{Node: "no-such-node", Tasks: 1}}
			all = append(all, nowhere)
		}
		for _, l := range all {
			err := b.e.Launch(t.Context(), l)
			if l == nothing || fault.KindOf(err) != fault.Exhausted { // an engine may take it for a node that has just left
				checkKind(t, err, fault.Invalid)
			}
			_, err = b.e.Inspect(t.Context(), l.Ref)
			checkKind(t, err, fault.NotFound) // a refusal leaves nothing
		}
	})
	h.run(t, "NextAttempt", func(t *testing.T) {
		b := startBench(t, h)
		l := b.planLaunch(1, 1, Program{Run: Forever})
		b.mustLaunch(l)
		b.awaitRunning(l.Ref)
		next := b.planLaunch(1, 1, Program{Run: Forever})
		next.Ref.Attempt = 2
		b.mustLaunch(next)
		b.awaitRunning(next.Ref)
		b.mustStop(l.Ref, engine.Stop{})
		b.awaitGone(l.Ref)
		if r, err := b.e.Inspect(t.Context(), next.Ref); err != nil || r.Phase != engine.Running {
			t.Errorf("attempt 2 after the end of attempt 1: %s, %v", describeReport(r), err)
		}
	})
}

// testAvoid is what holds for drivers whose own scheduler chooses: it keeps an attempt off nodes that its launch
// names, and a launch that is repeated with others is the same.
func testAvoid(t *testing.T, h Harness) {
	if !h.Delegated {
		t.Skip("nobody but the caller chooses nodes")
	}
	b := startBench(t, h)
	l := b.planLaunch(1, 1, Program{Run: Forever})
	nodes, err := b.e.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[1:] {
		l.Avoid = append(l.Avoid, n.Name)
	}
	b.mustLaunch(l)
	again := *l
	again.Avoid = nil
	b.mustLaunch(&again)
	if n := b.nodeOf(l.Ref, 0); n != nodes[0].Name {
		t.Errorf("it runs on %s, and all but %s were to be avoided", n, nodes[0].Name)
	}
	b.mustStop(l.Ref, engine.Stop{})
	b.awaitGone(l.Ref)
}
