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
	v, err := value[held](r, staged)
	if err != nil {
		return err
	}
	a := v.Allocation
	s.led.Skip(a.ID + 1) // also where the job's row is newer: its number is taken
	e, err := s.numbered(a.Job, r)
	if e == nil {
		return err
	}
	if a.Attempt != e.attempt+1 {
		return fmt.Errorf("job %s: attempt %d after attempt %d", e.Name(), a.Attempt, e.attempt)
	}
	if err := s.move(e, job.Running, job.ByScheduler); err != nil {
		return err
	}
	if err := s.led.Restore(a); err != nil {
		return err
	}
	s.counts.started++
	if e.eligible > 0 {
		s.counts.wait.observe(r.At.Sub(fromNanos(e.eligible)).Seconds())
	}
	e.attempt = a.Attempt
	e.flags = e.flags&^(job.Requeued|job.LaunchFailed) | job.Configuring
	e.why, e.gate = nil, nil
	e.last = &last{id: a.ID, epoch: a.Epoch, pool: a.Pool, claims: a.Claims, flavors: a.Flavors, license: a.License, limit: v.Limit, ranks: tasksOf(a.Claims)}
	if delegated(a.Claims) {
		e.last.handed = nanos(r.At)
	}
	if e.more != nil {
		e.more.startsBy, e.more.limitEnd, e.more.message = 0, 0, ""
		if e.more.deadline > 0 {
			s.wake(e.id, e.more.deadline)
		}
	}
	s.lore.started(e, nanos(r.At))
	s.arrays.let(e)
	s.change(e, r)
	return nil
}

func (s *state) applyStarted(r *store.Record, staged any) error {
	v, err := value[started](r, staged)
	if err != nil {
		return err
	}
	s.late(v.At, v.Used) // also where the job's row is newer
	e, err := s.attempt(r, v.Ref)
	if e == nil {
		return err
	}
	e.last.started = nanos(v.Started)
	e.last.see(v.Nodes)
	e.flags &^= job.Configuring
	if delegated(e.last.claims) { // before its end, which may be in the same batch
		s.events = append(s.events, sched.Extended{Job: e.id, Until: untilOf(e, v.Started), Began: e.last.beganThere(e.last.started)})
	}
	if s.begunOf(e) {
		s.events = append(s.events, sched.Begun{Job: e.id})
	}
	s.depend.changed(s, e)
	s.change(e, r)
	return nil
}

func (s *state) applyEnded(r *store.Record, staged any) error {
	v, err := value[ended](r, staged)
	if err != nil {
		return err
	}
	if !planted.UsageLost {
		s.spent(v.Used) // also where the job's row is newer
	}
	e, err := s.attempt(r, v.Ref)
	if e == nil {
		return err
	}
	if v.Failed < 0 {
		return fmt.Errorf("%d attempts failed", v.Failed)
	}
	if err := s.led.Free(ledger.ID(v.Ref.Allocation), v.Ref.Attempt); err != nil {
		return err
	}
	hold := e.last.requeue != nil && e.last.requeue.Hold && v.State == job.Pending
	e.flags = e.flags&(job.Held|job.HeldAdmin|job.HeldFailed) | v.Flags
	if hold {
		e.flags |= job.Held
	}
	report := v.Report
	if v.State == job.Pending || v.State == job.Preempted {
		s.lose(e, cmp.Or(nanos(report.Ended), nanos(r.At)))
	}
	e.last.exit, e.last.report = report.Exit, &report
	e.last.see(nodesIn(&report))
	e.last.cancel, e.last.requeue, e.last.expired, e.last.preempted = nil, nil, nil, nil
	e.last.ended = nanos(report.Ended)
	if e.last.ended == 0 {
		e.last.ended = nanos(r.At)
	}
	if err := s.move(e, v.State, v.By); err != nil {
		return err
	}
	s.events = append(s.events, sched.Released{Job: e.id, Ended: chargedUntil(&report, r.At)})
	s.lore.ended(e)
	if v.State == job.Pending {
		e.last.ended = 0
		if v.Failed > 0 || !v.Again.IsZero() || e.more != nil {
			e.extra().again, e.extra().failed = nanos(v.Again), v.Failed
		}
		s.again(e)
	}
	s.change(e, r)
	return nil
}

// again lets a job wait for a new attempt.
func (s *state) again(e *entry) {
	e.eligible = 0
	s.arrays.unlet(e)
	s.queue(e)
}

