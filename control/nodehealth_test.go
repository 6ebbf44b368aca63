package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// fenced is the health of n1 in an epoch, with fences for devices; -1 is the node.
func fenced(epoch uint64, devices ...int) state.NodeHealth {
	h := state.NodeHealth{Pool: "p", Node: "n1", Epoch: epoch, Text: "seen"}
	for _, d := range devices {
		f := fleet.HealthFence{Check: "devices", Evidence: "it fell off the bus", At: time.Unix(5, 0).UTC()}
		if d >= 0 {
			f.Device = &d
		}
		h.Fences = append(h.Fences, f)
	}
	return h
}

// A device that is fenced is given to nobody, what runs on it goes on, and the other devices are used. A
// restart forgets no fence, whether the journal has it or the projection; a drain is apart from it.
//
// Seen to fail without the fences in the projection, without Device.Fenced in the devices that can be
// used, and with a resume of the node that removes fences.
func TestFencesOfChecks(t *testing.T) {
	b := open(t, newHand(1, 4))
	by := job.Actor{Name: "health"}
	set := func(h state.NodeHealth) {
		t.Helper()
		if err := b.ctl.SetNodeHealth(t.Context(), by, h); err != nil {
			t.Fatal(err)
		}
	}
	first := b.launched(b.submit(gang(1, 1)))
	held := first.Claims[0].Devices[0].Index
	set(fenced(1, held))
	if err := b.ctl.SetNodeHealth(t.Context(), by, fenced(1)); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a late change: %v", err)
	}
	if err := b.ctl.SetNodeHealth(t.Context(), by, state.NodeHealth{Pool: "p", Node: "n9", Epoch: 1}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a node that is not there: %v", err)
	}
	b.hand.end(first, engine.Exited, 0)
	b.state(first.Job.ID, job.Completed)

	all := b.submit(gang(1, 4))
	most := b.launched(b.submit(gang(1, 3)))
	for _, d := range most.Claims[0].Devices {
		if d.Index == held {
			t.Errorf("the fenced device was given to job %d: %+v", most.Job.ID, most.Claims)
		}
	}
	b.until(all, "waiting", func(v state.View) bool { return v.Job.State == job.Pending && v.Why.Code != reason.None })
	for range 2 {
		b.reopen()
		b.waitsStill(all)
		views, err := b.ctl.NodeViews(t.Context())
		if err != nil || views[0].Node.State != fleet.Up || !strings.Contains(views[0].Node.Devices[held].Fenced, "fell off the bus") || len(views[0].Health.Fences) != 1 {
			t.Fatalf("%+v, %v", views, err)
		}
		eventually(t, "the projection is written", func() bool { s := b.ctl.Stats(); return s.Projected == s.Seq })
	}
	b.hand.end(most, engine.Exited, 0)
	b.state(most.Job.ID, job.Completed)

	set(fenced(2, -1, held))
	if err := b.ctl.SetNodes(t.Context(), by, []string{"n1"}, false, ""); err != nil {
		t.Fatal(err)
	}
	next := b.submit(gang(1, 1))
	b.until(next, "waiting", func(v state.View) bool { return v.Job.State == job.Pending && v.Why.Code != reason.None })
	if views, err := b.ctl.NodeViews(t.Context()); err != nil || views[0].Node.State != fleet.Draining || views[0].Node.Why != "check devices failed: it fell off the bus" || views[0].Drained != nil {
		t.Errorf("%+v, %v", views, err)
	}
	if list := b.ctl.Fenced(""); len(list) != 1 || list[0].Epoch != 2 {
		t.Errorf("%+v", list)
	}
	set(fenced(3))
	b.launched(all)
	if list := b.ctl.Fenced("p"); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}
