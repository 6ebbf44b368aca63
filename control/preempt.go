package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/account"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
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
}

// saved says that a job has reported a checkpoint.
type saved struct {
	State *job.State `json:"state,omitempty"`
}

// preempt stages a decision of the core about a job that holds resources, or that is
// to be started by this step too.
func (l *loop) preempt(d sched.Preempt, starting []held) {
	e := l.state.jobs[d.Job]
	starts := slices.ContainsFunc(starting, func(h held) bool { return h.Allocation.Job == d.Job })
	if e == nil || !e.state.Holds() && !starts {
		return // the ledger has refused its start
	}
	state := job.Running
	if e.state == job.Suspended {
		state = job.Suspended
	}
	v := preempted{For: d.For, Mode: d.Mode, Grace: d.Grace, State: &state}
	if v.Grace == 0 {
		v.Grace = l.cfg.Grace
	}
	if s := e.form.spec.Signal; s != nil && d.Mode == account.PreemptCheckpoint {
		v.Signal = s.Signal
	}
	l.stage(kindPreempted, e.id, job.Actor{}, v, func() { l.stop(e, v.Grace, v.Signal, v.why()) })
}

func (v *preempted) why() string { return fmt.Sprintf("taken back for job %d", v.For) }

// outcome reports whether a job that was asked to make room waits again, by how it
// ended. Success is success, unless it reported a checkpoint after it was asked: then
// it has stopped where it can go on.
func (v *preempted) outcome(r *engine.Report, saved bool) (job.State, job.Flags, bool) {
	switch {
	case r.Cause == engine.Exited && r.Exit.OK() && !saved:
		return job.Completed, 0, false
	case r.Cause == engine.TimedOut || r.Cause == engine.OutOfMemory:
		return 0, 0, false
	case v.Mode == account.PreemptCancel:
		return job.Preempted, 0, true
	}
	return job.Pending, job.Requeued, true
}

func (s *state) applyPreempted(r *store.Record, staged any) error {
	v, err := value[preempted](r, staged)
	if err != nil {
		return err
	}
	e, err := s.job(r)
	if e == nil {
		return err
	}
	if !e.state.Holds() {
		return fmt.Errorf("job %s is %s and makes room for job %d", e.Name(), e.state, v.For)
	}
	s.change(e, r)
	e.last.preempted, e.last.asked = &v, nanos(r.At)
	e.flags |= job.Stopping
	e.extra().message = v.why()
	return nil
}

func (s *state) applySaved(r *store.Record, staged any) error {
	if _, err := value[saved](r, staged); err != nil {
		return err
	}
	e, err := s.job(r)
	if e == nil {
		return err
	}
	if !e.state.Holds() {
		return fmt.Errorf("job %s is %s and has saved something", e.Name(), e.state)
	}
	s.change(e, r)
	e.last.saved = nanos(r.At)
	s.events = append(s.events, sched.Saved{Job: e.id, At: sched.Instant(nanos(r.At))})
	return nil
}

// stopping tells the core that a running job is being ended.
func (s *state) stopping(e *entry) {
	e.flags |= job.Stopping
	s.events = append(s.events, sched.Stopping{Job: e.id})
}

// askSaved notes that a job has reported a checkpoint.
func (l *loop) askSaved(w *wish, e *entry, req *request) error {
	if !e.state.Holds() {
		return fault.New(fault.Conflict, "job %s does not run", e.Name())
	}
	l.stageFor(req, kindSaved, e.id, w.by, saved{State: stateOf(e.state)}, nil)
	return nil
}
