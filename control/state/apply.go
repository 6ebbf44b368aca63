package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/store"
)

func (s *State) applyHeld(r *store.Record, v Held) error {
	a := v.Allocation
	s.Ledger.Skip(a.ID + 1) // also where the job's row is newer: its number is taken
	e, err := s.jobByNumber(a.Job, r)
	if e == nil {
		return err
	}
	if a.Attempt != e.Attempt+1 {
		return fmt.Errorf("job %s: attempt %d after attempt %d", e.Name(), a.Attempt, e.Attempt)
	}
	if err := s.moveJob(e, job.Running, job.ByScheduler); err != nil {
		return err
	}
	if err := s.Ledger.Restore(a); err != nil {
		return err
	}
	s.Counts.Started++
	if e.Eligible > 0 {
		s.Counts.Wait.Observe(r.At.Sub(FromNanos(e.Eligible)).Seconds())
	}
	e.Attempt = a.Attempt
	e.Flags = e.Flags&^(job.Requeued|job.LaunchFailed) | job.Configuring
	e.Why, e.Gate = nil, nil
	e.Last = &Attempt{AllocationID: a.ID, epoch: a.Epoch, Pool: a.Pool, Claims: a.Claims, Flavors: a.Flavors, License: a.License, limit: v.Limit, Ranks: TasksOf(a.Claims)}
	if IsDelegated(a.Claims) {
		e.Last.Handed = ToNanos(r.At)
	}
	if e.Extra != nil {
		e.Extra.StartsBy, e.Extra.LimitEnd, e.Extra.message = 0, 0, ""
		if e.Extra.Deadline > 0 {
			s.AddTimer(e.ID, e.Extra.Deadline)
		}
	}
	s.Estimates.noteStarted(e, ToNanos(r.At))
	s.Arrays.OpenTask(e)
	s.markChanged(e, r)
	return nil
}

func (s *State) applyStarted(r *store.Record, v Started) error {
	s.addLateUsage(v.At, v.Used) // also where the job's row is newer
	e, err := s.jobOfAttempt(r, v.Ref)
	if e == nil {
		return err
	}
	e.Last.started = ToNanos(v.Started)
	e.Last.NoteNodes(v.Nodes)
	s.Counts.countBegin(e)
	e.Flags &^= job.Configuring
	e.dropPoolMove()                // it began before it was taken back
	if IsDelegated(e.Last.Claims) { // before its end, which may be in the same batch
		s.Estimates.noteHandedWait(e.Last.Pool, time.Duration(e.Last.started-e.Last.Handed))
		s.Events = append(s.Events, sched.Extended{Job: e.ID, Until: UntilOf(e, v.Started), Began: e.Last.ChargedFrom(e.Last.started)})
	}
	if s.BegunOf(e) {
		s.Events = append(s.Events, sched.Begun{Job: e.ID})
	}
	s.Depend.recheckDependents(s, e)
	s.markChanged(e, r)
	return nil
}

func (s *State) applyEnded(r *store.Record, v Ended) error {
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
	if v.Retried < 0 {
		return fmt.Errorf("retry %d follows", v.Retried)
	}
	if err := s.Ledger.Free(ledger.ID(v.Ref.Allocation), v.Ref.Attempt); err != nil {
		return err
	}
	hold := e.Last.Requeue != nil && e.Last.Requeue.Hold && v.State == job.Pending
	e.Flags = e.Flags&(job.Held|job.HeldAdmin|job.HeldFailed) | v.Flags
	if hold {
		e.Flags |= e.Last.Requeue.heldFlags()
	}
	report := v.Report
	if v.State == job.Pending || v.State == job.Preempted {
		s.countLostWork(e, cmp.Or(ToNanos(report.Ended), ToNanos(r.At)))
	}
	e.Last.exit, e.Last.Report = report.Exit, &report
	e.Last.NoteNodes(NodesIn(&report))
	e.Last.Cancel, e.Last.Requeue, e.Last.Expired, e.Last.Preempted = nil, nil, nil, nil
	if v.State != job.Cancelled && e.Extra != nil {
		e.Extra.cancelledBy = nil // it ended before it was told to, or waits again
	}
	e.Last.ended = ToNanos(report.Ended)
	if e.Last.ended == 0 {
		e.Last.ended = ToNanos(r.At)
	}
	if err := s.moveJob(e, v.State, v.By); err != nil {
		return err
	}
	s.Events = append(s.Events, sched.Released{Job: e.ID, Ended: ChargedUntil(&report, r.At)})
	s.Estimates.noteEnded(e)
	var move *PoolMove
	if m := e.Extra; m != nil {
		move, m.PoolMoves.Under = m.PoolMoves.Under, nil
	}
	if v.State == job.Pending {
		if move != nil {
			if err := s.enterPool(r, e, move); err != nil {
				return err
			}
		}
		e.notePast(v.Retried, v.KeepOff)
		e.Last.ended = 0
		if v.Failed > 0 || !v.Again.IsZero() || e.Extra != nil {
			e.EnsureExtra().Again, e.EnsureExtra().Failed = ToNanos(v.Again), v.Failed
		}
		if move == nil {
			s.requeuePending(e)
		} else { // as old as it was
			e.Flags &^= job.Requeued
			s.Arrays.CloseTask(e)
			s.QueuePending(e)
		}
	}
	s.markChanged(e, r)
	return nil
}

