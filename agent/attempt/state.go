package attempt

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// Kind is what a Record says.
type Kind string

// The kinds of record, in the order in which they first occur.
const (
	KindTake   Kind = "take"   // the attempt Ref sat down; what was before concerns another one
	KindReady  Kind = "ready"  // prepared; waits for the barrier
	KindRefuse Kind = "refuse" // it cannot be prepared: Cause, Text say why
	KindRun    Kind = "run"    // the barrier was opened at Time
	KindTask   Kind = "task"   // a task began or ended: Task
	KindEnding Kind = "ending" // the node's part is being ended: Cause, Text
	KindExit   Kind = "exit"   // the batch script ended: Exit, Cause
	KindNote   Kind = "note"   // Text alone changed
	KindHeld   Kind = "held"   // every process was suspended, or goes on: Held
	KindSaved  Kind = "saved"  // the job reported a checkpoint by its file: Saved
	KindGone   Kind = "gone"   // nothing of it lives on the node, proved
	KindLimit  Kind = "limit"  // the time limit was changed: Limit
	KindState  Kind = "state"  // State replaces everything before
	KindUsage  Kind = "usage"  // an answer to OpUsage, never journaled: Used
	KindServes Kind = "serves" // whether the attempt serves changed, never journaled: Serves
)

// Record is one change of a node's part of an attempt, as a supervisor journals
// and sends it.
type Record struct {
	Kind  Kind               `json:"kind"`
	Ref   engine.Ref         `json:"ref,omitzero"` // of KindTake, and of everything that is sent
	Time  time.Time          `json:"time"`
	Task  *engine.TaskReport `json:"task,omitempty"`
	Cause engine.Cause       `json:"cause,omitempty"`
	Exit  *job.ExitCode      `json:"exit,omitempty"`
	Text  string             `json:"text,omitempty"`
	Files []string           `json:"files,omitempty"`
	Held  bool               `json:"held,omitempty"`
	Turn  uint64             `json:"turn,omitempty"`  // of KindHeld: of the command that was obeyed
	Limit *time.Duration     `json:"limit,omitempty"` // 0: none
	Stuck string             `json:"stuck,omitempty"` // of KindNote: processes that SIGKILL does not end
	// OOMKills of KindNote is how many processes the kernel ended at the memory limit.
	OOMKills int           `json:"oom_kills,omitempty"`
	State    *State        `json:"state,omitempty"`
	Saved    *engine.Saved `json:"saved,omitempty"`
	Used     *Usage        `json:"used,omitempty"`  // of KindGone and KindUsage
	Ports    []int         `json:"ports,omitempty"` // of KindReady: of an attempt that serves
	Image    string        `json:"image,omitempty"` // of KindReady: digest of the image of the job's container
	Serves   *Serves       `json:"serves,omitempty"`
	// Unsaved says that the supervisor could not write its journal up to here;
	// it keeps the facts in memory and tries again.
	Unsaved bool `json:"unsaved,omitempty"`
}

// Whole reports whether a record has what its kind needs. One that has not is none of
// ours, and is not to be applied.
func (r *Record) Whole() bool {
	switch r.Kind {
	case KindTask:
		return r.Task != nil
	case KindState:
		return r.State != nil
	case KindSaved:
		return r.Saved != nil
	case KindLimit:
		return r.Limit != nil
	case KindServes:
		return r.Serves != nil
	}
	return true
}

// State is what is known of a node's part of an attempt: its records, folded.
type State struct {
	Phase   engine.Phase        `json:"phase"`
	Refused bool                `json:"refused,omitempty"`
	Started time.Time           `json:"started,omitzero"`
	Ended   time.Time           `json:"ended,omitzero"`
	Cause   engine.Cause        `json:"cause,omitempty"`
	Exit    *job.ExitCode       `json:"exit,omitempty"` // of the batch script; head node only
	Text    string              `json:"text,omitempty"`
	Files   []string            `json:"files,omitempty"`
	Tasks   []engine.TaskReport `json:"tasks,omitempty"` // by step and rank
	Gone    bool                `json:"gone,omitempty"`
	Held    bool                `json:"held,omitempty"`  // suspended
	Turn    uint64              `json:"turn,omitempty"`  // of the last OpSuspend or OpResume that was obeyed
	Limit   *time.Duration      `json:"limit,omitempty"` // as it was changed to; nil: that of the launch
	Stuck   string              `json:"stuck,omitempty"` // processes that SIGKILL does not end
	Unsaved bool                `json:"unsaved,omitempty"`
	// OOMKills is how many processes of a node other than the head the kernel ended at the
	// memory limit.
	OOMKills int           `json:"oom_kills,omitempty"`
	Saved    *engine.Saved `json:"saved,omitempty"`  // never written
	Used     *Usage        `json:"used,omitempty"`   // once it is Gone; nil: not known; never written
	Ports    []int         `json:"ports,omitempty"`  // head only: in the order of job.Serve.Ports
	Image    string        `json:"image,omitempty"`  // digest of the image of the job's container; empty: none, or not known
	Serves   *Serves       `json:"serves,omitempty"` // head only; nil: it does not serve, or not yet; never written
}

