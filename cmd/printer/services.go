package printer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// Services is the table of services.
func Services(list []api.Service) *Table {
	t := &Table{Columns: []Column{{Title: "NAME"}, {Title: "STATE"}, {Title: "READY"}, {Title: "REVISION"}, {Title: "OWNER"}, {Title: "ADDRESS", Least: 20}}}
	for i := range list {
		s := &list[i]
		t.Rows = append(t.Rows, []Cell{
			textCell(s.Name), textCell(s.State), textCell(fmt.Sprintf("%d/%d", s.Replicas.Ready, s.Replicas.Want)),
			textCell(fmt.Sprint(s.Revision)), textCell(s.Owner), textCell(serviceAddress(s)),
		})
	}
	return t
}

// serviceAddress is where a service is reached, or the name under which a gateway finds it.
func serviceAddress(s *api.Service) string {
	if s.URL != "" {
		return s.URL
	}
	return s.Host + s.Path
}

// Service is all of one: a few lines, its replicas, its revisions.
func Service(p Page, s *api.Service) string {
	c := card{p: p}
	head := fmt.Sprintf("service %s: %s, %d of %s ready, revision %d", s.Name, s.State, s.Replicas.Ready, Count(s.Replicas.Want, "replica"), s.Revision)
	c.head("%s", head)
	c.fact("address", serviceAddress(s))
	c.fact("owner", s.Owner)
	if s.Replicas.Min != s.Replicas.Max {
		c.fact("bounds", fmt.Sprintf("%d to %d replicas", s.Replicas.Min, s.Replicas.Max))
	}
	if l := s.Load; l != nil {
		c.fact("load", fmt.Sprintf("%.1f requests a second, %d in flight, %d held, %s a second failed", l.Rate, l.InFlight, l.Held, smallRate(l.Failed)))
		c.fact("latency", latencyText(l.Latency))
	} else {
		c.fact("load", "unknown: no gateway reports")
	}
	if s.Rollout != nil && len(s.Reasons) == 0 { // a reason says more of it
		c.fact("update", rolloutText(s))
	}
	label := "why"
	for _, why := range s.Reasons {
		if !isShownBelow(s, why) {
			c.fact(label, why)
			label = ""
		}
	}
	for i := range s.Parts {
		c.line(replicaLine(p, &s.Parts[i]))
	}
	for i := range s.Revisions {
		r := &s.Revisions[i]
		line := fmt.Sprintf("  revision %d  %s by %s", r.Number, p.Time(r.At), r.By)
		if r.Note != "" {
			line += ": " + r.Note
		}
		c.line(Clean(line))
	}
	return c.b.String()
}

// latencyText is how long clients waited for the head of an answer.
func latencyText(l *api.Latency) string {
	if l == nil {
		return "unknown: no answer in the last minute"
	}
	return fmt.Sprintf("p50 %s, p95 %s, p99 %s until the first byte, %s in the last minute", shortWait(l.P50), shortWait(l.P95), shortWait(l.P99), Count(int(l.Answered), "answer")) //nolint:gosec // of a minute
}

// smallRate is a number a second, exact enough to see that it is not zero.
func smallRate(n float64) string {
	if n > 0 && n < .1 {
		return strconv.FormatFloat(n, 'f', 2, 64)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

// shortWait is a latency in words: "2.5 ms", "80 ms", "1.2 s". Gateways measure up to the last of
// api.LatencyBounds.
func shortWait(seconds float64) string {
	bounds := api.LatencyBounds()
	switch last := bounds[len(bounds)-1]; {
	case seconds >= last:
		return fmt.Sprintf("%.0f s or more", last)
	case seconds < .01:
		return fmt.Sprintf("%.1f ms", seconds*1000)
	case seconds < 1:
		return fmt.Sprintf("%.0f ms", seconds*1000)
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	}
	return fmt.Sprintf("%.0f s", seconds)
}

// isShownBelow reports whether the line of a replica says what a reason says.
func isShownBelow(s *api.Service, why string) bool {
	return slices.ContainsFunc(s.Parts, func(r api.Replica) bool {
		return !r.Ready && r.Why != "" && strings.HasPrefix(why, "replica ") && strings.HasSuffix(why, " "+r.Why)
	})
}

// replicaLine is one replica: "  .0  revision 2  ready  job 12  on a1  10.1.0.2:31000".
func replicaLine(p Page, r *api.Replica) string {
	state := r.State
	if r.Ready {
		state = p.Paint(Good, "ready")
	}
	parts := []string{fmt.Sprintf("  .%d", r.Index), fmt.Sprintf("revision %d", r.Revision), state}
	if r.Job != 0 {
		parts = append(parts, "job "+r.Job.String())
	}
	if r.Node != "" {
		parts = append(parts, "on "+r.Node)
	}
	if r.Address != "" {
		parts = append(parts, r.Address)
	}
	if r.Why != "" && !r.Ready {
		parts = append(parts, r.Why)
	}
	return Clean(strings.Join(parts, "  "))
}

// Rollout is one line about an update: "service chat: revision 2 to 3, rolling: 1 of 2 ready".
func Rollout(_ Page, s *api.Service) string {
	return Clean("service " + s.Name + ": " + rolloutText(s))
}

func rolloutText(s *api.Service) string {
	r := s.Rollout
	if r == nil {
		return fmt.Sprintf("revision %d serves, no update goes on", s.Revision)
	}
	line := fmt.Sprintf("revision %d to %d, %s", r.From, r.To, r.Phase)
	if r.From == 0 {
		phase := "is " + r.Phase
		switch r.Phase {
		case "rolling":
			phase = "starts"
		case "halted":
			phase = "does not get ready"
		}
		line = fmt.Sprintf("revision %d %s", r.To, phase)
	}
	if r.Step != "" {
		line += " at " + r.Step
	}
	line += fmt.Sprintf(", %d of %d ready", s.Replicas.Ready, s.Replicas.Want)
	if r.Why != "" {
		line += ": " + r.Why
	}
	return line
}
