package job

import (
	"fmt"
	"slices"
)

// State is a job's base state, Slurm's numbering first (job_state_codes.html) and
// one state of ours after it. What else is true of a job stands in its Flags.
type State uint8

// The states.
const (
	Pending     State = iota // waits, holds nothing
	Running                  // holds an allocation; its gang starts, runs or is being stopped
	Suspended                // holds an allocation, its processes are stopped
	Completed                // every task ended with exit 0
	Cancelled                // ended by its owner or an administrator
	Failed                   // a task ended otherwise, or it could not be started
	Timeout                  // ended at its time limit
	NodeFail                 // ended because a node was lost
	Preempted                // ended for a job that had the right to its resources
	BootFail                 // a node could not be made ready
	Deadline                 // could not end before its deadline
	OutOfMemory              // the kernel killed it at its memory limit
	Lost                     // nobody can prove how it ended, and it may not run again
	numStates
)

var stateNames = [numStates]struct{ long, short string }{
	{"PENDING", "PD"},
	{"RUNNING", "R"},
	{"SUSPENDED", "S"},
	{"COMPLETED", "CD"},
	{"CANCELLED", "CA"},
	{"FAILED", "F"},
	{"TIMEOUT", "TO"},
	{"NODE_FAIL", "NF"},
	{"PREEMPTED", "PR"},
	{"BOOT_FAIL", "BF"},
	{"DEADLINE", "DL"},
	{"OUT_OF_MEMORY", "OOM"},
	{"LOST", "LO"},
}