// Serves is what the head's supervisor sees of an attempt that serves.
type Serves struct {
	Host  string `json:"host"`            // at which it listens, or is likely to
	Ready bool   `json:"ready"`           // it is to get traffic
	Began bool   `json:"began,omitempty"` // its startup probe has passed
	Why   string `json:"why,omitempty"`   // it is not ready, for people
}

// Usage is what a node's part of an attempt used.
type Usage struct {
	Node  rusage.Node   `json:"node"`
	Steps []rusage.Step `json:"steps,omitempty"` // by number, of the tasks here; at most rusage.MaxSteps
	Left  int           `json:"left,omitempty"`  // steps that are not in Steps
	At    time.Time     `json:"at,omitzero"`     // when it was measured, while the attempt runs
}

// JoinUsage is the use of an attempt, of the parts of its nodes in order; nil stands for a part of
// which nothing is known. nil: nothing is known at all.
func JoinUsage(parts []*Usage) *rusage.Record {
	var nodes []rusage.Node
	var steps [][]rusage.Step
	left := 0
	var at time.Time
	for _, p := range parts {
		if p != nil {
			if p.At.After(at) {
				at = p.At
			}
			nodes, steps, left = append(nodes, p.Node), append(steps, p.Steps), max(left, p.Left)
		}
	}
	r := rusage.Make(nodes, steps)
	if r != nil {
		r.LeftSteps += left
		r.At = at
	}
	return r
}

// Apply folds one record, which is Whole, into the state.
func (s *State) Apply(r Record) {
	s.Unsaved = r.Unsaved
	if r.Text != "" {
		s.Text = r.Text
	}
	if r.Stuck != "" {
		s.Stuck = r.Stuck
	}
	s.OOMKills = max(s.OOMKills, r.OOMKills)
	s.Files = append(s.Files, r.Files...)
	switch r.Kind {
	case KindTake:
		*s = State{}
	case KindHeld:
		s.Held, s.Turn = r.Held, max(s.Turn, r.Turn)
	case KindSaved:
		s.Saved = r.Saved
	case KindLimit:
		s.Limit = r.Limit
	case KindReady:
		s.Phase = max(s.Phase, engine.Ready)
		s.Ports, s.Image = r.Ports, r.Image
	case KindServes:
		s.Serves = r.Serves
	case KindRefuse:
		s.Refused, s.Cause = true, cmp.Or(r.Cause, engine.LaunchFailed)
	case KindRun:
		s.Phase, s.Started = max(s.Phase, engine.Running), r.Time
	case KindTask:
		s.setTask(*r.Task)
	case KindEnding:
		s.Phase = max(s.Phase, engine.Ending)
		s.Cause = cmp.Or(s.Cause, r.Cause)
	case KindExit:
		s.Phase = max(s.Phase, engine.Ending)
		s.Exit, s.Ended = r.Exit, r.Time
		s.Cause = cmp.Or(s.Cause, r.Cause)
	case KindGone:
		s.Phase, s.Gone, s.Stuck, s.Used, s.Serves = engine.Ended, true, "", r.Used, nil
		if s.Ended.IsZero() {
			s.Ended = r.Time
		}
	case KindState:
		*s = *r.State
		s.Tasks, s.Files = slices.Clone(s.Tasks), slices.Clone(s.Files)
		s.Unsaved = r.Unsaved
	}
}

func (s *State) setTask(t engine.TaskReport) {
	i, found := slices.BinarySearchFunc(s.Tasks, t, func(a, b engine.TaskReport) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Rank, b.Rank))
	})
	if found {
		s.Tasks[i] = t
		return
	}
	s.Tasks = slices.Insert(s.Tasks, i, t)
}

// Clone returns a state that shares nothing with s.
func (s *State) Clone() *State {
	c := *s
	c.Tasks, c.Files = slices.Clone(s.Tasks), slices.Clone(s.Files)
	return &c
}

// CauseOf returns the cause of a launch that fails with an error. If the machine has no disk
// space, processes, descriptors or memory left, the job may be launched again. A fault of the
// program would be there at the next launch, too, and so would its owner's full quota.
func CauseOf(err error) engine.Cause {
	program := errors.As(err, new(ProgramError))
	if program && errors.Is(err, unix.EDQUOT) {
		return engine.Refused
	}
	for _, e := range []error{unix.ENOSPC, unix.EDQUOT, unix.EAGAIN, unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
		if errors.Is(err, e) {
			return engine.Unready
		}
	}
	if program {
		return engine.Refused
	}
	return engine.LaunchFailed
}

// ProgramError is a fault of the program that the job asked to run: of its working directory, its
// interpreter, or a file for its input or output.
type ProgramError struct{ Err error }

// Error is the fault's own text.
func (e ProgramError) Error() string { return e.Err.Error() }

// Unwrap is the fault.
func (e ProgramError) Unwrap() error { return e.Err }

// LimitText says that a time limit has passed.
func LimitText(d time.Duration) string {
	text := d.String()
	if d%time.Second == 0 {
		text = slurmfmt.FormatTimeLimit(d)
	}
	return "its time limit of " + text + " has passed"
}
