package control

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/store"
)

func (s *state) applyHeld(r *store.Record, staged any) error {
	v, err := payloadOf[held](r, staged)
	if err != nil {
		return err
	}
	a := v.Allocation
	s.ledger.Skip(a.ID + 1) // also where the job's row is newer: its number is taken
	e, err := s.jobByNumber(a.Job, r)
	if e == nil {
		return err
	}
	if a.Attempt != e.attempt+1 {
		return fmt.Errorf("job %s: attempt %d after attempt %d", e.Name(), a.Attempt, e.attempt)
	}
	if err := s.moveJob(e, job.Running, job.ByScheduler); err != nil {
		return err
	}
	if err := s.ledger.Restore(a); err != nil {
		return err
	}
	s.counts.started++
	if e.eligible > 0 {
		s.counts.wait.observe(r.At.Sub(fromNanos(e.eligible)).Seconds())
	}
	e.attempt = a.Attempt
	e.flags = e.flags&^(job.Requeued|job.LaunchFailed) | job.Configuring
	e.why, e.gate = nil, nil
	e.last = &attempt{id: a.ID, epoch: a.Epoch, pool: a.Pool, claims: a.Claims, flavors: a.Flavors, license: a.License, limit: v.Limit, ranks: tasksOf(a.Claims)}
	if isDelegated(a.Claims) {
		e.last.handed = toNanos(r.At)
	}
	if e.extra != nil {
		e.extra.startsBy, e.extra.limitEnd, e.extra.message = 0, 0, ""
		if e.extra.deadline > 0 {
			s.addTimer(e.id, e.extra.deadline)
		}
	}
	s.estimates.noteStarted(e, toNanos(r.At))
	s.arrays.openTask(e)
	s.markChanged(e, r)
	return nil
}

func (s *state) applyStarted(r *store.Record, staged any) error {
	v, err := payloadOf[started](r, staged)
	if err != nil {
		return err
	}
	s.addLateUsage(v.At, v.Used) // also where the job's row is newer
	e, err := s.jobOfAttempt(r, v.Ref)
	if e == nil {
		return err
	}
	e.last.started = toNanos(v.Started)
	e.last.noteNodes(v.Nodes)
	e.flags &^= job.Configuring
	if isDelegated(e.last.claims) { // before its end, which may be in the same batch
		s.events = append(s.events, sched.Extended{Job: e.id, Until: untilOf(e, v.Started), Began: e.last.chargedFrom(e.last.started)})
	}
	if s.begunOf(e) {
		s.events = append(s.events, sched.Begun{Job: e.id})
	}
	s.depend.recheckDependents(s, e)
	s.markChanged(e, r)
	return nil
}

func (s *state) applyEnded(r *store.Record, staged any) error {
	v, err := payloadOf[ended](r, staged)
	if err != nil {
		return err
	}
	if !planted.UsageLost {
		s.addUsage(v.Used) // also where the job's row is newer
	}
	e, err := s.jobOfAttempt(r, v.Ref)
	if e == nil {
		return err
	}
	if v.Failed < 0 {
		return fmt.Errorf("%d attempts failed", v.Failed)
	}
	if err := s.ledger.Free(ledger.ID(v.Ref.Allocation), v.Ref.Attempt); err != nil {
		return err
	}
	hold := e.last.requeue != nil && e.last.requeue.Hold && v.State == job.Pending
	e.flags = e.flags&(job.Held|job.HeldAdmin|job.HeldFailed) | v.Flags
	if hold {
		e.flags |= job.Held
	}
	report := v.Report
	if v.State == job.Pending || v.State == job.Preempted {
		s.countLostWork(e, cmp.Or(toNanos(report.Ended), toNanos(r.At)))
	}
	e.last.exit, e.last.report = report.Exit, &report
	e.last.noteNodes(nodesIn(&report))
	e.last.cancel, e.last.requeue, e.last.expired, e.last.preempted = nil, nil, nil, nil
	e.last.ended = toNanos(report.Ended)
	if e.last.ended == 0 {
		e.last.ended = toNanos(r.At)
	}
	if err := s.moveJob(e, v.State, v.By); err != nil {
		return err
	}
	s.events = append(s.events, sched.Released{Job: e.id, Ended: chargedUntil(&report, r.At)})
	s.estimates.noteEnded(e)
	if v.State == job.Pending {
		e.last.ended = 0
		if v.Failed > 0 || !v.Again.IsZero() || e.extra != nil {
			e.ensureExtra().again, e.ensureExtra().failed = toNanos(v.Again), v.Failed
		}
		s.requeuePending(e)
	}
	s.markChanged(e, r)
	return nil
}

