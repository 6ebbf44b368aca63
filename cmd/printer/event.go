package printer

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// Event is one line about one change: "08:02:11  7 train  started on v[1-8]".
func Event(p Page, e *api.Event) string {
	subject := e.Name
	if subject == "" && e.Job != 0 {
		subject = e.Job.String()
	}
	text := e.Kind
	if e.State != "" && stateAddsInfo(e) {
		text += " " + e.State
	}
	if len(e.Nodes) > 0 {
		text += " on " + Hosts(e.Nodes)
	}
	if e.By != "" {
		text += " by " + e.By
	}
	if e.Count > 1 {
		text += ", " + Count(e.Count, "task")
	}
	if e.Exit != nil && !e.Exit.OK() {
		text += ", " + e.Exit.String()
	}
	if e.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	who := ""
	if e.User != "" {
		who = " (" + e.User + ")"
	}
	line := p.Paint(Dim, p.Time(e.At)) + "  "
	if subject != "" {
		line += p.Paint(Accent, Clean(subject)) + p.Paint(Dim, Clean(who)) + "  "
	}
	return line + p.Paint(StateTone(e.State), Clean(text))
}

// stateAddsInfo reports whether the state says more than the kind of the event does.
func stateAddsInfo(e *api.Event) bool {
	switch e.Kind {
	case "submitted", "allocated", "started", "cancelled", "held", "released", "updated":
		return false
	}
	return !strings.EqualFold(e.State, e.Kind)
}
