package local

import (
	"context"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ engine.Validator = (*Engine)(nil)

// Admit is engine.Validator's: what is asked of pods is refused, since there are none.
func (e *Engine) Admit(_ context.Context, d *engine.JobDraft) error {
	if err := e.checkUpload(d.Spec); err != nil {
		return err
	}
	if err := e.admitContainer(d.Spec); err != nil {
		return err
	}
	if d.Spec.Pod == nil {
		return nil
	}
	return engine.About(fault.New(fault.Unsupported, "kubernetes (or --pods) asks something of pods, and jobs of this pool run in none").
		Advise("leave it out, or name a pool of Kubernetes"), "kubernetes")
}
