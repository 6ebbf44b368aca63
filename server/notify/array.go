package notify

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/model/job"
)

// array is an array that is written about as a whole.
type array struct {
	tasks uint32
	began bool
	never bool
	ended map[uint32]outcome // by index; a task that runs again is taken out
}

// outcome is how a task ended.
type outcome struct {
	state job.State
	exit  job.ExitCode
}

func newArray(a *job.ArrayTask) *array {
	return &array{tasks: a.Count, ended: map[uint32]outcome{}}
}

// noteTask takes a task as it is.
func (a *array) noteTask(j *job.Job) {
	switch {
	case j.State.Final():
		a.ended[j.Array.Index] = outcome{j.State, j.Exit}
	default:
		delete(a.ended, j.Array.Index)
	}
	if hasStarted(j) {
		a.began = true
	}
}

// addEvent takes an event of a task; ok is true if it is one of the array: the first
// task begins, the last one has ended.
func (a *array) addEvent(j *job.Job, e Event, wanted *job.Mail) (of Event, s *summary, ok bool) {
	switch e {
	case Begin: // perhaps of a task that has ended meanwhile: its end comes next
		first := !a.began
		a.began = true
		return e, &summary{}, first
	case InvalidDepend:
		first := !a.never
		a.never = true
		return e, &summary{}, first
	}
	a.noteTask(j)
	if !a.allEnded() {
		return e, nil, false
	}
	s = a.summarizeTasks()
	if e = End; s.failed {
		e, _ = requestedEvent(wanted, Fail)
	}
	return e, s, true
}

// allEnded reports whether every task has ended.
func (a *array) allEnded() bool { return uint32(len(a.ended)) >= a.tasks }

// summary is how the tasks of an array ended, as Slurm puts it.
type summary struct {
	text   string // "COMPLETED, ExitCode [0-0]", "Mixed, MaxSignal [9]"; empty before the end
	failed bool
}

func (a *array) summarizeTasks() *summary {
	first, mixed, s := true, false, &summary{}
	var state job.State
	low, high, signal := 0, 0, 0
	for _, o := range a.ended {
		if first {
			state, low, high, first = o.state, o.exit.Status, o.exit.Status, false
		}
		mixed = mixed || o.state != state
		low, high, signal = min(low, o.exit.Status), max(high, o.exit.Status), max(signal, o.exit.Signal)
		s.failed = s.failed || o.state != job.Completed && o.state != job.Cancelled
	}
	s.text = state.String()
	if mixed {
		s.text = "Mixed"
	}
	if signal > 0 {
		s.text += fmt.Sprintf(", MaxSignal [%d]", signal)
	} else {
		s.text += fmt.Sprintf(", ExitCode [%d-%d]", low, high)
	}
	return s
}
