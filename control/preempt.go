package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/store"
)

// This file carries out what the core decides about jobs that make room for others.
// It is durable before a signal is sent, so that a restart asks again; what the job
// holds stays held until the engine has proved that it is gone.

// preempted asks for the end of a running job, so that another one can start where it
// is. The job's next state follows from Mode when it has ended.
type preempted struct {
	For    job.ID        `json:"for"`
	Mode   string        `json:"mode"` // account.PreemptRequeue, PreemptCancel, PreemptCheckpoint
	Signal int           `json:"signal,omitempty"`
	Grace  time.Duration `json:"grace"`
	State  *job.State    `json:"state,omitempty"`

	// Warn says that the job only gets the signal, and is ended when it has reported a
	// checkpoint or the grace is over. To says who gets it.
	Warn bool          `json:"warn,omitempty"`
	To   engine.Scope  `json:"to,omitempty"`
	Home []fleet.Claim `json:"home,omitempty"` // it moves: where it starts again
}

// saved says that a job has reported a checkpoint: what, and when, if that was noticed
// later.
type saved struct {
	engine.Saved
	State *job.State `json:"state,omitempty"`
}

// stagePreempt stages a decision of the core about a job that holds resources, or that is
// to be started by this step too.
func (l *loop) stagePreempt(d sched.Preempt, starting []held, by job.Actor) {
	e := l.state.jobs[d.Job]
	starts := slices.ContainsFunc(starting, func(h held) bool { return h.Allocation.Job == d.Job })
	if e == nil || !e.state.Holds() && !starts {
		return // the ledger has refused its start
	}
	if e.onlyAdditionsLeft() {
		return // it makes room anyway, and has ended as it did
	}
	state := job.Running
	if e.state == job.Suspended {
		state = job.Suspended
	}
	v := preempted{For: d.For, Mode: d.Mode, Grace: d.Grace, State: &state, Home: d.Home}
	if v.Grace == 0 {
		v.Grace = l.cfg.Grace
	}
	if d.Mode == account.PreemptCheckpoint {
		if e.state == job.Running && !starts && e.flags&job.Configuring == 0 {
			v.Warn = true
			v.Signal, v.To = l.saveSignal(e)
		} else { // there is nothing to save, or nobody who could
			v.Grace = l.cfg.Grace
		}
	}
	l.stageRecord(kindPreempted, e.id, by, v, func() { l.requestEviction(e) })
}

// saveSignal is the signal by which a job is told to save, and who gets it: as its --signal
// says, else as the site's rules do.
func (l *loop) saveSignal(e *jobRecord) (signal int, to engine.Scope) {
	if s := e.shared.spec.Signal; s != nil {
		if s.BatchOnly {
			return s.Signal, engine.ToBatch
		}
		return s.Signal, engine.ToTasks
	}
	if p := l.state.policies.currentPolicy(); p != nil && p.Rules.Preemption.Signal != "" {
		if n, err := slurmfmt.ParseSignalName(p.Rules.Preemption.Signal); err == nil {
			return n, engine.ToAll
		}
	}
	return sigterm, engine.ToAll
}

const sigterm = 15

// requestEviction asks a job to end that makes room, now or again after a restart. One that is to
// save first is told so, and is asked to end when it has or when its grace is over.
func (l *loop) requestEviction(e *jobRecord) {
	v := e.last.preempted
	switch {
	case v == nil || !e.state.Holds():
	case v.Mode == account.PreemptSuspend:
		if a, ok := l.state.ledger.Of(e.id); ok && !e.last.preemptSuspended {
			e.last.proof = 0
			l.callsOf(a).Park(reconcile.Ref(a), func(r engine.Report) {
				_ = l.postMessage(l.ctx, l.suspendReported(e.id, v, r)) // a closed loop hears nothing more
			})
		}
	case !v.Warn:
		l.stopAttempt(e, v.Grace, v.Signal, v.preemptMessage())
	case e.last.hasSaved(nil) || l.cfg.Clock.Now().UnixNano() >= e.last.graceEnd():
		l.stopAttempt(e, l.cfg.Grace, 0, v.preemptMessage())
	default:
		for i, ref := range l.runningRefs(e) {
			if i == 0 || v.To != engine.ToBatch {
				l.callsFor(e).Signal(ref, v.Signal, v.To) // what was added saves its part
			}
		}
		l.state.addTimer(e.id, e.last.graceEnd())
	}
}

// evictSaved ends a job that was told to save, once it has.
func (l *loop) evictSaved(e *jobRecord) {
	if p := e.last.preempted; p != nil && p.Warn {
		l.requestEviction(e)
	}
}

// graceEnd is when a job that was told to save is ended all the same.
func (a *attempt) graceEnd() int64 { return a.asked + int64(a.preempted.Grace) }

// hasSaved reports whether a job has reported a checkpoint since it was asked to make
// room; r is a report that is not applied yet.
func (a *attempt) hasSaved(r *engine.Report) bool {
	at := a.saved
	if r != nil && r.Saved != nil {
		at = max(at, toNanos(r.Saved.At))
	}
	return at > a.asked
}

