// Package eligible says whether a pending job may be considered at all, before
// anybody looks for room: holds, begin times, limits of running array tasks.
//
// It is pure. Dependencies between jobs are not built yet: front ends refuse them.
package eligible

import (
	"time"

	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/reason"
)

// Facts are what a job alone does not know.
type Facts struct {
	Now          time.Time
	ArrayRunning int // tasks of the job's array that hold an allocation
}

// Check returns why a pending job may not be considered, with Code reason.None if
// it may.
func Check(j *job.Job, f Facts) reason.Reason {
	switch {
	case j.Flags&job.LaunchFailed != 0 && j.Flags&job.Held != 0:
		return reason.Reason{Code: reason.HeldAdmin}
	case j.Flags&job.Held != 0:
		return reason.Reason{Code: reason.HeldUser}
	case j.Spec.Begin.After(f.Now):
		return reason.Reason{Code: reason.BeginTime, Until: j.Spec.Begin.Unix()}
	case j.Array != nil && j.Array.MaxRunning > 0 && f.ArrayRunning >= int(j.Array.MaxRunning):
		return reason.Reason{Code: reason.ArrayLimit, Need: int64(j.Array.MaxRunning)}
	}
	return reason.Reason{}
}
