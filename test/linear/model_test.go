package linear

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// phase is a job's modelJob, as coarse as the rules need it.
type phase string

const (
	pending   phase = "pending"
	running   phase = "running"
	cancelled phase = "cancelled"
	ended     phase = "ended" // every other final state
)

// modelJob is one job as the model sees it. The zero state: there is no such job.
type modelJob struct {
	Exists      bool
	Phase       phase
	Held, Admin bool
	Attempt     int
	Again       bool // the engine may requeue it
	Cancel      bool // asked for, not carried out yet
	Requeue     bool // asked for, not carried out yet …
	RequeueHold bool // … and it is held then
	Comment     string
}

// verb is what a client asks for.
type verb string

const (
	submit  verb = "submit"
	cancel  verb = "cancel"
	hold    verb = "hold"
	release verb = "release"
	requeue verb = "requeue"
	update  verb = "update"
	show    verb = "show"
	list    verb = "list"
)

// input is an operation on one job.
type input struct {
	Verb    verb
	Admin   bool   // of hold and release
	Held    bool   // of submit and requeue
	Again   bool   // of submit
	Comment string // of submit and update

	Most int // attempts that the job has at the end of the history
}

// answer is how an operation was answered.
type answer string

const (
	done     answer = "done"
	unknown  answer = "no answer"
	refused  answer = "refused for now" // nothing of it was kept
	notFound answer = "not found"
	conflict answer = "conflict"
	denied   answer = "denied"
)

// output is the answer to an operation; the rest is of show and list.
type output struct {
	Answer   answer
	Phase    phase
	Held     bool
	Admin    bool
	Attempt  int
	Stopping bool
	Comment  string
}

// model is the sequential specification of one job.
var model = porcupine.NondeterministicModel{
	Init: func() []any { return []any{modelJob{}} },
	Step: func(s, in, out any) []any {
		var next []any
		for _, s := range step(s.(modelJob), in.(input), out.(output)) {
			next = append(next, s)
		}
		return next
	},
	DescribeOperation: func(in, out any) string { return describe(in.(input), out.(output)) },
	DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
}

// step returns the states after an operation with its answer; none: it cannot have
// been answered so. Between two operations a job goes on by itself.
func step(s modelJob, in input, out output) (next []modelJob) {
	if out.Answer == refused { // package store: Exhausted says that nothing was written
		return []modelJob{s}
	}
	if out.Answer == unknown { // nothing came of it, or all of it
		next = append(next, s)
	}
	for _, s := range onward(s, in.Most) {
		after, want := apply(s, in)
		switch {
		case out.Answer == unknown && want == done:
			next = add(next, after)
		case out.Answer == want && (in.Verb != show && in.Verb != list || shows(s, out)):
			next = add(next, after)
		}
	}
	return next
}

func add(list []modelJob, s modelJob) []modelJob {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// shows reports whether a job looks like that: nothing is shown of jobs that do not
// exist, and everything of those that do.
func shows(s modelJob, out output) bool {
	return !s.Exists || out.Phase == s.Phase && out.Held == s.Held && out.Admin == s.Admin && out.Attempt == s.Attempt &&
		out.Comment == s.Comment && out.Stopping == (s.Phase == running && (s.Cancel || s.Requeue))
}

// apply is what an operation does to a job, and how it is answered.
func apply(s modelJob, in input) (modelJob, answer) {
	final := s.Phase == cancelled || s.Phase == ended
	switch {
	case in.Verb == submit && s.Exists: // numbers are given once
		return s, conflict
	case in.Verb == submit: // control.Submit: durable before its number is known
		return modelJob{Exists: true, Phase: pending, Held: in.Held, Again: in.Again, Comment: in.Comment}, done
	case !s.Exists: // control.Change: an error for each job that there is not
		return s, notFound
	}
	switch in.Verb {
	case cancel: // control.Cancel: pending ones at once, running ones when they have ended, ended ones are no error
		switch s.Phase {
		case pending:
			s.Phase = cancelled
		case running:
			s.Cancel, s.Requeue, s.RequeueHold = true, false, false
		}
	case hold, release: // control.Hold; what an administrator holds only he releases
		switch {
		case final:
			return s, conflict
		case in.Verb == hold:
			s.Held, s.Admin = true, s.Admin || in.Admin
		case s.Admin && !in.Admin:
			return s, denied
		default:
			s.Held, s.Admin = false, false
		}
	case requeue: // control.Requeue; docs/reference/states.md: its owner may run every ended job again
		switch {
		case s.Phase == pending:
			s.Held = s.Held || in.Held
		case final:
			s.Phase, s.Held = pending, s.Held || in.Held
		default:
			s.Requeue, s.RequeueHold = true, in.Held
		}
	case update: // control.Update: a comment changes until the job has ended
		if final {
			return s, conflict
		}
		s.Comment = in.Comment
	}
	return s, done
}

// onward returns a state and all that it may become by itself, with at most so many
// attempts: docs/reference/states.md, by scheduler and engine.
func onward(s modelJob, most int) []modelJob {
	all := []modelJob{s}
	for i := 0; i < len(all); i++ {
		for _, next := range moves(all[i]) {
			if next.Attempt <= most {
				all = add(all, next)
			}
		}
	}
	return all
}

// moves are the steps that a job may make by itself.
func moves(s modelJob) (next []modelJob) {
	over := s
	over.Cancel, over.Requeue, over.RequeueHold = false, false, false
	switch {
	case s.Phase == pending && !s.Held: // a held job does not start
		over.Phase, over.Attempt = running, s.Attempt+1
		return []modelJob{over}
	case s.Phase != running:
		return nil
	}
	over.Phase = ended // before anybody could stop it, too
	next = append(next, over)
	if s.Cancel {
		over.Phase = cancelled
		next = append(next, over)
	}
	if s.Requeue || s.Again && !s.Cancel {
		over.Phase, over.Held = pending, s.Held || s.Requeue && s.RequeueHold
		next = append(next, over)
		if s.Again && s.Attempt >= 5 { // control holds a job whose attempts fail again and again
			over.Held = true
			next = append(next, over)
		}
	}
	return next
}

// describe tells an operation as a line of a story.
func describe(in input, out output) string {
	text := string(in.Verb)
	for name, is := range map[string]bool{" as administrator": in.Admin, " held": in.Held, " that may run again": in.Again} {
		if is {
			text += name
		}
	}
	if in.Comment != "" {
		text += fmt.Sprintf(" %q", in.Comment)
	}
	if in.Verb != show && in.Verb != list || out.Answer != done {
		return text + ": " + string(out.Answer)
	}
	return fmt.Sprintf("%s: %s, attempt %d, held %t, by an administrator %t, stopping %t, %q",
		text, out.Phase, out.Attempt, out.Held, out.Admin, out.Stopping, out.Comment)
}
