package notify

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// message is one mail, ready to leave.
type message struct {
	job     string // as shown, for logs
	event   Event
	to      []string
	bad     []string // recipients that are none
	subject string   // one line without control characters
	body    string   // lines that end in \n
	environ []string // facts for a mail command, as Slurm gives them
}

// sender is how one mail leaves.
type sender interface {
	send(ctx context.Context, m *message) error
}

// mailOutlet writes the mails that jobs ask for.
type mailOutlet struct {
	sender sender
	domain string
	log    *slog.Logger
}

func (m *mailOutlet) events(j *job.Job) *job.Mail { return j.Spec.Mail }

func (m *mailOutlet) deliver(ctx context.Context, o *occasion) (bool, error) {
	mail := composeMail(&o.job, o.event, o.summary, m.domain)
	if len(mail.bad) > 0 {
		m.log.Warn("not an address", "job", mail.job, "address", mail.bad)
	}
	if len(mail.to) == 0 {
		return false, nil
	}
	if err := m.sender.send(ctx, mail); err != nil {
		return false, fmt.Errorf("to %s: %w", strings.Join(mail.to, ","), err)
	}
	return true, nil
}

// composeMail writes the mail about an event of a job, or of its array if s is set.
func composeMail(j *job.Job, e Event, s *summary, domain string) *message {
	m := &message{job: j.Name(), event: e, subject: oneLine(mailSubject(j, e, s), maxSubject), body: mailBody(j, e, s)}
	m.to, m.bad = mailRecipients(j.Spec, domain)
	m.environ = []string{
		"SLURM_JOB_ID=" + j.ID.String(), "SLURM_JOB_NAME=" + oneLine(j.Spec.Name, maxSubject), "SLURM_JOB_USER=" + oneLine(j.Spec.Owner.User, maxSubject),
		"SLURM_JOB_STATE=" + j.State.String(), "SLURM_JOB_MAIL_TYPE=" + eventVerb(e), "SLURM_JOB_WORK_DIR=" + oneLine(j.Spec.WorkDir, maxLine),
	}
	if j.Array != nil {
		m.environ = append(m.environ, fmt.Sprintf("SLURM_ARRAY_JOB_ID=%d", j.Array.Job), fmt.Sprintf("SLURM_ARRAY_TASK_ID=%d", j.Array.Index))
	}
	return m
}

// Bounds of texts that come from a job, in characters.
const (
	maxSubject = 240
	maxLine    = 900
)

// mailSubject is "Slurm Job_id=7 Name=train Ended, Run time 00:00:05, COMPLETED,
// ExitCode 0", the form that people's mail filters know.
func mailSubject(j *job.Job, e Event, s *summary) string {
	var head string
	switch {
	case s != nil:
		head = fmt.Sprintf("Slurm Array Summary Job_id=%d_* (%d)", j.Array.Job, j.Array.Job)
	case j.Array != nil:
		head = fmt.Sprintf("Slurm Array Task Job_id=%d_%d (%d)", j.Array.Job, j.Array.Index, j.ID)
	default:
		head = fmt.Sprintf("Slurm Job_id=%d", j.ID)
	}
	head += " Name=" + oneLine(j.Spec.Name, 120) + " " + eventVerb(e)
	switch {
	case s != nil && s.text != "":
		return head + ", " + s.text
	case s != nil:
		return head
	case e == Begin:
		return head + ", Queued time " + formatElapsed(j.Started.Sub(eligibleTime(j)))
	case e == End || e == Fail:
		return head + ", Run time " + formatElapsed(runTime(j)) + ", " + outcomeText(j)
	}
	return head
}

// eventVerb is what Slurm calls an event in a subject.
func eventVerb(e Event) string {
	switch e {
	case Begin:
		return "Began"
	case End:
		return "Ended"
	case Fail:
		return "Failed"
	case Requeue:
		return "Requeued"
	case InvalidDepend:
		return "Invalid dependency"
	case TimeLimit:
		return "Reached time limit"
	case TimeLimit90:
		return "Reached 90% of time limit"
	case TimeLimit80:
		return "Reached 80% of time limit"
	case TimeLimit50:
		return "Reached 50% of time limit"
	}
	return string(e)
}

func outcomeText(j *job.Job) string {
	if j.Exit.Signal != 0 {
		return fmt.Sprintf("%s, Signal %d", j.State, j.Exit.Signal)
	}
	return fmt.Sprintf("%s, ExitCode %d", j.State, j.Exit.Status)
}

// eligibleTime is when the job began to wait for resources.
func eligibleTime(j *job.Job) time.Time {
	if j.Spec.Begin.After(j.Submitted) {
		return j.Spec.Begin
	}
	return j.Submitted
}

// runTime is how long the last attempt ran; 0 if it never started.
func runTime(j *job.Job) time.Duration {
	if j.Started.IsZero() || j.Ended.Before(j.Started) {
		return 0
	}
	return j.Ended.Sub(j.Started)
}

// formatElapsed prints "00:00:05" or "1-02:03:04".
func formatElapsed(d time.Duration) string {
	n := int64(max(d, 0) / time.Second)
	clock := fmt.Sprintf("%02d:%02d:%02d", n/3600%24, n/60%60, n%60)
	if n >= 86400 {
		return fmt.Sprintf("%d-%s", n/86400, clock)
	}
	return clock
}

// mailBody repeats the facts one a line, and says where to look.
func mailBody(j *job.Job, e Event, s *summary) string {
	var b strings.Builder
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, oneLine(value, maxLine))
		}
	}
	stamp := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.RFC3339)
	}
	shown := j.Name()
	if s != nil {
		shown = j.Array.Job.String()
	}
	fact("job", shown)
	fact("name", j.Spec.Name)
	fact("user", j.Spec.Owner.User)
	fact("account", j.Spec.Account)
	fact("event", eventVerb(e))
	if s == nil {
		fact("state", j.State.String())
		fact("submitted", stamp(j.Submitted))
		fact("started", stamp(j.Started))
		if j.State.Final() {
			fact("ended", stamp(j.Ended))
			fact("exit", j.Exit.String())
		}
	} else {
		fact("outcome", s.text)
	}
	if j.Spec.TimeLimit > 0 {
		fact("limit", formatElapsed(j.Spec.TimeLimit))
	}
	fact("folder", j.Spec.WorkDir)
	fact("output", j.Spec.Output.Stdout)
	fmt.Fprintf(&b, "\ncox show %s\n", shown)
	return b.String()
}

// oneLine makes a text fit into a header or a line: control characters and line
// separators become blanks, what is not UTF-8 a question mark, and what is longer
// than most characters is cut.
func oneLine(s string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > most {
			b.WriteString("…")
			break
		}
		switch {
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029':
			b.WriteByte(' ')
		case r == '\ufffd':
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
