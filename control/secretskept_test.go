package control_test

import (
	"context"
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// taker is an engine that hands secrets over and refuses jobs that are given none.
type taker struct{ *hand }

func (taker) TakesSecrets() bool { return true }

func (taker) Admit(_ context.Context, d *engine.JobDraft) error {
	if !slices.ContainsFunc(d.Spec.Secrets, func(s job.Secret) bool { return s.Name == "db.password" }) {
		return fault.New(fault.Invalid, "the job is given no value")
	}
	return nil
}

// TestSecretsAboutToBeKept: an estimate of a job takes secrets that are kept with its submission as kept, and
// the engine sees them in the specification.
func TestSecretsAboutToBeKept(t *testing.T) {
	h := newHand(1, 8)
	b := openFor(t, taker{h}, h, control.Config{Secret: func(uint32, *job.Secret) ([]byte, error) {
		return nil, fault.New(fault.NotFound, "there is no such secret")
	}})
	s := control.Submission{Spec: gang(1, 1)}
	s.Spec.Secrets = []job.Secret{{Name: "db.password", File: "db.password"}}
	if _, err := b.ctl.Estimate(t.Context(), s); fault.KindOf(err) != fault.NotFound {
		t.Errorf("not kept: %v", err)
	}
	s.Keeping = map[string][]byte{"db.password": []byte("hunter2")}
	if _, err := b.ctl.Estimate(t.Context(), s); err != nil {
		t.Error(err)
	}
	s.Spec.Pool = "p"
	if _, err := b.ctl.Fits(t.Context(), s); err != nil {
		t.Error(err)
	}
	if _, err := b.ctl.Submit(t.Context(), s); fault.KindOf(err) != fault.NotFound {
		t.Errorf("submitted: %v", err)
	}
}