// notePast keeps what is known of the last attempt, if it ran or a retry follows, before the job waits for another.
// retry is the number of the retry that follows; 0: it is none. keepOff is for how long the job is
// kept off the nodes that failed it.
func (e *JobRecord) notePast(retry int, keepOff time.Duration) {
	a, m := e.Last, e.EnsureExtra()
	if retry > 0 {
		m.Retried = retry
	}
	if n := len(m.Past); a.ended == 0 || n > 0 && m.Past[n-1].Attempt == e.Attempt {
		return
	}
	claims := a.allClaims()
	if IsDelegated(a.Claims) {
		claims = a.seen
	}
	p := PastAttempt{
		Attempt: e.Attempt, Started: a.started, Ended: a.ended, Exit: a.exit, Cause: e.Report().Cause,
		Message: e.Report().Message, Nodes: hostlist.Compress(nodesOf(claims)), Retry: retry,
		Failure: reconcile.FailureOf(e.Report()), FailedOn: hostlist.Compress(e.Report().FailedOn), KeepOff: keepOff,
	}
	if p.Failure != engine.NoFailure {
		p.Pool = a.Pool
	}
	if a.started == 0 && retry == 0 { // it never began
		if p.Failure == engine.NodeFailure {
			e.noteFailed(&p)
		}
		return
	}
	e.noteFailed(&p)
	m.Past = append(m.Past[max(0, len(m.Past)-maxPast+1):len(m.Past):len(m.Past)], p) // views share the old list
}

// requeuePending lets a job wait for a new attempt.
func (s *State) requeuePending(e *JobRecord) {
	e.Eligible = 0
	s.Arrays.CloseTask(e)
	s.QueuePending(e)
}

func (s *State) applyUncertain(r *store.Record, v Uncertain) error {
	e, err := s.jobOfAttempt(r, v.Ref)
	if e == nil {
		return err
	}
	if x := e.AdditionByRef(v.Ref); x != nil {
		next := *x
		next.Uncertain = v.Uncertain
		e.Last.ReplaceAddition(x.ID, &next)
	} else if e.Flags &^= job.Uncertain; v.Uncertain {
		e.Flags |= job.Uncertain
	}
	s.markChanged(e, r)
	return s.Ledger.MarkUncertain(ledger.ID(v.Ref.Allocation), v.Uncertain)
}