// String is Slurm's long name of the state.
func (s State) String() string {
	if s < numStates {
		return stateNames[s].long
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Short is Slurm's short code of the state; LO is ours.
func (s State) Short() string {
	if s < numStates {
		return stateNames[s].short
	}
	return "?"
}

// MarshalText writes the long name.
func (s State) MarshalText() ([]byte, error) {
	if s >= numStates {
		return nil, fmt.Errorf("job state %d does not exist", uint8(s))
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads a long name.
func (s *State) UnmarshalText(text []byte) error {
	for i, n := range stateNames {
		if n.long == string(text) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("no job state is called %q", text)
}

// States lists every state in order.
func States() []State {
	all := make([]State, numStates)
	for i := range all {
		all[i] = State(i)
	}
	return all
}

// Final reports whether the job has ended. Only its owner's requeue leaves a
// final state, as a new attempt.
func (s State) Final() bool { return s >= Completed && s < numStates }

// Holds reports whether a job in this state holds an allocation.
func (s State) Holds() bool { return s == Running || s == Suspended }

// Flags are facts beside the base state; several may hold at once.
type Flags uint16

// The flags.
const (
	Configuring  Flags = 1 << iota // allocation granted, gang not yet ready
	Completing                     // ended, but not all of its work is proved gone
	Requeued                       // waits again after an attempt
	Held                           // waits until released
	LaunchFailed                   // an attempt could not be started
	Stopping                       // a signal to end was sent, grace is running
	Uncertain                      // part of its work cannot be proved running or gone
	HeldAdmin                      // with Held: by an administrator, who alone releases it
	HeldFailed                     // with Held: because its attempts failed again and again
	SpecialExit                    // with Held: requeued to Slurm's state SPECIAL_EXIT
)

// Cause says who may bring a transition about.
type Cause string

// The causes.
const (
	ByScheduler Cause = "scheduler" // a decision of sched
	ByUser      Cause = "user"      // its owner or an administrator
	ByEngine    Cause = "engine"    // a report of what happened
	ByControl   Cause = "control"   // the control loop: limits of time, proofs that cannot be had
)

// Transition is one allowed change of state.
type Transition struct {
	From, To State
	By       []Cause
	When     string
}

// transitions is the one table of the state machine; docs/reference/states.md is made from
// it, and its test walks every pair.
var transitions = []Transition{
	{Pending, Running, []Cause{ByScheduler}, "its whole gang was placed and the allocation is in the journal"},
	{Pending, Cancelled, []Cause{ByUser}, "cancelled while it waited"},
	{Pending, Failed, []Cause{ByControl}, "it can never start, or starting it failed for good"},
	{Pending, Deadline, []Cause{ByControl}, "it could no longer end before its deadline"},

	{Running, Pending, []Cause{ByUser, ByScheduler, ByEngine}, "requeued: asked for, preempted, its node was lost, or its retries or the site's rules cover its failure; the old attempt is proved ended"},
	{Running, Suspended, []Cause{ByUser, ByScheduler}, "its processes were stopped, the allocation stays"},
	{Running, Completed, []Cause{ByEngine}, "every task ended with exit 0"},
	{Running, Cancelled, []Cause{ByUser}, "cancelled while it ran, and proved ended"},
	{Running, Failed, []Cause{ByEngine, ByControl}, "a task ended with another exit code or a signal, or the launch failed"},
	{Running, Timeout, []Cause{ByEngine, ByControl}, "its time limit ended it"},
	{Running, NodeFail, []Cause{ByEngine}, "a node was lost and the job may not be requeued"},
	{Running, Preempted, []Cause{ByScheduler}, "ended for another job and may not be requeued"},
	{Running, BootFail, []Cause{ByEngine}, "a node could not be made ready"},
	{Running, Deadline, []Cause{ByControl}, "its deadline ended it"},
	{Running, OutOfMemory, []Cause{ByEngine}, "the kernel killed a task at the memory limit"},
	{Running, Lost, []Cause{ByControl}, "its work cannot be proved ended and it may not be requeued"},

	{Suspended, Running, []Cause{ByUser, ByScheduler}, "its processes were continued"},
	{Suspended, Pending, []Cause{ByUser, ByScheduler, ByEngine}, "requeued from suspension"},
	{Suspended, Cancelled, []Cause{ByUser}, "cancelled while suspended"},
	{Suspended, Completed, []Cause{ByEngine}, "its last task had ended when it was stopped"},
	{Suspended, Failed, []Cause{ByEngine, ByControl}, "a task was killed while it was stopped"},
	{Suspended, Timeout, []Cause{ByEngine, ByControl}, "its time limit ended it"},
	{Suspended, NodeFail, []Cause{ByEngine}, "a node was lost"},
	{Suspended, Preempted, []Cause{ByScheduler}, "ended for another job"},
	{Suspended, Deadline, []Cause{ByControl}, "its deadline ended it"},
	{Suspended, OutOfMemory, []Cause{ByEngine}, "the kernel killed a task at the memory limit"},
	{Suspended, Lost, []Cause{ByControl}, "its work cannot be proved ended"},

	{Completed, Pending, []Cause{ByUser}, "its owner ran it again"},
	{Cancelled, Pending, []Cause{ByUser}, "its owner ran it again"},
	{Failed, Pending, []Cause{ByUser}, "its owner ran it again"},
	{Timeout, Pending, []Cause{ByUser}, "its owner ran it again"},
	{NodeFail, Pending, []Cause{ByUser}, "its owner ran it again"},
	{Preempted, Pending, []Cause{ByUser}, "its owner ran it again"},
	{BootFail, Pending, []Cause{ByUser}, "its owner ran it again"},
	{Deadline, Pending, []Cause{ByUser}, "its owner ran it again"},
	{OutOfMemory, Pending, []Cause{ByUser}, "its owner ran it again"},
}

// Transitions returns a copy of the table.
func Transitions() []Transition { return slices.Clone(transitions) }

// TransitionError is a change of state that the table does not allow.
type TransitionError struct {
	From, To State
	By       Cause
}

// Error names both states and the cause.
func (e *TransitionError) Error() string {
	return fmt.Sprintf("a job cannot go from %s to %s by %s", e.From, e.To, e.By)
}

// Check returns nil if the table lets the cause take a job from one state to the
// other, a *TransitionError otherwise. Staying in a state is no transition.
func Check(from, to State, by Cause) error {
	for _, t := range transitions {
		if t.From == from && t.To == to && slices.Contains(t.By, by) {
			return nil
		}
	}
	return &TransitionError{from, to, by}
}
