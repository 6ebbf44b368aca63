package local

import (
	"context"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

var _ engine.Validator = (*Engine)(nil)

// Admit is engine.Validator's: what is asked of pods is refused, since there are none.
func (e *Engine) Admit(_ context.Context, d *engine.JobDraft) error {
	if err := e.checkUpload(d.Spec); err != nil {
		return err
	}
	if d.Spec.Image != "" && !ofPlugin(d.Spec) {
		return engine.About(fault.New(fault.Unsupported, "image: %.100q: jobs of this pool run on the machine itself, without containers", d.Spec.Image).
			Advise("leave it out to run with the machine's own programs, or name a pool of Kubernetes"), "image")
	}
	if d.Spec.Pod == nil {
		return nil
	}
	return engine.About(fault.New(fault.Unsupported, "kubernetes (or --pods) asks something of pods, and jobs of this pool run in none").
		Advise("leave it out, or name a pool of Kubernetes"), "kubernetes")
}

// ofPlugin reports whether the job's image comes from an option of a plugin of Slurm's. A
// warning of the submission says that such a job runs without one here.
func ofPlugin(s *job.Spec) bool {
	_, given := s.Source.Given["container-image"]
	return given
}
