package control

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/eligible"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
)

// recheckPending asks eligible of every job for which the answer may have changed, tells the
// core the differences, and stages what follows from time and from dependencies
// that can never be met. What it costs depends on what changed, not on how many
// jobs wait.
func (l *loop) recheckPending(now time.Time) {
	l.state.eachRecheck(now, func(e *jobRecord) { l.checkEligible(e, now) })
}

// eachRecheck calls check for each job whose eligibility may have changed by now, in the
// order of their numbers, until no such job is left.
func (s *state) eachRecheck(now time.Time, check func(*jobRecord)) {
	for len(s.timers) > 0 && s.timers[0].at <= now.UnixNano() {
		if e := s.jobs[heap.Pop(&s.timers).(timer).id]; e != nil {
			s.recheckEligible(e)
		}
	}
	for len(s.gating) > 0 || len(s.arrays.dirty) > 0 {
		list := s.gating
		s.gating = nil
		slices.SortFunc(list, func(a, b *jobRecord) int { return cmp.Compare(a.id, b.id) })
		for _, e := range list {
			e.gating = false
			if !e.gone {
				check(e)
			}
		}
		s.roomInArrays()
	}
}

// awaitArray has a job looked at again when fewer tasks of its array run.
func (s *state) awaitArray(e *jobRecord) { heap.Push(&e.array.waiting, e.id) }

// roomInArrays has the first waiting tasks of arrays with room asked again.
func (s *state) roomInArrays() {
	list := s.arrays.dirty
	s.arrays.dirty = nil
	for _, a := range list {
		a.dirty = false
		for room := int(a.limit) - a.open; (room > 0 || a.limit == 0) && len(a.waiting) > 0; {
			e := s.jobs[heap.Pop(&a.waiting).(job.ID)]
			if e != nil && e.state == job.Pending && e.gate != nil && e.gate.Code == reason.ArrayLimit {
				s.recheckEligible(e)
				room--
			}
		}
	}
}

// checkEligible asks eligible of one job.
func (l *loop) checkEligible(e *jobRecord, now time.Time) {
	s := l.state
	if e.extra != nil && l.timeOver(e, now) {
		return
	}
	if e.state.Holds() {
		l.evictOverdue(e, now)
	}
	if e.state != job.Pending {
		return
	}
	f, kill := l.eligibleFacts(e, now)
	why := eligible.Check(f)
	if kill && why.Code == reason.DependNever {
		message := "its dependency " + why.Want + " can never be met"
		l.stageRecord(kindCancel, e.id, job.Actor{}, cancel{Message: message, State: statePointer(job.Cancelled)}, nil)
	}
	if f.ArrayLimit > 0 {
		switch {
		case why.Code == reason.None:
			s.arrays.openTask(e)
		case why.Code != reason.ArrayLimit:
			s.arrays.closeTask(e)
		case e.gate == nil || e.gate.Code != reason.ArrayLimit:
			s.awaitArray(e)
		}
	}
	if m := e.extra; m != nil && why.Code == reason.None && m.benched > now.UnixNano() {
		m.benched = min(m.benched, now.Add(benchedFor).UnixNano())
		why = reason.Reason{Code: reason.Refused, Want: m.refusal, Until: m.benched / int64(time.Second)}
		s.addTimer(e.id, m.benched)
	}
	if r := e.lastReport(); why.Code == reason.Backoff {
		why.Want = r.Message
		if r.Cause == engine.Limited {
			why.Code = reason.EngineLimit
		}
	}
	l.noteBlocked(e, why, now)
}

// eligibleFacts are what eligible decides by. It sets the timers after which they change by
// themselves. kill says that the job ends if its dependency can never be met.
func (l *loop) eligibleFacts(e *jobRecord, now time.Time) (f eligible.Facts, kill bool) {
	s := l.state
	f = eligible.Facts{Now: now, Flags: e.flags}
	if a := e.array; a != nil && a.limit > 0 && !planted.ArrayLimit {
		f.ArrayLimit, f.ArrayOpen = int(a.limit), a.open
		if e.open {
			f.ArrayOpen--
		}
	}
	m := e.extra
	if m == nil {
		return f, false
	}
	m.again = min(m.again, now.Add(maxBackoff).UnixNano()) // the clock may have been set back
	f.Begin, f.Again, f.Failed = fromNanos(m.begin), fromNanos(m.again), m.failed
	for _, at := range []int64{m.begin, m.again} {
		if at > now.UnixNano() {
			s.addTimer(e.id, at)
		}
	}
	if m.depends == nil {
		return f, false
	}
	var task *uint32
	if e.array != nil {
		task = &e.index
	}
	f.Depends = eligible.Judge(m.depends, task, eligible.World{
		Now: now, Look: s.fatesOf, Earlier: func() bool { return s.hasEarlierNamesake(e) },
	})
	if !f.Depends.Until.IsZero() {
		s.addTimer(e.id, f.Depends.Until.UnixNano())
	}
	if m.depends.KillIfNever != nil {
		return f, *m.depends.KillIfNever
	}
	return f, l.cfg.KillIfNever
}

// noteBlocked passes on what keeps a job from being considered, if that is new.
func (l *loop) noteBlocked(e *jobRecord, why reason.Reason, now time.Time) {
	s := l.state
	if why.Code == reason.None {
		if e.eligible == 0 {
			e.eligible = e.submitted
			if e.gate != nil || e.attempt > 0 {
				e.eligible = now.UnixNano()
			}
			if !e.dirty {
				s.markDirty(e)
			}
		}
		if e.gate != nil {
			e.gate = nil
			s.events = append(s.events, sched.Unblocked{Job: e.id})
		}
		return
	}
	if e.gate != nil && *e.gate == why {
		return
	}
	e.gate = l.sharedReason(why)
	s.events = append(s.events, sched.Blocked{Job: e.id, Why: why})
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
func (l *loop) timeOver(e *jobRecord, now time.Time) bool {
	m := e.extra
	deadline := fromNanos(m.deadline)
	switch {
	case e.state == job.Pending && m.deadline > 0:
		if !eligible.TooLate(now, deadline, e.minTime()) {
			at := m.deadline
			if need := e.minTime(); need > 0 {
				at -= int64(need) - 1 // just in time is in time
			}
			l.state.addTimer(e.id, at)
			return false
		}
		l.stageRecord(kindExpired, e.id, job.Actor{}, expired{State: job.Deadline}, nil)
		l.noteBlocked(e, reason.Reason{Code: reason.Deadline, Until: deadline.Unix()}, now) // it must not start any more
		return true
	case !e.state.Holds() || e.last.expired != nil || e.last.cancel != nil:
	case m.deadline > 0 && !now.Before(deadline):
		l.stageExpire(e, job.Deadline)
	case m.limitEnd > 0 && now.UnixNano() >= m.limitEnd:
		l.stageExpire(e, job.Timeout)
	}
	return false
}

// stageExpire stages the end of a running job whose time is over.
func (l *loop) stageExpire(e *jobRecord, state job.State) {
	v := expired{State: state, Grace: l.cfg.Grace, After: statePointer(e.state)}
	l.stageRecord(kindExpired, e.id, job.Actor{}, v, func() { l.stopAttempt(e, v.Grace, 0, "its time is over") })
}

func statePointer(s job.State) *job.State { return &s }
