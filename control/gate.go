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

// gates asks eligible of every job for which the answer may have changed, tells the
// core the differences, and stages what follows from time and from dependencies
// that can never be met. What it costs depends on what changed, not on how many
// jobs wait.
func (l *loop) gates(now time.Time) {
	s := l.state
	for len(s.timers) > 0 && s.timers[0].at <= now.UnixNano() {
		if e := s.jobs[heap.Pop(&s.timers).(timer).id]; e != nil {
			s.regate(e)
		}
	}
	for len(s.gating) > 0 || len(s.arrays.dirty) > 0 {
		list := s.gating
		s.gating = nil
		slices.SortFunc(list, func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
		for _, e := range list {
			e.gating = false
			if !e.gone {
				l.gate(e, now)
			}
		}
		s.roomInArrays()
	}
}

// roomInArrays has the first waiting tasks of arrays with room asked again.
func (s *state) roomInArrays() {
	list := s.arrays.dirty
	s.arrays.dirty = nil
	for _, a := range list {
		a.dirty = false
		for room := int(a.limit) - a.open; (room > 0 || a.limit == 0) && len(a.waiting) > 0; {
			e := s.jobs[heap.Pop(&a.waiting).(job.ID)]
			if e != nil && e.state == job.Pending && e.gate != nil && e.gate.Code == reason.ArrayLimit {
				s.regate(e)
				room--
			}
		}
	}
}

// gate asks eligible of one job.
func (l *loop) gate(e *entry, now time.Time) {
	s := l.state
	if e.more != nil && l.timeOver(e, now) {
		return
	}
	if e.state.Holds() {
		l.overdue(e, now)
	}
	if e.state != job.Pending {
		return
	}
	f, kill := l.facts(e, now)
	why := eligible.Check(f)
	if kill && why.Code == reason.DependNever {
		message := "its dependency " + why.Want + " can never be met"
		l.stage(kindCancel, e.id, job.Actor{}, cancel{Message: message, State: stateOf(job.Cancelled)}, nil)
	}
	if f.ArrayLimit > 0 {
		switch {
		case why.Code == reason.None:
			s.arrays.let(e)
		case why.Code != reason.ArrayLimit:
			s.arrays.unlet(e)
		case e.gate == nil || e.gate.Code != reason.ArrayLimit:
			heap.Push(&e.array.waiting, e.id)
		}
	}
	if m := e.more; m != nil && why.Code == reason.None && m.benched > now.UnixNano() {
		m.benched = min(m.benched, now.Add(benchedFor).UnixNano())
		why = reason.Reason{Code: reason.Refused, Want: m.refusal, Until: m.benched / int64(time.Second)}
		s.wake(e.id, m.benched)
	}
	if r := e.report(); why.Code == reason.Backoff {
		why.Want = r.Message
		if r.Cause == engine.Limited {
			why.Code = reason.EngineLimit
		}
	}
	l.tell(e, why, now)
}

// facts are what eligible decides by. It sets the timers after which they change by
// themselves. kill says that the job ends if its dependency can never be met.
func (l *loop) facts(e *entry, now time.Time) (f eligible.Facts, kill bool) {
	s := l.state
	f = eligible.Facts{Now: now, Flags: e.flags}
	if a := e.array; a != nil && a.limit > 0 && !planted.ArrayLimit {
		f.ArrayLimit, f.ArrayOpen = int(a.limit), a.open
		if e.let {
			f.ArrayOpen--
		}
	}
	m := e.more
	if m == nil {
		return f, false
	}
	m.again = min(m.again, now.Add(maxBackoff).UnixNano()) // the clock may have been set back
	f.Begin, f.Again, f.Failed = fromNanos(m.begin), fromNanos(m.again), m.failed
	for _, at := range []int64{m.begin, m.again} {
		if at > now.UnixNano() {
			s.wake(e.id, at)
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
		Now: now, Look: s.look, Earlier: func() bool { return s.earlier(e) },
	})
	if !f.Depends.Until.IsZero() {
		s.wake(e.id, f.Depends.Until.UnixNano())
	}
	if m.depends.KillIfNever != nil {
		return f, *m.depends.KillIfNever
	}
	return f, l.cfg.KillIfNever
}

// tell passes on what keeps a job from being considered, if that is new.
func (l *loop) tell(e *entry, why reason.Reason, now time.Time) {
	s := l.state
	if why.Code == reason.None {
		if e.eligible == 0 {
			e.eligible = e.sent
			if e.gate != nil || e.attempt > 0 {
				e.eligible = now.UnixNano()
			}
			if !e.dirty {
				s.touch(e)
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
	e.gate = l.share(why)
	s.events = append(s.events, sched.Blocked{Job: e.id, Why: why})
}

// share keeps one copy of a reason that many jobs have in a row.
func (l *loop) share(why reason.Reason) *reason.Reason {
	if l.reason == nil || *l.reason != why {
		l.reason = &why
	}
	return l.reason
}

// timeOver ends a job that cannot end in time, or sets the timer after which it
// cannot. It reports whether it was ended.
func (l *loop) timeOver(e *entry, now time.Time) bool {
	m := e.more
	deadline := fromNanos(m.deadline)
	switch {
	case e.state == job.Pending && m.deadline > 0:
		if !eligible.TooLate(now, deadline, e.need()) {
			at := m.deadline
			if need := e.need(); need > 0 {
				at -= int64(need) - 1 // just in time is in time
			}
			l.state.wake(e.id, at)
			return false
		}
		l.stage(kindExpired, e.id, job.Actor{}, expired{State: job.Deadline}, nil)
		l.tell(e, reason.Reason{Code: reason.Deadline, Until: deadline.Unix()}, now) // it must not start any more
		return true
	case !e.state.Holds() || e.last.expired != nil || e.last.cancel != nil:
	case m.deadline > 0 && !now.Before(deadline):
		l.expire(e, job.Deadline)
	case m.limitEnd > 0 && now.UnixNano() >= m.limitEnd:
		l.expire(e, job.Timeout)
	}
	return false
}

// expire stages the end of a running job whose time is over.
func (l *loop) expire(e *entry, state job.State) {
	v := expired{State: state, Grace: l.cfg.Grace, After: stateOf(e.state)}
	l.stage(kindExpired, e.id, job.Actor{}, v, func() { l.stop(e, v.Grace, 0, "its time is over") })
}

func stateOf(s job.State) *job.State { return &s }
