package notify

import (
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Payload is the body of a message, as JSON. Fields are added, never renamed. Amounts and times have
// their unit in their name.
type Payload struct {
	Text     string    `json:"text"`     // one line for people; Slack, Mattermost, Rocket.Chat and Discord (/slack) show it
	Event    string    `json:"event"`    // begin, end or fail; of nodes node-fenced, node-unfenced, node-drained, node-resumed
	Delivery string    `json:"delivery"` // the same for every try of a message
	Time     time.Time `json:"time"`     // when the server noticed
	Server   string    `json:"server"`   // name of the cluster
	Job      PayloadOf `json:"job,omitzero"`

	Node *PayloadNodes `json:"node,omitempty"` // of a message about nodes, which has no job
}

// PayloadOf is the job of a message.
type PayloadOf struct {
	ID        string    `json:"id"` // 7, or 7_3 for a task of an array; of an array as a whole its number
	Name      string    `json:"name"`
	User      string    `json:"user"`
	Account   string    `json:"account,omitempty"`
	Partition string    `json:"partition,omitempty"`
	QOS       string    `json:"qos,omitempty"`
	Pool      string    `json:"pool,omitempty"` // as asked for or chosen; empty: the server's own
	State     string    `json:"state,omitempty"`
	Attempt   uint32    `json:"attempt,omitempty"`
	Tasks     uint32    `json:"array_tasks,omitempty"` // of an array as a whole
	Outcome   string    `json:"outcome,omitempty"`     // of an array as a whole: "COMPLETED, ExitCode [0-0]"
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Elapsed   float64   `json:"elapsed_seconds,omitempty"`
	Limit     float64   `json:"time_limit_seconds,omitempty"` // 0: none
	ExitCode  *int      `json:"exit_code,omitempty"`          // of a job that has ended
	Signal    int       `json:"signal,omitempty"`             // that ended it
	Error     string    `json:"error,omitempty"`              // the line of a failed job's output that matters
}

// composePayload writes the message about an event.
func composePayload(o *occasion, server string) *Payload {
	j := &o.job
	p := &Payload{
		Event: strings.ToLower(string(o.event)), Time: o.at.UTC().Truncate(time.Millisecond), Server: server,
		Job: PayloadOf{
			ID: j.Name(), Name: oneLine(j.Spec.Name, maxSubject), User: j.Spec.Owner.User, Account: j.Spec.Account, QOS: j.Spec.QOS, Pool: j.Spec.Pool,
			Partition: strings.Join(j.Spec.Partitions, ","), Submitted: j.Submitted, Limit: j.Spec.TimeLimit.Seconds(),
		},
	}
	if failed := j.State.Final() && j.State != job.Completed && j.State != job.Cancelled; o.event == End && (failed && o.summary == nil || o.summary != nil && o.summary.failed) {
		p.Event = "fail"
	}
	what := "job " + j.Name()
	if s := o.summary; s != nil {
		p.Job.ID, p.Job.Tasks, p.Job.Outcome = j.Array.Job.String(), j.Array.Count, s.text
		what = "array " + p.Job.ID
	} else {
		p.Job.State, p.Job.Attempt, p.Job.Started, p.Job.Ended = j.State.String(), j.Attempt, j.Started, j.Ended
		if j.State.Final() {
			p.Job.Elapsed, p.Job.Signal = runTime(j).Seconds(), j.Exit.Signal
			p.Job.ExitCode = &j.Exit.Status
		}
	}
	p.Delivery = fmt.Sprintf("%s-%s.%d-%s", server, p.Job.ID, j.Attempt, p.Event)
	p.Text = fmt.Sprintf("%s (%s) of %s %s", what, chatText(p.Job.Name), chatText(p.Job.User), p.endOfLine(o))
	return p
}

// endOfLine is the end of the line for people: "failed after 00:01:05: exit code 1".
func (p *Payload) endOfLine(o *occasion) string {
	verb := map[string]string{"begin": "began", "end": "ended", "fail": "failed"}[p.Event]
	switch {
	case p.Event == "begin":
		return verb
	case o.summary != nil:
		return verb + ": " + o.summary.text
	case o.job.State == job.Completed:
		return "completed after " + formatElapsed(runTime(&o.job))
	case o.job.State == job.Cancelled:
		return "was cancelled"
	}
	verb += " after " + formatElapsed(runTime(&o.job))
	if s := o.job.State; s != job.Failed {
		return verb + ": " + s.String()
	}
	if o.job.Exit.Signal != 0 {
		return verb + fmt.Sprintf(": signal %d", o.job.Exit.Signal)
	}
	return verb + fmt.Sprintf(": exit code %d", o.job.Exit.Status)
}

// addErrorLine adds what matters of the job's output.
func (p *Payload) addErrorLine(line string) {
	if line != "" {
		p.Job.Error = oneLine(line, maxSubject)
		p.Text += ": " + chatText(p.Job.Error)
	}
}

// chatText makes a text harmless where chats give signs a meaning: Slack reads <!channel> and &, others
// read @all. A zero-width space behind @ is not seen.
func chatText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u200b").Replace(s)
}
