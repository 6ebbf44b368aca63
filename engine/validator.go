package engine

import (
	"context"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// JobDraft is a job that is not taken yet, or is to be changed. It is not written to.
type JobDraft struct {
	Spec   *job.Spec
	Script []byte        // of a Batch program
	Env    []string      // NAME=VALUE of the submitter; nil: it is not looked at
	Claims []fleet.Claim // where it would run; nil: it is not known
	Avoid  []string      // as Launch.Avoid
}

// Validator is an optional ability: to refuse a job before it is taken, because it cannot
// be handed to what the engine drives, or that has a rule by which it would never run it.
type Validator interface {
	// Admit returns an error, with the rule and what would mend it, of a job that could not
	// be launched in the pool as it is now, or certainly never runs there; a FieldError
	// where it is about a part of the job. What is not certain is nil, as is what cannot be
	// found out in a moment.
	Admit(ctx context.Context, d *JobDraft) error
}

// FieldError is a refusal that is about a part of a job.
type FieldError struct {
	Fields []string // options of sbatch and fields of the native form, the likeliest first
	Err    error
}

// Error is the refusal's.
func (e *FieldError) Error() string { return e.Err.Error() }

// Unwrap returns the refusal.
func (e *FieldError) Unwrap() error { return e.Err }

// About says which part of a job an error is about.
func About(err error, fields ...string) error { return &FieldError{fields, err} }

// Previewer is an optional ability: to say beforehand what the engine would hand to the
// scheduler that it drives.
type Previewer interface {
	// Preview renders a job as a launch would. Nobody is asked, and nothing is kept; what
	// Admit refuses is an error.
	Preview(d *JobDraft) (*Preview, error)
}

// Preview is a job as it would be handed over to another scheduler.
type Preview struct {
	Script  []byte
	Args    []string   // of the script
	Options [][]string // that outrank the script's, of each component of the job
	Notes   []string   // what is changed and why, and what is not known yet; a sentence each
}

// Alterer is an optional ability: to change a job that stands in the queue of the scheduler
// which the engine drives, so that it keeps its place there.
type Alterer interface {
	// Alter changes the job of an attempt that was handed over and waits. fault.Conflict: it
	// does not wait there, or not yet. fault.Unavailable: it may have been changed; the same
	// again does no harm. With any other error it is as it was.
	Alter(ctx context.Context, ref Ref, a Alteration) error
}

// Alteration is what an Alterer changes.
type Alteration struct {
	Partitions []string // one at least
}
