package engine

import (
	"context"
	"time"
)

// StartEstimator is an optional ability of a Delegator: its scheduler says when it would start a job. Of an
// attempt that waits there, its reports say it (Report.ExpectedStart).
type StartEstimator interface {
	// EstimateStart asks when the scheduler would start a job that was submitted to it now; nothing of
	// the job stays there. A zero time: it does not know. ctx bounds the question. An error says that
	// nobody knows, not that the job cannot run.
	EstimateStart(ctx context.Context, d *JobDraft) (time.Time, error)
}

// Withdrawer is an optional ability of a Delegator: it takes back an attempt that waits for its
// scheduler, and only such a one.
type Withdrawer interface {
	// Withdraw begins to end an attempt as Stop does, if it has not begun; its end is reported.
	// fault.Conflict: it has begun, and goes on. An attempt that has ended is no error.
	// fault.NotFound: the engine does not know it. fault.Unavailable: not sure yet; the same again does no harm.
	Withdraw(ctx context.Context, ref Ref) error
}