// jobOfAttempt finds the job of a record about an attempt, which it must hold still.
func (s *State) jobOfAttempt(r *store.Record, ref engine.Ref) (*JobRecord, error) {
	e, err := s.jobOfRecord(r)
	if e == nil {
		return nil, err
	}
	holder, err := s.JobByRef(ref)
	if err == nil && holder != e {
		err = fmt.Errorf("%s is held by job %s, not by job %s", ref, holder.Name(), e.Name())
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (s *State) applyCancel(r *store.Record, e *JobRecord, v Cancel) error {
	s.markChanged(e, r)
	if v.Message != "" {
		e.EnsureExtra().message = v.Message
	}
	if r.By != (store.Actor{}) {
		e.EnsureExtra().cancelledBy = &r.By.UID
	}
	if e.State != job.Pending {
		e.Last.Cancel, e.Last.Requeue = &v, nil
		s.markStopping(e)
		return nil
	}
	return s.endPending(e, job.Cancelled, job.ByUser)
}

// endPending ends a pending job.
func (s *State) endPending(e *JobRecord, to job.State, by job.Cause) error {
	if err := s.moveJob(e, to, by); err != nil {
		return err
	}
	a := e.ensureAttempt()
	a.ended, a.exit = ToNanos(s.now), job.ExitCode{} // of none of its attempts
	s.Events = append(s.Events, sched.Withdrawn{Job: e.ID})
	return nil
}

func (s *State) applyExpired(r *store.Record, e *JobRecord, v Expired) error {
	s.markChanged(e, r)
	if e.State == job.Pending {
		return s.endPending(e, v.State, job.ByControl)
	}
	e.Last.Expired = &v
	s.markStopping(e)
	return nil
}

func (s *State) applyHold(r *store.Record, staged any) error {
	v, err := payloadOf[Hold](r, staged)
	if err != nil || planted.ReplayForgets && staged == nil {
		return err
	}
	e, err := s.jobOfRecord(r)
	if e == nil {
		return err
	}
	if v.Held {
		e.Flags |= job.Held
		if v.Admin {
			e.Flags |= job.HeldAdmin
		}
	} else {
		e.Flags &^= job.Held | job.HeldAdmin | job.HeldFailed | job.SpecialExit
		if e.Extra != nil {
			e.Extra.Again, e.Extra.Failed, e.Extra.Benched, e.Extra.Refused = 0, 0, 0, 0
		}
	}
	s.RecheckEligible(e)
	s.markChanged(e, r)
	return nil
}

func (s *State) applyRequeue(r *store.Record, e *JobRecord, v Requeue) error {
	s.markChanged(e, r)
	switch {
	case e.State.Holds():
		e.Last.Requeue = &v
		s.markStopping(e)
		return nil
	case e.State == job.Pending: // journals of the first version
		return nil
	}
	if err := s.moveJob(e, job.Pending, job.ByUser); err != nil {
		return err
	}
	e.Flags |= job.Requeued
	if v.Hold {
		e.Flags |= v.heldFlags()
	}
	if e.Last != nil {
		e.notePast(0, 0)
		e.Last.ended = 0
	}
	if e.Extra != nil {
		e.Extra.Again, e.Extra.Failed, e.Extra.Retried, e.Extra.message = 0, 0, 0, ""
	}
	s.requeuePending(e)
	return nil
}

// heldFlags are the flags of a job that is held when it was requeued.
func (v *Requeue) heldFlags() job.Flags {
	if v.Special {
		return job.Held | job.SpecialExit
	}
	return job.Held
}

func (s *State) applySuspend(r *store.Record, e *JobRecord, v Suspend) error {
	if !e.State.Holds() {
		return fmt.Errorf("job %s is %s and is suspended, or goes on", e.Name(), e.State)
	}
	s.markChanged(e, r)
	by, to := job.ByUser, job.Running
	if s.isElastic(e) {
		s.Events = append(s.Events, sched.Begun{Job: e.ID, Not: v.On})
	}
	switch {
	case v.Parked:
		by = job.ByScheduler
		if v.On {
			e.Last.UserSuspended = e.State == job.Suspended
		}
		if err := s.setPreemptSuspended(e, v.On); err != nil {
			return err
		}
	case e.Last.PreemptSuspended: // it says what becomes of it when it has its place again
		e.Last.UserSuspended = v.On
		return nil
	}
	if v.On || v.Parked && e.Last.UserSuspended {
		to = job.Suspended
	}
	if e.State != to { // else it was suspended before
		if err := s.moveJob(e, to, by); err != nil {
			return err
		}
	}
	s.trackSuspension(e, to == job.Suspended, ToNanos(r.At))
	return nil
}

func (s *State) applyTop(r *store.Record, v QueueMoved) error {
	for _, m := range v.Moves {
		e, err := s.jobByNumber(m.Job, r)
		if err != nil {
			return err
		}
		if e != nil {
			e.Priority, e.QueuedAt = m.Priority, m.At
			s.markChanged(e, r)
			if e.State == job.Pending {
				s.QueuePending(e)
			}
		}
	}
	return nil
}

func (s *State) applyUpdate(r *store.Record, e *JobRecord, v Update) error {
	limit := max(e.Shared.Spec.TimeLimit, 0)
	if err := s.replaceSpec(r, e, v.Own, v.Spec); err != nil {
		return err
	}
	if v.MaxRunning != nil && e.Array != nil {
		s.setArrayLimit(e.Array, *v.MaxRunning, r.Seq)
	}
	if v.Queue != nil {
		e.Priority, e.QueuedAt = v.Queue.Priority, v.Queue.At
	}
	s.markChanged(e, r)
	switch {
	case e.State == job.Pending:
		s.QueuePending(e)
	case e.State.Holds():
		if limit != max(e.Shared.Spec.TimeLimit, 0) {
			e.Last.limit = 0
		}
		s.updateLimitEnd(e)
	}
	return nil
}

// applyPoolMove moves a job to another pool, or notes that it is being taken back for that.
func (s *State) applyPoolMove(r *store.Record, e *JobRecord, v PoolMove) error {
	if v.Undone {
		e.dropPoolMove()
		s.markChanged(e, r)
		return nil
	}
	if e.State == job.Pending {
		if err := s.enterPool(r, e, &v); err != nil {
			return err
		}
		s.QueuePending(e)
		return nil
	}
	if !e.State.Holds() {
		return fmt.Errorf("job %s is %s and moves to another pool", e.Name(), e.State)
	}
	e.EnsureExtra().PoolMoves.Under = &v
	e.Last.Requeue = &Requeue{}
	s.markChanged(e, r)
	return nil
}

// enterPool gives a job the specification that it has in another pool. It keeps its place in the queue.
func (s *State) enterPool(r *store.Record, e *JobRecord, v *PoolMove) error {
	m := e.EnsureExtra()
	m.PoolMoves.Count, m.PoolMoves.At = m.PoolMoves.Count+1, ToNanos(r.At)
	m.PoolMoves.From, m.PoolMoves.To, m.PoolMoves.Why = v.From, v.To, v.Why
	m.StartsBy, m.Foretold, m.ForetoldAt, m.Refused, m.Benched = 0, 0, 0, 0, 0
	return s.replaceSpec(r, e, v.Own, v.Spec)
}

// replaceSpec gives a job another specification.
func (s *State) replaceSpec(r *store.Record, e *JobRecord, own *SpecDelta, spec json.RawMessage) error {
	f, o, err := s.Specs.readSpec(own, spec)
	if err != nil {
		return err
	}
	s.Depend.remove(e)
	s.Depend.recheckNamesakes(s, e) // the name that it leaves
	if !e.State.Final() {
		s.Submits.add(&e.Shared.Spec, -1)
		s.Submits.add(&f.Spec, 1)
	}
	s.Specs.ReleaseSpec(e.Shared)
	e.Shared, e.delta = f, PackDelta(&o, &f.Def)
	e.setExtras(&o)
	e.fixed = o.Priority != 0
	s.Depend.add(e)
	s.Depend.recheckNamesakes(s, e)
	s.markChanged(e, r)
	return nil
}

// updateLimitEnd notes when the limit of a running job ends it, after that was changed.
func (s *State) updateLimitEnd(e *JobRecord) {
	s.Events = append(s.Events, sched.Extended{Job: e.ID, Until: UntilOf(e, s.now)})
	m := e.EnsureExtra()
	m.LimitEnd = 0
	if limit := e.TimeLimit(); limit > 0 && e.Last.started > 0 {
		m.LimitEnd = e.Last.started + int64(limit+e.Last.suspendedFor)
		s.AddTimer(e.ID, m.LimitEnd)
	}
	if m.Deadline > 0 {
		s.AddTimer(e.ID, m.Deadline)
	}
}

// setArrayLimit changes how many tasks of an array may run at once.
func (s *State) setArrayLimit(a *Array, n uint32, seq uint64) {
	same := a.Limit == n
	a.setLimit(n, seq)
	if same {
		return // many tasks are told the same, one after the other
	}
	s.Arrays.markRoom(a)
	for _, e := range s.ArrayTasks(a.first) {
		s.MarkDirty(e)
		if e.State == job.Pending {
			s.Arrays.CloseTask(e)
			s.RecheckEligible(e)
		}
	}
}

func (a *Array) setLimit(limit uint32, seq uint64) {
	spec := *a.Spec
	spec.MaxRunning = limit
	a.Spec, a.Limit, a.limited = &spec, limit, seq
}

func (s *State) applyNodes(r *store.Record, v NodesSet) error {
	for _, k := range v.nodeKeys() {
		switch {
		case v.Drain:
			s.Drains.Set(k, Drain{By: actorOf(r.By), Reason: v.Reason, At: r.At})
		case k.Pool == "": // whatever nodes have the name
			for _, pool := range slices.Clone(s.Drains.Pools(k.Name)) {
				s.Drains.Delete(fleet.NodeKey{Pool: pool, Name: k.Name})
			}
		default:
			s.Drains.Delete(k)
			s.Drains.Delete(fleet.NodeKey{Name: k.Name})
		}
	}
	return nil
}

func (s *State) applyToken(r *store.Record, v Token) error {
	s.Tokens.Put(v, r.At)
	return nil
}

func (s *State) applyRevoked(r *store.Record, v Revoked) error {
	if !s.Tokens.Revoke(v.ID, r.At) {
		return fmt.Errorf("there is no token %s", v.ID)
	}
	return nil
}

func actorOf(a store.Actor) job.Actor { return job.Actor{Name: a.Name, UID: a.UID, From: a.From} }

// Compact drops from the lists the jobs that left them, once these are a good part of the lists.
func (s *State) Compact() {
	if s.stale > 64 && s.stale > len(s.Live)/4 {
		s.Live = slices.DeleteFunc(s.Live, func(e *JobRecord) bool {
			e.inLive = !e.Gone && !e.State.Final()
			return !e.inLive
		})
		s.stale = 0
	}
	if s.dead > 64 && s.dead > len(s.Order)/4 {
		s.Order = slices.DeleteFunc(s.Order, func(e *JobRecord) bool { return e.Gone })
		s.dead = 0
	}
}
