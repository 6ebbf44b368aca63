package notify

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

var epoch = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// view is a job in a state; a second attempt with started is "R2".
func view(state job.State, attempt uint32, started bool, flags ...job.Flags) *job.Job {
	j := &job.Job{ID: 7, State: state, Attempt: attempt, Submitted: epoch, Spec: &job.Spec{
		Name: "train", Owner: job.Owner{User: "anna"}, WorkDir: "/home/anna", Output: job.Output{Stdout: "slurm-%j.out"},
		Mail: &job.Mail{Types: []string{"BEGIN", "END", "FAIL"}},
	}}
	for _, f := range flags {
		j.Flags |= f
	}
	if started {
		j.Started = epoch.Add(time.Minute)
	}
	if state.Final() {
		j.Ended = epoch.Add(2*time.Minute + 5*time.Second)
	}
	return j
}

func TestDecide(t *testing.T) {
	pending, again := view(job.Pending, 0, false), view(job.Pending, 1, true)
	running := view(job.Running, 1, true)
	for _, c := range []struct {
		name          string
		before, after *job.Job
		never         bool
		want          string
	}{
		{"submitted", nil, pending, false, ""},
		{"its gang gathers", pending, view(job.Running, 1, false, job.Configuring), false, ""},
		{"its gang gathers, start noted", pending, view(job.Running, 1, true, job.Configuring), false, ""},
		{"its gang starts", view(job.Running, 1, true, job.Configuring), running, false, "BEGIN"},
		{"starts at once", pending, running, false, "BEGIN"},
		{"a flag changes", running, view(job.Running, 1, true, job.Uncertain), false, ""},
		{"suspended", running, view(job.Suspended, 1, true), false, ""},
		{"continued", view(job.Suspended, 1, true), running, false, ""},
		{"completed", running, view(job.Completed, 1, true), false, "END"},
		{"cancelled", running, view(job.Cancelled, 1, true), false, "END"},
		{"cancelled while it waited", pending, view(job.Cancelled, 0, false), false, "END"},
		{"cancelled while it waited again", again, view(job.Cancelled, 1, true), false, "END"},
		{"failed", running, view(job.Failed, 1, true), false, "FAIL"},
		{"could not be started", view(job.Running, 1, false, job.Configuring), view(job.Failed, 1, false, job.LaunchFailed), false, "FAIL"},
		{"a node was lost", running, view(job.NodeFail, 1, true), false, "FAIL"},
		{"time limit", running, view(job.Timeout, 1, true), false, "TIME_LIMIT FAIL"},
		{"deadline while it waited", pending, view(job.Deadline, 0, false), false, "FAIL"},
		{"start and end in one", pending, view(job.Completed, 1, true), false, "BEGIN END"},
		{"completing is over", view(job.Completed, 1, true, job.Completing), view(job.Completed, 1, true), false, ""},
		{"requeued", running, again, false, "REQUEUE"},
		{"run again by its owner", view(job.Failed, 1, true), again, false, "REQUEUE"},
		{"second attempt", again, view(job.Running, 2, true), false, "BEGIN"},
		{"second attempt, all in one", again, view(job.Failed, 2, true), false, "BEGIN FAIL"},
		{"run again, start and end in one", view(job.Failed, 1, true), view(job.Completed, 2, true), false, "BEGIN END"},
		{"never", pending, pending, true, "INVALID_DEPEND"},
		{"never, and ended for it", pending, view(job.Cancelled, 0, false), true, "INVALID_DEPEND END"},
	} {
		var got []string
		for _, e := range Decide(Change{Before: c.before, After: c.after, Never: c.never}) {
			got = append(got, string(e))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %q", c.name, got, c.want)
		}
	}
}

// Over every transition of the state table a job's end is told once, and a wait of
// its own is a requeue.
func TestDecideOverTheStateTable(t *testing.T) {
	for _, x := range job.Transitions() {
		before, after := view(x.From, 1, x.From != job.Pending), view(x.To, 1, true)
		ends, requeues := 0, 0
		for _, e := range Decide(Change{Before: before, After: after}) {
			switch e {
			case End, Fail:
				ends++
			case Requeue:
				requeues++
			}
		}
		if (ends == 1) != x.To.Final() || ends > 1 || (requeues == 1) != (x.To == job.Pending) {
			t.Errorf("%s to %s: %d ends, %d requeues", x.From, x.To, ends, requeues)
		}
	}
}

// Who asks for END alone hears of failures too, once.
func TestAsked(t *testing.T) {
	for _, c := range []struct {
		types string
		event Event
		want  string
	}{
		{"END", Fail, "END true"},
		{"END,FAIL", Fail, "FAIL true"},
		{"FAIL", End, "END false"},
		{"BEGIN", Fail, "FAIL false"},
		{"END", End, "END true"},
	} {
		e, ok := requestedEvent(&job.Mail{Types: strings.Split(c.types, ",")}, c.event)
		if got := fmt.Sprint(e, " ", ok); got != c.want {
			t.Errorf("%s at %s: %s, want %s", c.types, c.event, got, c.want)
		}
	}
}

func TestSubjects(t *testing.T) {
	done := view(job.Completed, 1, true)
	failed := view(job.Failed, 1, true)
	failed.Exit.Status = 3
	killed := view(job.OutOfMemory, 1, true)
	killed.Exit.Signal = 9
	task := view(job.Failed, 1, true)
	task.ID, task.Array = 9, &job.ArrayTask{Job: 7, Index: 2, Count: 3}
	never := view(job.Cancelled, 0, false)
	for _, c := range []struct {
		job   *job.Job
		event Event
		s     *summary
		want  string
	}{
		{view(job.Running, 1, true), Begin, nil, "Slurm Job_id=7 Name=train Began, Queued time 00:01:00"},
		{done, End, nil, "Slurm Job_id=7 Name=train Ended, Run time 00:01:05, COMPLETED, ExitCode 0"},
		{failed, Fail, nil, "Slurm Job_id=7 Name=train Failed, Run time 00:01:05, FAILED, ExitCode 3"},
		{killed, Fail, nil, "Slurm Job_id=7 Name=train Failed, Run time 00:01:05, OUT_OF_MEMORY, Signal 9"},
		{never, End, nil, "Slurm Job_id=7 Name=train Ended, Run time 00:00:00, CANCELLED, ExitCode 0"},
		{done, TimeLimit90, nil, "Slurm Job_id=7 Name=train Reached 90% of time limit"},
		{done, Requeue, nil, "Slurm Job_id=7 Name=train Requeued"},
		{done, InvalidDepend, nil, "Slurm Job_id=7 Name=train Invalid dependency"},
		{task, Fail, nil, "Slurm Array Task Job_id=7_2 (9) Name=train Failed, Run time 00:01:05, FAILED, ExitCode 0"},
		{task, Fail, &summary{text: "Mixed, ExitCode [0-3]"}, "Slurm Array Summary Job_id=7_* (7) Name=train Failed, Mixed, ExitCode [0-3]"},
		{task, Begin, &summary{}, "Slurm Array Summary Job_id=7_* (7) Name=train Began"},
	} {
		if got := composeMail(c.job, c.event, c.s, "").subject; got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	body := composeMail(done, End, nil, "").body
	for _, want := range []string{"job        7\n", "state      COMPLETED\n", "exit       exit 0\n", "output     slurm-%j.out\n", "\ncox show 7\n"} {
		if !strings.Contains(body, want) {
			t.Errorf("the text lacks %q:\n%s", want, body)
		}
	}
}
