package pools

import (
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// RefuseSuspendMode refuses rules that suspend jobs to make room, for a pool in which that makes
// none. nil: there are no rules.
func RefuseSuspendMode(p *account.Policy, pool string) error {
	if p == nil {
		return nil
	}
	modes := []string{p.Preemption.Mode}
	for i := range p.QOS {
		modes = append(modes, p.QOS[i].PreemptMode)
	}
	for i := range p.Partitions {
		modes = append(modes, p.Partitions[i].PreemptMode)
		if p.Partitions[i].TimeSlice > 0 {
			modes = append(modes, account.PreemptSuspend)
		}
	}
	for _, m := range modes {
		if m == account.PreemptSuspend {
			return fault.New(fault.Unsupported, "the engine of pool %s cannot suspend jobs to make room for others", pool).
				Advise("write requeue, cancel or checkpoint as the mode of preemption, and no time_slice")
		}
	}
	return nil
}

// NotFreedBySuspend names the pools in which suspending a job makes no room for others.
func (ps *Set) NotFreedBySuspend() (names []string) {
	for _, p := range ps.AllPools() {
		if !SuspendFreesRoom(p.Engine) {
			names = append(names, p.Name)
		}
	}
	return names
}

// SuspendFreesRoom reports whether suspending a job of an engine makes room for others.
func SuspendFreesRoom(e engine.Engine) bool {
	_, can := e.(engine.Suspender)
	k, ok := e.(engine.SuspendHolds)
	return can && (!ok || !k.KeepsSuspended())
}

// WithoutSuspend names the pools whose engines cannot suspend jobs.
func (ps *Set) WithoutSuspend() (names []string) {
	for _, p := range ps.AllPools() {
		if _, ok := p.Engine.(engine.Suspender); !ok {
			names = append(names, p.Name)
		}
	}
	return names
}

// CannotSuspendError is the error for suspending a job whose engine cannot.
func CannotSuspendError(pool string) error {
	return fault.New(fault.Unsupported, "the engine of pool %s cannot suspend jobs", pool).
		Advise("requeue the job, or send SIGSTOP to it")
}
