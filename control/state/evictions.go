package state

import (
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/store"
)

// NoteProposal keeps the moves that the core proposes; none takes the last ones back.
func (s *State) NoteProposal(p sched.Proposal) {
	s.Proposal = nil
	if len(p.Moves) > 0 {
		s.Proposal = &p
	}
}

// MigrationTarget is where a running job moves, and for which job; zero: it stays.
func (e *JobRecord) MigrationTarget() (goesFor job.ID, home []fleet.Claim) {
	if p := e.Last.Preempted; p != nil && p.Home != nil {
		return p.For, fleet.InPool(e.Shared.Spec.Pool, p.Home)
	}
	return 0, nil
}

// noteMigration notes when a job was asked to move.
func (e *JobRecord) noteMigration(v *Preempted, r *store.Record) {
	if v.Home != nil {
		e.EnsureExtra().Moved = ToNanos(r.At)
	}
}

// SuspendRequested reports whether the job was asked to make room by being suspended.
func (a *Attempt) SuspendRequested() bool {
	return a.Preempted != nil && a.Preempted.Mode == account.PreemptSuspend
}

// setPreemptSuspended notes in job and ledger whether a job is suspended to make room.
func (s *State) setPreemptSuspended(e *JobRecord, on bool) error {
	if err := s.Ledger.Park(e.Last.AllocationID, on); err != nil {
		return err
	}
	e.Last.PreemptSuspended = on
	if e.Extra != nil && !on {
		e.Extra.message = ""
	}
	if on {
		e.Last.Preempted = nil
		s.Events = append(s.Events, sched.Suspended{Job: e.ID})
	}
	return nil
}

// trackSuspension notes since when a job is suspended, or how long it was: its time limit waits.
func (s *State) trackSuspension(e *JobRecord, on bool, at int64) {
	a := e.Last
	switch {
	case on && a.SuspendedAt == 0:
		a.SuspendedAt = at
	case on:
	case a.SuspendedAt > 0:
		a.suspendedFor += time.Duration(max(at-a.SuspendedAt, 0))
		a.lastSuspended = [2]int64{a.SuspendedAt, max(at, a.SuspendedAt)}
		a.SuspendedAt = 0
		s.Events = append(s.Events, sched.Extended{Job: e.ID, Until: UntilOf(e, s.now)})
	}
}

// CanResumePreempted reports whether a job is suspended to make room and may go on.
func (e *JobRecord) CanResumePreempted() bool {
	return e != nil && e.State == job.Suspended && e.Last.PreemptSuspended && e.Flags&job.Stopping == 0
}

// Preempted asks for the end of a running job, so that another job can start in its place. The
// job's next state follows from Mode when it has ended.
type Preempted struct {
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

// Saved says that a job has reported a checkpoint, and when, if that was noticed later.
type Saved struct {
	engine.Saved
	State *job.State `json:"state,omitempty"`
}

// GraceEnd is when a job that was told to save is ended even if it has not.
func (a *Attempt) GraceEnd() int64 { return a.asked + int64(a.Preempted.Grace) }

// HasSaved reports whether a job has reported a checkpoint since it was asked to make
// room; r is a report that is not applied yet.
func (a *Attempt) HasSaved(r *engine.Report) bool {
	at := a.Saved
	if r != nil && r.Saved != nil {
		at = max(at, ToNanos(r.Saved.At))
	}
	return at > a.asked
}

// Message says, for people, why the job had to make room.
func (v *Preempted) Message() string {
	if v.Mode == account.PreemptSuspend {
		return fmt.Sprintf("suspended for job %d", v.For)
	}
	if v.Home != nil {
		return fmt.Sprintf("moved for job %d", v.For)
	}
	return fmt.Sprintf("preempted by job %d", v.For)
}

// Outcome reports whether a job that was asked to make room waits again, by how it
// ended. Success is success, unless it reported a checkpoint after it was asked: then
// it has stopped where it can go on.
func (v *Preempted) Outcome(r *engine.Report, saved bool) (job.State, job.Flags, bool) {
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

func (s *State) applyPreempted(r *store.Record, staged any) error {
	v, err := payloadOf[Preempted](r, staged)
	if err != nil {
		return err
	}
	e, err := s.jobOfRecord(r)
	if e == nil {
		return err
	}
	switch {
	case e.State == job.Pending && staged == nil: // older versions wrote it without the start
		s.Skipped = append(s.Skipped, fmt.Errorf("journal record %d (%s): job %s is %s and makes room for nobody", r.Seq, r.Kind, e.Name(), e.State))
		return nil
	case !e.State.Holds():
		return fmt.Errorf("job %s is %s and makes room for job %d", e.Name(), e.State, v.For)
	}
	s.markChanged(e, r)
	e.Last.Preempted, e.Last.asked = &v, ToNanos(r.At)
	if v.Mode != account.PreemptSuspend {
		e.Flags |= job.Stopping
	}
	e.EnsureExtra().message = v.Message()
	e.noteMigration(&v, r)
	return nil
}

func (s *State) applySaved(r *store.Record, e *JobRecord, v Saved) error {
	if !e.State.Holds() {
		return fmt.Errorf("job %s is %s and has saved something", e.Name(), e.State)
	}
	s.markChanged(e, r)
	at := ToNanos(r.At)
	if !v.At.IsZero() {
		at = min(at, ToNanos(v.At))
	}
	e.Last.Saved = max(e.Last.Saved, at)
	m := e.EnsureExtra()
	m.kept, m.keptAs = at, v.As
	s.Events = append(s.Events, sched.Saved{Job: e.ID, At: sched.Instant(at)})
	return nil
}

// UnsavedFor is for how long a running attempt has reported no checkpoint, of a job that has reported one
// before, in this attempt or in an earlier one. ok is false of other jobs.
func (e *JobRecord) UnsavedFor(now int64) (age time.Duration, ok bool) {
	if e.State != job.Running || e.Extra == nil || e.Extra.kept == 0 || e.Last.started == 0 {
		return 0, false
	}
	return time.Duration(max(now-max(e.Last.started, e.Extra.kept), 0)), true
}

// countLostWork counts what an attempt that made room had done since its last checkpoint, in
// device-seconds (CPUs count nothing).
func (s *State) countLostWork(e *JobRecord, ended int64) {
	a := e.Last
	if a.Preempted == nil || a.started == 0 || ended <= a.started {
		return
	}
	_, devices := a.heldDevices()
	s.Counts.Preempted++
	s.Counts.PreemptedTime += devices * time.Duration(ended-a.started).Seconds()
	s.Counts.LostTime += devices * time.Duration(max(ended-max(a.started, a.Saved), 0)).Seconds()
}

// markStopping tells the core that a running job is being ended.
func (s *State) markStopping(e *JobRecord) {
	e.Flags |= job.Stopping
	s.Events = append(s.Events, sched.Stopping{Job: e.ID})
}
