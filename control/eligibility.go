package control

import (
	"cmp"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/eligible"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
)

// recheckPending checks the eligibility of every job whose answer may have changed, tells the
// core the differences, and stages what follows from time and from dependencies that can never
// be met. Its cost depends on what changed, not on how many jobs wait.
func (l *loop) recheckPending(now time.Time) {
	l.state.EachRecheck(now, func(e *state.JobRecord) { l.checkEligible(e, now) })
}

// checkEligible checks the eligibility of one job.
func (l *loop) checkEligible(e *state.JobRecord, now time.Time) {
	s := l.state
	if e.Extra != nil && l.timeOver(e, now) {
		return
	}
	if e.State.Holds() {
		l.evictOverdue(e, now)
	}
	if e.State != job.Pending {
		return
	}
	f, kill := l.eligibleFacts(e, now)
	why := eligible.Check(f)
	if kill && why.Code == reason.DependNever {
		message := "its dependency " + why.Want + " can never be met"
		l.stageRecord(state.KindCancel, e.ID, job.Actor{}, state.Cancel{Message: message, State: state.StatePointer(job.Cancelled)}, nil)
	}
	if f.ArrayLimit > 0 {
		switch {
		case why.Code == reason.None:
			s.Arrays.OpenTask(e)
		case why.Code != reason.ArrayLimit:
			s.Arrays.CloseTask(e)
		case e.Gate == nil || e.Gate.Code != reason.ArrayLimit:
			s.AwaitArray(e)
		}
	}
	if m := e.Extra; m != nil && why.Code == reason.None && m.Benched > now.UnixNano() {
		m.Benched = min(m.Benched, now.Add(benchedFor).UnixNano())
		why = reason.Reason{Code: reason.Refused, Want: m.Refusal, Until: m.Benched / int64(time.Second)}
		s.AddTimer(e.ID, m.Benched)
	}
	if r := e.Report(); why.Code == reason.Backoff {
		why.Want = r.Message
		if retries := e.Shared.Spec.Retries; r.Cause == engine.Limited {
			why.Code = reason.EngineLimit
		} else if m := e.ExtraOrZero(); retries != nil && m.IsRetry(e.Attempt) {
			why.Need, why.Most = int64(m.Retried), int64(retries.Count)
			why.Want = cmp.Or(why.Want, r.Exit.String())
		}
	}
	l.noteBlocked(e, why, now)
}

// eligibleFacts collects the facts by which eligible decides. It sets the timers after which
// they change by themselves. kill says that the job ends if its dependency can never be met.
func (l *loop) eligibleFacts(e *state.JobRecord, now time.Time) (f eligible.Facts, kill bool) {
	s := l.state
	f = eligible.Facts{Now: now, Flags: e.Flags}
	if a := e.Array; a != nil && a.Limit > 0 && !planted.ArrayLimit {
		f.ArrayLimit, f.ArrayOpen = int(a.Limit), a.Open
		if e.Open {
			f.ArrayOpen--
		}
	}
	m := e.Extra
	if m == nil {
		return f, false
	}
	longest := maxBackoff
	if r := e.Shared.Spec.Retries; r != nil && m.Retried > 0 {
		longest = max(longest, r.Pause(m.Retried))
	}
	m.Again = min(m.Again, now.Add(longest).UnixNano()) // the clock may have been set back
	f.Begin, f.Again, f.Failed = state.FromNanos(m.Begin), state.FromNanos(m.Again), m.Failed
	for _, at := range []int64{m.Begin, m.Again} {
		if at > now.UnixNano() {
			s.AddTimer(e.ID, at)
		}
	}
	if m.Depends == nil {
		return f, false
	}
	var task *uint32
	if e.Array != nil {
		task = &e.Index
	}
	f.Depends = eligible.Judge(m.Depends, task, eligible.World{
		Now: now, Look: s.FatesOf, Earlier: func() bool { return s.HasEarlierNamesake(e) },
	})
	if !f.Depends.Until.IsZero() {
		s.AddTimer(e.ID, f.Depends.Until.UnixNano())
	}
	if m.Depends.KillIfNever != nil {
		return f, *m.Depends.KillIfNever
	}
	return f, l.cfg.KillIfNever
}

// noteBlocked tells the core what keeps a job from being considered, if that is new.
func (l *loop) noteBlocked(e *state.JobRecord, why reason.Reason, now time.Time) {
	s := l.state
	if why.Code == reason.None {
		if e.Eligible == 0 {
			e.Eligible = e.Submitted
			if e.Gate != nil || e.Attempt > 0 {
				e.Eligible = now.UnixNano()
			}
			if !e.Dirty {
				s.MarkDirty(e)
			}
		}
		if e.Gate != nil {
			e.Gate = nil
			s.Events = append(s.Events, sched.Unblocked{Job: e.ID})
		}
		return
	}
	if e.Gate != nil && *e.Gate == why {
		return
	}
	e.Gate = l.sharedReason(why)
	s.Events = append(s.Events, sched.Blocked{Job: e.ID, Why: why})
}

// sharedReason keeps one copy of a reason that many jobs have in a row.
func (l *loop) sharedReason(why reason.Reason) *reason.Reason {
	if l.reason == nil || *l.reason != why {
		l.reason = &why
	}
	return l.reason
}

// timeOver ends a job that cannot end in time, or sets the timer after which it
// cannot. It reports whether it was ended.
func (l *loop) timeOver(e *state.JobRecord, now time.Time) bool {
	m := e.Extra
	deadline := state.FromNanos(m.Deadline)
	switch {
	case e.State == job.Pending && m.Deadline > 0:
		if !eligible.TooLate(now, deadline, e.MinTime()) {
			at := m.Deadline
			if need := e.MinTime(); need > 0 {
				at -= int64(need) - 1 // just in time is in time
			}
			l.state.AddTimer(e.ID, at)
			return false
		}
		l.stageRecord(state.KindExpired, e.ID, job.Actor{}, state.Expired{State: job.Deadline}, nil)
		l.noteBlocked(e, reason.Reason{Code: reason.Deadline, Until: deadline.Unix()}, now) // it must not start any more
		return true
	case !e.State.Holds() || e.Last.Expired != nil || e.Last.Cancel != nil:
	case m.Deadline > 0 && !now.Before(deadline):
		l.stageExpire(e, job.Deadline)
	case m.LimitEnd > 0 && now.UnixNano() >= m.LimitEnd:
		l.stageExpire(e, job.Timeout)
	}
	return false
}

// stageExpire stages the end of a running job whose time is over.
func (l *loop) stageExpire(e *state.JobRecord, jobState job.State) {
	v := state.Expired{State: jobState, Grace: l.cfg.Grace, After: state.StatePointer(e.State)}
	l.stageRecord(state.KindExpired, e.ID, job.Actor{}, v, func() { l.stopAttempt(e, v.Stop()) })
}
