package notify

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Event is what a mail is about, in the words of --mail-type.
type Event string

// The events.
const (
	Begin         Event = "BEGIN"
	End           Event = "END"
	Fail          Event = "FAIL"
	Requeue       Event = "REQUEUE"
	InvalidDepend Event = "INVALID_DEPEND"
	TimeLimit     Event = "TIME_LIMIT"
	TimeLimit90   Event = "TIME_LIMIT_90"
	TimeLimit80   Event = "TIME_LIMIT_80"
	TimeLimit50   Event = "TIME_LIMIT_50"

	// ArrayTasks is no event: it asks for one mail for each task of an array.
	ArrayTasks Event = "ARRAY_TASKS"
)

// ofArray reports whether the event is told once for a whole array.
func (e Event) ofArray() bool { return e == Begin || e == End || e == Fail || e == InvalidDepend }

// Change is a job before and after something happened to it. Neither is written to
// or kept.
type Change struct {
	Before *job.Job // nil: it was submitted just now. Its state, flags and attempt, and whether it started, are looked at; its specification may be missing
	After  *job.Job
	Never  bool // it has just become certain that its dependency can never be met
}

// Decide returns the events of a change in the order in which they are told. A job
// that fails has the event Fail; who asks for END alone is told of it as the end
// (see requestedEvent). It does not look at what the job asks for.
func Decide(c Change) []Event {
	var out []Event
	before, after := job.Pending, c.After.State
	same := false // still in the same attempt
	if c.Before != nil {
		before, same = c.Before.State, c.Before.Attempt == c.After.Attempt
	}
	if c.Never {
		out = append(out, InvalidDepend)
	}
	switch {
	case before != job.Pending && after == job.Pending:
		return append(out, Requeue)
	case hasStarted(c.After) && (!same || before.Holds() && !hasStarted(c.Before)):
		out = append(out, Begin)
	}
	if !after.Final() || before.Final() && same {
		return out
	}
	switch after {
	case job.Completed, job.Cancelled:
		return append(out, End)
	case job.Timeout:
		return append(out, TimeLimit, Fail)
	}
	return append(out, Fail)
}

// hasStarted reports whether the job's gang has started in its present attempt.
func hasStarted(j *job.Job) bool {
	return j.State != job.Pending && j.Flags&job.Configuring == 0 && !j.Started.IsZero()
}

// wantsEvent reports whether a message of that type is asked for.
func wantsEvent(m *job.Mail, e Event) bool { return m != nil && slices.Contains(m.Types, string(e)) }

// requestedEvent returns the event under which a job is told of e: a failure is also an end.
func requestedEvent(m *job.Mail, e Event) (Event, bool) {
	switch {
	case wantsEvent(m, e):
		return e, true
	case e == Fail && wantsEvent(m, End):
		return End, true
	}
	return e, false
}
