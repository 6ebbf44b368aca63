package site

import (
	"context"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Stepper is an optional ability of a Site: steps of running jobs, by the cluster's srun.
type Stepper interface {
	// Step runs a step and returns its exit code once it has ended. It ends with ctx, whose error
	// is then returned. fault.Unsupported: this way in has no srun.
	Step(ctx context.Context, s *Step) (job.ExitCode, error)
}

// Step is a step as srun takes it.
type Step struct {
	Job     uint32
	User    string             // as whom; empty: whoever asks
	Name    string             // by which the step is found again; empty: Words have another
	Words   []string           // of srun, beyond the job and the name
	Env     []string           // NAME=VALUE, for srun
	Streams engine.ExecRequest // the streams or the terminal alone
}
