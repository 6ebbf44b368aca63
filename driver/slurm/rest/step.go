package rest

import (
	"context"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

var _ site.Stepper = (*Site)(nil)

// Step is site.Stepper's: slurmrestd starts no steps, so commands do it.
func (s *Site) Step(ctx context.Context, j *site.Step) (job.ExitCode, error) {
	by, ok := s.cfg.Commands.(site.Stepper)
	if !ok {
		return job.ExitCode{}, fault.New(fault.Unsupported, "slurmrestd starts no steps in jobs").Advise("give the pool Slurm's commands too: --local or --ssh beside --rest")
	}
	return by.Step(ctx, j)
}
