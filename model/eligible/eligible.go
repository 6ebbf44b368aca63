// Package eligible says whether a pending job may be considered at all, before
// anybody looks for room: holds, dependencies, begin times, the pause after a failed
// attempt, limits of running array tasks.
//
// It is pure: what became of other jobs, and what time it is, are inputs. It does
// not remember: a job that others depend on and that runs again counts as not ended
// from then on.
package eligible

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// Facts are what decides about one pending job.
type Facts struct {
	Now     time.Time
	Flags   job.Flags
	Depends Judgement // Met where it depends on nothing
	Begin   time.Time // zero: at once
	Again   time.Time // not before, after a failed attempt; zero: at once
	Failed  int       // attempts that failed in a row

	ArrayLimit int // tasks of its array that may run at once; 0: no limit
	ArrayOpen  int // other tasks of its array that run or may be started now
}

// Check returns why a pending job may not be considered, with Code reason.None if
// it may.
func Check(f Facts) reason.Reason {
	switch {
	case f.Flags&job.Held != 0:
		return HeldBy(f.Flags, f.Failed)
	case f.Depends.Verdict == Never:
		return reason.Reason{Code: reason.DependNever, Want: f.Depends.Clause}
	case f.Depends.Verdict == Waits:
		return reason.Reason{Code: reason.Dependency, Want: f.Depends.Clause, Until: unixSeconds(f.Depends.Until)}
	case f.Begin.After(f.Now):
		return reason.Reason{Code: reason.BeginTime, Until: f.Begin.Unix()}
	case f.Again.After(f.Now):
		return reason.Reason{Code: reason.Backoff, Until: f.Again.Unix()}
	case f.ArrayLimit > 0 && f.ArrayOpen >= f.ArrayLimit:
		return reason.Reason{Code: reason.ArrayLimit, Need: int64(f.ArrayLimit)}
	}
	return reason.Reason{}
}

// HeldBy is the reason of a job that is held, by its flags and the number of attempts that failed in a row.
func HeldBy(flags job.Flags, failed int) reason.Reason {
	switch {
	case flags&job.HeldFailed != 0:
		return reason.Reason{Code: reason.MaxRequeue, Need: int64(failed)}
	case flags&job.HeldAdmin != 0:
		return reason.Reason{Code: reason.HeldAdmin}
	}
	return reason.Reason{Code: reason.HeldUser}
}

// TooLate reports whether a job that starts now cannot end by its deadline. need is
// the shortest time that it may be given; 0: no limit is known, and it is only too
// late once the deadline has come.
func TooLate(now, deadline time.Time, need time.Duration) bool {
	return !deadline.IsZero() && now.Add(need).After(deadline) || !deadline.IsZero() && now.Equal(deadline)
}

func unixSeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
