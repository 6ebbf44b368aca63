package control_test

import (
	"context"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/store"
)

// porter is a hand that has a rule.
type porter struct{ *hand }

func (porter) Admit(_ context.Context, spec *job.Spec) error {
	if spec.QOS == "" {
		return nil
	}
	return fault.New(fault.Invalid, "there is no QOS %s", spec.QOS).Advise("another --qos")
}

// TestTheEnginesRulesHoldAtTheDoor: what the engine of its pool never runs is refused with
// the rule, and nothing of it is kept.
//
// Seen to fail with: a control plane that does not ask.
func TestTheEnginesRulesHoldAtTheDoor(t *testing.T) {
	p := porter{newHand(1, 8)}
	b := &bench{t: t, hand: p.hand, store: new(store.Memory)}
	b.cfg = control.Config{Store: b.store, Pools: onHand(p)}
	b.open()
	defer b.close()
	bad := gang(1, 8)
	bad.QOS = "hgh"
	_, err := b.ctl.Submit(t.Context(), control.Submission{Spec: bad})
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "no QOS hgh") || fault.Remedy(err) != "another --qos" {
		t.Errorf("%v (%s)", err, fault.Remedy(err))
	}
	if id := b.submit(gang(1, 8)); id != 1 {
		t.Errorf("the next job is %d", id)
	}
}