// evictOverdue ends a job that was told to save once its grace is over.
func (l *loop) evictOverdue(e *jobRecord, now time.Time) {
	if a := e.last; a.preempted != nil && a.preempted.Warn && !a.stopped && now.UnixNano() >= a.graceEnd() {
		a.stopped = true
		l.whileLeading(func() { l.requestEviction(e) })
	}
}

// noteSaved stages what a report says that the job has saved, if that is new.
func (l *loop) noteSaved(e *jobRecord, r *engine.Report) {
	if r.Saved == nil || toNanos(r.Saved.At) <= e.last.saved {
		return
	}
	l.stageRecord(kindSaved, e.id, job.Actor{}, saved{Saved: *r.Saved, State: statePointer(e.state)}, func() { l.evictSaved(e) })
}

func (v *preempted) preemptMessage() string {
	if v.Mode == account.PreemptSuspend {
		return fmt.Sprintf("suspended for job %d", v.For)
	}
	if v.Home != nil {
		return fmt.Sprintf("moved for job %d", v.For)
	}
	return fmt.Sprintf("taken back for job %d", v.For)
}

// preemptOutcome reports whether a job that was asked to make room waits again, by how it
// ended. Success is success, unless it reported a checkpoint after it was asked: then
// it has stopped where it can go on.
func (v *preempted) preemptOutcome(r *engine.Report, saved bool) (job.State, job.Flags, bool) {
	switch {
	case r.Cause == engine.Exited && r.Exit.OK() && !saved:
		return job.Completed, 0, false
	case r.Cause == engine.TimedOut || r.Cause == engine.OutOfMemory:
		return 0, 0, false
	case v.Mode == account.PreemptSuspend: // nothing of it was to end
		return 0, 0, false
	case v.Mode == account.PreemptCancel || planted.VictimLost:
		return job.Preempted, 0, true
	}
	return job.Pending, job.Requeued, true
}

func (s *state) applyPreempted(r *store.Record, staged any) error {
	v, err := payloadOf[preempted](r, staged)
	if err != nil {
		return err
	}
	e, err := s.jobOfRecord(r)
	if e == nil {
		return err
	}
	switch {
	case e.state == job.Pending && staged == nil: // older versions wrote it without the start
		s.skipped = append(s.skipped, fmt.Errorf("journal record %d (%s): job %s is %s and makes room for nobody", r.Seq, r.Kind, e.Name(), e.state))
		return nil
	case !e.state.Holds():
		return fmt.Errorf("job %s is %s and makes room for job %d", e.Name(), e.state, v.For)
	}
	s.markChanged(e, r)
	e.last.preempted, e.last.asked = &v, toNanos(r.At)
	if v.Mode != account.PreemptSuspend {
		e.flags |= job.Stopping
	}
	e.ensureExtra().message = v.preemptMessage()
	e.noteMigration(&v, r)
	return nil
}

func (s *state) applySaved(r *store.Record, staged any) error {
	v, err := payloadOf[saved](r, staged)
	if err != nil {
		return err
	}
	e, err := s.jobOfRecord(r)
	if e == nil {
		return err
	}
	if !e.state.Holds() {
		return fmt.Errorf("job %s is %s and has saved something", e.Name(), e.state)
	}
	s.markChanged(e, r)
	at := toNanos(r.At)
	if !v.At.IsZero() {
		at = min(at, toNanos(v.At))
	}
	e.last.saved = max(e.last.saved, at)
	m := e.ensureExtra()
	m.kept, m.keptAs = at, v.As
	s.events = append(s.events, sched.Saved{Job: e.id, At: sched.Instant(at)})
	return nil
}

// countLostWork counts what an attempt that made room had done since its last checkpoint, in
// device-seconds (CPUs count nothing).
func (s *state) countLostWork(e *jobRecord, ended int64) {
	a := e.last
	if a.preempted == nil || a.started == 0 || ended <= a.started {
		return
	}
	share := int64(0)
	for i := range a.claims {
		for _, d := range a.claims[i].Devices {
			share += int64(d.Share)
		}
	}
	devices := float64(share) / float64(resource.WholeDevice)
	s.counts.preempted++
	s.counts.preemptedTime += devices * time.Duration(ended-a.started).Seconds()
	s.counts.lostTime += devices * time.Duration(max(ended-max(a.started, a.saved), 0)).Seconds()
}

// markStopping tells the core that a running job is being ended.
func (s *state) markStopping(e *jobRecord) {
	e.flags |= job.Stopping
	s.events = append(s.events, sched.Stopping{Job: e.id})
}

// askSaved notes that a job has reported a checkpoint.
func (l *loop) askSaved(w *changeRequest, e *jobRecord, req *request, op Saved) error {
	if !e.state.Holds() {
		return fault.New(fault.Conflict, "job %s does not run", e.Name())
	}
	l.stageFor(req, kindSaved, e.id, w.by, saved{Saved: engine.Saved{As: op.As}, State: statePointer(e.state)}, func() { l.evictSaved(e) })
	return nil
}