func (s *state) applyUncertain(r *store.Record, staged any) error {
	v, err := value[uncertain](r, staged)
	if err != nil {
		return err
	}
	e, err := s.attempt(r, v.Ref)
	if e == nil {
		return err
	}
	if x := e.addition(v.Ref); x != nil {
		next := *x
		next.Uncertain = v.Uncertain
		e.last.put(x.ID, &next)
	} else if e.flags &^= job.Uncertain; v.Uncertain {
		e.flags |= job.Uncertain
	}
	s.change(e, r)
	return s.led.MarkUncertain(ledger.ID(v.Ref.Allocation), v.Uncertain)
}

// attempt finds the job of a record about an attempt, which it must hold still.
func (s *state) attempt(r *store.Record, ref engine.Ref) (*entry, error) {
	e, err := s.job(r)
	if e == nil {
		return nil, err
	}
	holder, err := s.holder(ref)
	if err == nil && holder != e {
		err = fmt.Errorf("%s is held by job %s, not by job %s", ref, holder.Name(), e.Name())
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (s *state) applyCancel(r *store.Record, staged any) error {
	v, err := value[cancel](r, staged)
	if err != nil {
		return err
	}
	e, err := s.job(r)
	if e == nil {
		return err
	}
	s.change(e, r)
	if v.Message != "" {
		e.extra().message = v.Message
	}
	if e.state != job.Pending {
		e.last.cancel, e.last.requeue = &v, nil
		s.stopping(e)
		return nil
	}
	return s.quit(e, job.Cancelled, job.ByUser)
}

// quit ends a pending job.
func (s *state) quit(e *entry, to job.State, by job.Cause) error {
	if err := s.move(e, to, by); err != nil {
		return err
	}
	a := e.attempting()
	a.ended, a.exit = nanos(s.now), job.ExitCode{} // of none of its attempts
	s.events = append(s.events, sched.Withdrawn{Job: e.id})
	return nil
}

func (s *state) applyExpired(r *store.Record, staged any) error {
	v, err := value[expired](r, staged)
	if err != nil {
		return err
	}
	e, err := s.job(r)
	if e == nil {
		return err
	}
	s.change(e, r)
	if e.state == job.Pending {
		return s.quit(e, v.State, job.ByControl)
	}
	e.last.expired = &v
	s.stopping(e)
	return nil
}

func (s *state) applyHold(r *store.Record, staged any) error {
	v, err := value[hold](r, staged)
	if err != nil || planted.ReplayForgets && staged == nil {
		return err
	}
	e, err := s.job(r)
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
		if e.more != nil {
			e.more.again, e.more.failed, e.more.benched, e.more.refused = 0, 0, 0, 0
		}
	}
	s.regate(e)
	s.change(e, r)
	return nil
}

func (s *state) applyRequeue(r *store.Record, staged any) error {
	v, err := value[requeue](r, staged)
	if err != nil {
		return err
	}
	e, err := s.job(r)
	if e == nil {
		return err
	}
	s.change(e, r)
	switch {
	case e.state.Holds():
		e.last.requeue = &v
		s.stopping(e)
		return nil
	case e.state == job.Pending: // journals of the first version
		return nil
	}
	if err := s.move(e, job.Pending, job.ByUser); err != nil {
		return err
	}
	e.flags |= job.Requeued
	if v.Hold {
		e.flags |= job.Held
	}
	if e.last != nil {
		e.last.ended = 0
	}
	if e.more != nil {
		e.more.again, e.more.failed, e.more.message = 0, 0, ""
	}
	s.again(e)
	return nil
}

func (s *state) applySuspend(r *store.Record, staged any) error {
	v, err := value[suspend](r, staged)
	if err != nil {
		return err
	}
	e, err := s.job(r)
	if e == nil {
		return err
	}
	if !e.state.Holds() {
		return fmt.Errorf("job %s is %s and is suspended, or goes on", e.Name(), e.state)
	}
	s.change(e, r)
	by, to := job.ByUser, job.Running
	if s.elastic(e) {
		s.events = append(s.events, sched.Begun{Job: e.id, Not: v.On})
	}
	switch {
	case v.Parked:
		by = job.ByScheduler
		if v.On {
			e.last.asleep = e.state == job.Suspended
		}
		if err := s.park(e, v.On); err != nil {
			return err
		}
	case e.last.parked: // it says what becomes of it when it has its place again
		e.last.asleep = v.On
		return nil
	}
	if v.On || v.Parked && e.last.asleep {
		to = job.Suspended
	}
	if e.state != to { // else it was suspended before
		if err := s.move(e, to, by); err != nil {
			return err
		}
	}
	s.hold(e, to == job.Suspended, nanos(r.At))
	return nil
}

func (s *state) applyTop(r *store.Record, staged any) error {
	v, err := value[top](r, staged)
	if err != nil {
		return err
	}
	for _, m := range v.Moves {
		e, err := s.numbered(m.Job, r)
		if err != nil {
			return err
		}
		if e != nil {
			e.priority, e.at = m.Priority, m.At
			s.change(e, r)
			if e.state == job.Pending {
				s.queue(e)
			}
		}
	}
	return nil
}

func (s *state) applyUpdate(r *store.Record, staged any) error {
	v, err := value[update](r, staged)
	if err != nil {
		return err
	}
	e, err := s.job(r)
	if e == nil {
		return err
	}
	f, o, err := s.forms.read(v.Own, v.Spec)
	if err != nil {
		return err
	}
	s.depend.remove(e)
	s.depend.named(s, e) // the name that it leaves
	if !e.state.Final() {
		s.crowd.add(&e.form.spec, -1)
		s.crowd.add(&f.spec, 1)
	}
	limit := max(e.form.spec.TimeLimit, 0)
	s.forms.release(e.form)
	e.form, e.owned = f, pack(&o, &f.def)
	e.ask(&o)
	e.fixed = o.Priority != 0
	s.depend.add(e)
	s.depend.named(s, e)
	if v.MaxRunning != nil && e.array != nil {
		s.limit(e.array, *v.MaxRunning, r.Seq)
	}
	if v.Queue != nil {
		e.priority, e.at = v.Queue.Priority, v.Queue.At
	}
	s.change(e, r)
	switch {
	case e.state == job.Pending:
		s.queue(e)
	case e.state.Holds():
		if limit != max(e.form.spec.TimeLimit, 0) {
			e.last.limit = 0
		}
		s.shorten(e)
	}
	return nil
}

// shorten notes when the limit of a running job ends it, after that was changed.
func (s *state) shorten(e *entry) {
	s.events = append(s.events, sched.Extended{Job: e.id, Until: untilOf(e, s.now)})
	m := e.extra()
	m.limitEnd = 0
	if limit := e.limit(); limit > 0 && e.last.started > 0 {
		m.limitEnd = e.last.started + int64(limit+e.last.heldFor)
		s.wake(e.id, m.limitEnd)
	}
	if m.deadline > 0 {
		s.wake(e.id, m.deadline)
	}
}

// limit changes how many tasks of an array may run at once.
func (s *state) limit(a *array, n uint32, seq uint64) {
	same := a.limit == n
	a.set(n, seq)
	if same {
		return // many tasks are told the same, one after the other
	}
	s.arrays.look(a)
	for _, e := range s.members(a.first) {
		s.touch(e)
		if e.state == job.Pending {
			s.arrays.unlet(e)
			s.regate(e)
		}
	}
}

func (a *array) set(limit uint32, seq uint64) {
	spec := *a.spec
	spec.MaxRunning = limit
	a.spec, a.limit, a.limited = &spec, limit, seq
}

func (s *state) applyNodes(r *store.Record, staged any) error {
	v, err := value[nodesSet](r, staged)
	if err != nil {
		return err
	}
	for _, k := range v.nodeKeys() {
		switch {
		case v.Drain:
			s.drains.Set(k, Drain{By: actor(r.By), Reason: v.Reason, At: r.At})
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
	v, err := value[Token](r, staged)
	if err != nil {
		return err
	}
	s.tokens[v.ID] = v
	return nil
}

func (s *state) applyRevoked(r *store.Record, staged any) error {
	v, err := value[revoked](r, staged)
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

func actor(a store.Actor) job.Actor { return job.Actor{Name: a.Name, UID: a.UID, From: a.From} }

// compact drops what has left the lists, once that is a good part of them.
func (s *state) compact() {
	if s.stale > 64 && s.stale > len(s.live)/4 {
		s.live = slices.DeleteFunc(s.live, func(e *entry) bool {
			e.inLive = !e.gone && !e.state.Final()
			return !e.inLive
		})
		s.stale = 0
	}
	if s.dead > 64 && s.dead > len(s.order)/4 {
		s.order = slices.DeleteFunc(s.order, func(e *entry) bool { return e.gone })
		s.dead = 0
	}
}