// requeuePending lets a job wait for a new attempt.
func (s *state) requeuePending(e *jobRecord) {
	e.eligible = 0
	s.arrays.closeTask(e)
	s.queuePending(e)
}

func (s *state) applyUncertain(r *store.Record, staged any) error {
	v, err := payloadOf[uncertain](r, staged)
	if err != nil {
		return err
	}
	e, err := s.jobOfAttempt(r, v.Ref)
	if e == nil {
		return err
	}
	if x := e.additionByRef(v.Ref); x != nil {
		next := *x
		next.Uncertain = v.Uncertain
		e.last.replaceAddition(x.ID, &next)
	} else if e.flags &^= job.Uncertain; v.Uncertain {
		e.flags |= job.Uncertain
	}
	s.markChanged(e, r)
	return s.ledger.MarkUncertain(ledger.ID(v.Ref.Allocation), v.Uncertain)
}

// jobOfAttempt finds the job of a record about an attempt, which it must hold still.
func (s *state) jobOfAttempt(r *store.Record, ref engine.Ref) (*jobRecord, error) {
	e, err := s.jobOfRecord(r)
	if e == nil {
		return nil, err
	}
	holder, err := s.jobByRef(ref)
	if err == nil && holder != e {
		err = fmt.Errorf("%s is held by job %s, not by job %s", ref, holder.Name(), e.Name())
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (s *state) applyCancel(r *store.Record, staged any) error {
	v, err := payloadOf[cancel](r, staged)
	if err != nil {
		return err
	}
	e, err := s.jobOfRecord(r)
	if e == nil {
		return err
	}
	s.markChanged(e, r)
	if v.Message != "" {
		e.ensureExtra().message = v.Message
	}
	if e.state != job.Pending {
		e.last.cancel, e.last.requeue = &v, nil
		s.markStopping(e)
		return nil
	}
	return s.endPending(e, job.Cancelled, job.ByUser)
}

// endPending ends a pending job.
func (s *state) endPending(e *jobRecord, to job.State, by job.Cause) error {
	if err := s.moveJob(e, to, by); err != nil {
		return err
	}
	a := e.ensureAttempt()
	a.ended, a.exit = toNanos(s.now), job.ExitCode{} // of none of its attempts
	s.events = append(s.events, sched.Withdrawn{Job: e.id})
	return nil
}

func (s *state) applyExpired(r *store.Record, staged any) error {
	v, err := payloadOf[expired](r, staged)
	if err != nil {
		return err
	}
	e, err := s.jobOfRecord(r)
	if e == nil {
		return err
	}
	s.markChanged(e, r)
	if e.state == job.Pending {
		return s.endPending(e, v.State, job.ByControl)
	}
	e.last.expired = &v
	s.markStopping(e)
	return nil
}

func (s *state) applyHold(r *store.Record, staged any) error {
	v, err := payloadOf[hold](r, staged)
	if err != nil || planted.ReplayForgets && staged == nil {
		return err
	}
	e, err := s.jobOfRecord(r)
	if e == nil {
		return err
	}
	if v.Held {
		e.flags |= job.Held
		if v.Admin {
			e.flags |= job.HeldAdmin
		}
	} else {
		e.flags &^= job.Held | job.HeldAdmin | job.HeldFailed
		if e.extra != nil {
			e.extra.again, e.extra.failed, e.extra.benched, e.extra.refused = 0, 0, 0, 0
		}
	}
	s.recheckEligible(e)
	s.markChanged(e, r)
	return nil
}

func (s *state) applyRequeue(r *store.Record, staged any) error {
	v, err := payloadOf[requeue](r, staged)
	if err != nil {
		return err
	}
	e, err := s.jobOfRecord(r)
	if e == nil {
		return err
	}
	s.markChanged(e, r)
	switch {
	case e.state.Holds():
		e.last.requeue = &v
		s.markStopping(e)
		return nil
	case e.state == job.Pending: // journals of the first version
		return nil
	}
	if err := s.moveJob(e, job.Pending, job.ByUser); err != nil {
		return err
	}
	e.flags |= job.Requeued
	if v.Hold {
		e.flags |= job.Held
	}
	if e.last != nil {
		e.last.ended = 0
	}
	if e.extra != nil {
		e.extra.again, e.extra.failed, e.extra.message = 0, 0, ""
	}
	s.requeuePending(e)
	return nil
}

func (s *state) applySuspend(r *store.Record, staged any) error {
	v, err := payloadOf[suspend](r, staged)
	if err != nil {
		return err
	}
	e, err := s.jobOfRecord(r)
	if e == nil {
		return err
	}
	if !e.state.Holds() {
		return fmt.Errorf("job %s is %s and is suspended, or goes on", e.Name(), e.state)
	}
	s.markChanged(e, r)
	by, to := job.ByUser, job.Running
	if s.isElastic(e) {
		s.events = append(s.events, sched.Begun{Job: e.id, Not: v.On})
	}
	switch {
	case v.Parked:
		by = job.ByScheduler
		if v.On {
			e.last.userSuspended = e.state == job.Suspended
		}
		if err := s.setPreemptSuspended(e, v.On); err != nil {
			return err
		}
	case e.last.preemptSuspended: // it says what becomes of it when it has its place again
		e.last.userSuspended = v.On
		return nil
	}
	if v.On || v.Parked && e.last.userSuspended {
		to = job.Suspended
	}
	if e.state != to { // else it was suspended before
		if err := s.moveJob(e, to, by); err != nil {
			return err
		}
	}
	s.trackSuspension(e, to == job.Suspended, toNanos(r.At))
	return nil
}

func (s *state) applyTop(r *store.Record, staged any) error {
	v, err := payloadOf[queueMoved](r, staged)
	if err != nil {
		return err
	}
	for _, m := range v.Moves {
		e, err := s.jobByNumber(m.Job, r)
		if err != nil {
			return err
		}
		if e != nil {
			e.priority, e.at = m.Priority, m.At
			s.markChanged(e, r)
			if e.state == job.Pending {
				s.queuePending(e)
			}
		}
	}
	return nil
}

func (s *state) applyUpdate(r *store.Record, staged any) error {
	v, err := payloadOf[update](r, staged)
	if err != nil {
		return err
	}
	e, err := s.jobOfRecord(r)
	if e == nil {
		return err
	}
	f, o, err := s.specs.readSpec(v.Own, v.Spec)
	if err != nil {
		return err
	}
	s.depend.remove(e)
	s.depend.recheckNamesakes(s, e) // the name that it leaves
	if !e.state.Final() {
		s.submits.add(&e.shared.spec, -1)
		s.submits.add(&f.spec, 1)
	}
	limit := max(e.shared.spec.TimeLimit, 0)
	s.specs.releaseSpec(e.shared)
	e.shared, e.delta = f, packDelta(&o, &f.def)
	e.setExtras(&o)
	e.fixed = o.Priority != 0
	s.depend.add(e)
	s.depend.recheckNamesakes(s, e)
	if v.MaxRunning != nil && e.array != nil {
		s.setArrayLimit(e.array, *v.MaxRunning, r.Seq)
	}
	if v.Queue != nil {
		e.priority, e.at = v.Queue.Priority, v.Queue.At
	}
	s.markChanged(e, r)
	switch {
	case e.state == job.Pending:
		s.queuePending(e)
	case e.state.Holds():
		if limit != max(e.shared.spec.TimeLimit, 0) {
			e.last.limit = 0
		}
		s.updateLimitEnd(e)
	}
	return nil
}

// updateLimitEnd notes when the limit of a running job ends it, after that was changed.
func (s *state) updateLimitEnd(e *jobRecord) {
	s.events = append(s.events, sched.Extended{Job: e.id, Until: untilOf(e, s.now)})
	m := e.ensureExtra()
	m.limitEnd = 0
	if limit := e.timeLimit(); limit > 0 && e.last.started > 0 {
		m.limitEnd = e.last.started + int64(limit+e.last.suspendedFor)
		s.addTimer(e.id, m.limitEnd)
	}
	if m.deadline > 0 {
		s.addTimer(e.id, m.deadline)
	}
}

// setArrayLimit changes how many tasks of an array may run at once.
func (s *state) setArrayLimit(a *array, n uint32, seq uint64) {
	same := a.limit == n
	a.setLimit(n, seq)
	if same {
		return // many tasks are told the same, one after the other
	}
	s.arrays.markRoom(a)
	for _, e := range s.arrayTasks(a.first) {
		s.markDirty(e)
		if e.state == job.Pending {
			s.arrays.closeTask(e)
			s.recheckEligible(e)
		}
	}
}

func (a *array) setLimit(limit uint32, seq uint64) {
	spec := *a.spec
	spec.MaxRunning = limit
	a.spec, a.limit, a.limited = &spec, limit, seq
}

func (s *state) applyNodes(r *store.Record, staged any) error {
	v, err := payloadOf[nodesSet](r, staged)
	if err != nil {
		return err
	}
	for _, k := range v.nodeKeys() {
		switch {
		case v.Drain:
			s.drains.Set(k, Drain{By: actorOf(r.By), Reason: v.Reason, At: r.At})
		case k.Pool == "": // whatever nodes have the name
			for _, pool := range slices.Clone(s.drains.Pools(k.Name)) {
				s.drains.Delete(fleet.NodeKey{Pool: pool, Name: k.Name})
			}
		default:
			s.drains.Delete(k)
			s.drains.Delete(fleet.NodeKey{Name: k.Name})
		}
	}
	return nil
}

func (s *state) applyToken(r *store.Record, staged any) error {
	v, err := payloadOf[Token](r, staged)
	if err != nil {
		return err
	}
	s.tokens[v.ID] = v
	return nil
}

func (s *state) applyRevoked(r *store.Record, staged any) error {
	v, err := payloadOf[revoked](r, staged)
	if err != nil {
		return err
	}
	t, ok := s.tokens[v.ID]
	if !ok {
		return fmt.Errorf("there is no token %s", v.ID)
	}
	if t.Revoked.IsZero() {
		t.Revoked = r.At
		s.tokens[v.ID] = t
	}
	return nil
}

func actorOf(a store.Actor) job.Actor { return job.Actor{Name: a.Name, UID: a.UID, From: a.From} }

// compactLists drops what has left the lists, once that is a good part of them.
func (s *state) compactLists() {
	if s.stale > 64 && s.stale > len(s.live)/4 {
		s.live = slices.DeleteFunc(s.live, func(e *jobRecord) bool {
			e.inLive = !e.gone && !e.state.Final()
			return !e.inLive
		})
		s.stale = 0
	}
	if s.dead > 64 && s.dead > len(s.order)/4 {
		s.order = slices.DeleteFunc(s.order, func(e *jobRecord) bool { return e.gone })
		s.dead = 0
	}
}
