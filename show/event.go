package show

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
	parts := []string{e.Kind}
	switch {
	case len(e.Nodes) > 0:
		parts = append(parts, "on "+Hosts(e.Nodes))
	case e.Count > 1:
		parts = append(parts, Count(e.Count, "task"))
	}
	if e.State != "" && !strings.EqualFold(e.State, e.Kind) {
		parts = append(parts, e.State)
	}
	if e.Exit != nil && !e.Exit.OK() {
		parts = append(parts, e.Exit.String())
	}
	if e.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", e.Attempt))
	}
	if e.By != "" {
		parts = append(parts, "by "+e.By)
	}
	text := strings.Join(parts, ", ")
	if len(parts) > 1 && strings.HasPrefix(parts[1], "on ") {
		text = parts[0] + " " + strings.Join(parts[1:], ", ")
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
