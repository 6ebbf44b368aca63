package control_test

import (
	"context"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// porter is a hand that has a rule.
type porter struct{ *hand }

func (porter) Admit(_ context.Context, d *engine.JobDraft) error {
	if d.Spec.QOS == "" {
		return nil
	}
	return fault.New(fault.Invalid, "there is no QOS %s", d.Spec.QOS).Advise("another --qos")
}

// TestTheEnginesRulesHoldAtTheDoor: what the engine of its pool never runs is refused with
// the rule, and nothing of it is kept.
func TestTheEnginesRulesHoldAtTheDoor(t *testing.T) {
	p := porter{newHand(1, 8)}
	b := openFor(t, p, p.hand, control.Config{})
	bad := gang(1, 8)
	bad.QOS = "hgh"
	_, err := b.ctl.Submit(t.Context(), control.Submission{Spec: bad})
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "no QOS hgh") || fault.Remedy(err) != "another --qos" {
		t.Errorf("%v (%s)", err, fault.Remedy(err))
	}
	if _, err := b.ctl.Estimate(t.Context(), control.Submission{Spec: bad}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an estimate: %v", err)
	}
	id := b.submit(gang(1, 8))
	if id != 1 {
		t.Errorf("the next job is %d", id)
	}
	held := gang(1, 8)
	held.Held = true
	id = b.submit(held)
	qos := "hgh"
	if errs, err := b.ctl.Change(t.Context(), job.Actor{}, []job.ID{id}, control.Update{QOS: &qos}); err != nil || fault.KindOf(errs[0]) != fault.Invalid || !strings.Contains(errs[0].Error(), "no QOS hgh") {
		t.Errorf("an update: %v, %v", errs, err)
	}
	if v, err := b.ctl.Job(t.Context(), id); err != nil || v.Job.Spec.QOS != "" {
		t.Errorf("after a refused update: %+v, %v", v, err)
	}
	nice := int64(3)
	if errs, err := b.ctl.Change(t.Context(), job.Actor{}, []job.ID{id}, control.Update{Nice: &nice}); err != nil || errs[0] != nil {
		t.Errorf("%v, %v", errs, err)
	}
}
