package site

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// Accountant is an optional ability of a Site: what jobs used, by the cluster's accounting.
type Accountant interface {
	// Used says what accounting has of jobs, by number. Jobs that it has not, or that have not
	// ended there yet, are left out. fault.Unsupported: there is no accounting, or it cannot be
	// asked.
	Used(ctx context.Context, ids []uint32) ([]JobUse, error)
}

// Sampler is an optional ability of a Site: what the steps of running jobs have used so far.
type Sampler interface {
	// UsedNow says it of jobs that run, by number, of all in one question. A step that has ended is left out, and so
	// are jobs without a step that runs. Memory is what is in use now. fault.Unsupported: the cluster does not measure.
	UsedNow(ctx context.Context, ids []uint32) ([]JobUse, error)
}

// JobUse is what the steps of a job used.
type JobUse struct {
	ID        uint32
	Submitted time.Time
	Steps     []StepUse
}

// StepUse is what one step used. Its number is engine.BatchStep, engine.ExternStep or Slurm's.
type StepUse struct {
	rusage.Step
	Name           string
	Nodes          []string
	Started, Ended time.Time
	Exit           job.ExitCode
}
