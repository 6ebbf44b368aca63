package printer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// Why says everything that keeps a job waiting, or that nothing does. The job is
// the one that is asked about; nil where only the answer is known.
func Why(p Page, w *api.Why, j *api.Job) string {
	c := card{p: p}
	subject := waitsForText(w, j)
	switch {
	case w.State != "PENDING":
		c.head("%s", subject+" "+whyNot(p, w, j))
		return c.b.String()
	case len(w.Reasons) == 0 && len(w.Lines) == 0:
		c.head("%s waits%s: nothing holds it, it starts at once", subject, waitingHeadline(p, w, j))
		return c.b.String()
	}
	lines := w.Lines
	if len(lines) == 0 {
		for _, r := range w.Reasons {
			lines = append(lines, r.String())
		}
	}
	n := 0
	for i := range lines {
		if !isAlternativeLicence(w, j, i) {
			n++
		}
	}
	c.head("%s waits%s. %s:", subject, waitingHeadline(p, w, j), countReasons(n))
	n = 0
	for i, line := range lines {
		code, since, which := "", "", " or"
		if i < len(w.Reasons) && len(w.Reasons) == len(lines) {
			code = string(w.Reasons[i].Code)
			if s := w.Reasons[i].Since; s != 0 {
				since = p.Paint(Dim, "  since "+p.Time(time.Unix(s, 0)))
			}
		}
		if !isAlternativeLicence(w, j, i) {
			n++
			which = fmt.Sprintf("%3d", n)
		}
		c.line(fmt.Sprintf("%s %s%s%s%s", which, p.Paint(Warn, Clean(code)), strings.Repeat(" ", max(14-Width(code), 1)), Clean(p.localizeTimes(line)), since))
	}
	if line := failedBefore(p, j); line != "" {
		c.line("    before      " + Clean(line))
	}
	if line := inPool(j); line != "" {
		c.line("    " + p.Paint(Dim, Clean(line)))
	}
	if line := movesText(p, j); line != "" {
		c.line("    " + p.Paint(Dim, Clean(line)))
	}
	if line := startsHere(p, w.Here); line != "" {
		c.line(line)
	}
	if line := holdersText(p, w.Holders); line != "" {
		c.line("    held by     " + line)
	}
	if line := expectedStart(p, w); line != "" {
		c.line(line)
	}
	if line := startsElsewhere(p, w.Elsewhere); line != "" {
		c.line(line)
	}
	for i, s := range w.Changes {
		lead := "Smallest change that starts it now: "
		if i > 0 {
			lead = strings.Repeat(" ", len(lead)-3) + "or "
		}
		c.line(lead + smallerOptions(p, s))
	}
	return c.b.String()
}

// failedBefore is the last attempt of a job that waits, if it failed.
func failedBefore(p Page, j *api.Job) string {
	if j == nil || len(j.Past) == 0 || j.Past[len(j.Past)-1].Failure == "" {
		return ""
	}
	return pastText(p, j.Past[len(j.Past)-1])
}

// inPool says why the job is in a pool that it did not name, and when others would have started it.
func inPool(j *api.Job) string {
	if j == nil || j.Spec == nil || j.Spec.Chosen == nil {
		return ""
	}
	pool := cmp.Or(j.Spec.Pool, j.Pool)
	if pool == "" {
		return ""
	}
	text := "in pool " + pool + ": " + j.Spec.Chosen.Why
	for _, w := range j.Spec.Chosen.Waits {
		if w.Pool != pool {
			text += "; " + w.Pool + " would have started it " + w.Text()
		}
	}
	for _, x := range j.Spec.Chosen.Passed {
		text += "; not " + x.Pool + ": " + x.Why
	}
	return text
}

// startsElsewhere says when other pools would start a job.
func startsElsewhere(p Page, list []api.PoolStart) string {
	var parts []string
	for _, x := range list {
		switch {
		case !x.Start.IsZero():
			text := x.Pool + " " + p.startingIn(x.Start)
			if x.Lacks != "" {
				text += " (its own scheduler does not say when: " + x.Lacks + ")"
			}
			parts = append(parts, text)
		case x.Why != "":
			parts = append(parts, x.Pool+", nobody knows when: "+x.Why)
		default:
			parts = append(parts, x.Pool+", nobody knows when")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return Clean("Other pools would start it: " + strings.Join(parts, "; ") + ".")
}

// startsHere says when the pool's own scheduler starts a job that waits for it, where that does not say so itself:
// what it says is the reason of the wait.
func startsHere(p Page, x *api.PoolStart) string {
	switch {
	case x == nil || x.Lacks == "":
		return ""
	case x.Start.IsZero():
		return Clean("When " + x.Pool + " starts it is not known: its own scheduler does not say.")
	}
	return Clean("When " + x.Pool + " starts it is not known: its own scheduler does not say. By the waits of the last jobs there: " + p.startingIn(x.Start) + ".")
}

// movesText says how a job moved between pools while it waited, but for why it moved last, which is why it is in
// its pool: "moved once, at 12:01 from slurm-b to k8s; it may move 2 times more, from 13:01 on".
func movesText(p Page, j *api.Job) string {
	if j == nil || j.Moved == nil {
		return ""
	}
	m, text := j.Moved, ""
	if u := m.Under; u != nil {
		text = fmt.Sprintf("is taken back from %s and goes to %s, if it has not begun: %s", u.From, u.To, strings.TrimPrefix(u.Why, "moved from "+u.From+", "))
	}
	if m.Count == 0 || m.Last == nil {
		return text
	}
	if text != "" {
		text += "; "
	}
	if m.Count == 1 {
		text += "moved once, at "
	} else {
		text += fmt.Sprintf("moved %d times, last at ", m.Count)
	}
	text += p.Time(m.Last.At)
	if m.Last.From != "" {
		text += " from " + m.Last.From + " to " + m.Last.To
	}
	switch {
	case j.State != "PENDING":
	case m.Left == 0:
		text += "; it does not move again"
	case m.Left == 1:
		text += "; it may move once more, from " + p.Time(m.Next) + " on"
	default:
		text += fmt.Sprintf("; it may move %d times more, from %s on", m.Left, p.Time(m.Next))
	}
	return text
}

// startingIn is "at once" or "in 2 h".
func (p Page) startingIn(at time.Time) string {
	if d := at.Sub(p.Now); d >= time.Minute {
		return "in " + Duration(d)
	}
	return "at once"
}

// isAlternativeLicence reports whether a reason is that of one more licence, of which the job is to have
// one (a|b): any of them would do.
func isAlternativeLicence(w *api.Why, j *api.Job, i int) bool {
	if j == nil || j.Spec == nil || !strings.Contains(j.Spec.Licenses, "|") || i >= len(w.Reasons) || w.Reasons[i].Code != reason.Licenses {
		return false
	}
	return slices.ContainsFunc(w.Reasons[:i], func(r reason.Reason) bool { return r.Code == reason.Licenses })
}

func waitsForText(w *api.Why, j *api.Job) string {
	if j == nil || j.Spec == nil {
		return w.Name
	}
	facts := jobRequest(j)
	if who := payingAccount(j); who != "" {
		facts = who + ", " + facts
	}
	return fmt.Sprintf("%s %s (%s)", w.Name, j.Spec.Name, facts)
}

func payingAccount(j *api.Job) string {
	if j.Spec.Account != "" {
		return j.Spec.Account
	}
	return j.Spec.Owner.User
}

func waitingHeadline(p Page, w *api.Why, j *api.Job) string {
	since := w.Since
	if j != nil && !j.Submitted.IsZero() {
		since = j.Submitted
	}
	if since.IsZero() {
		return ""
	}
	return " for " + p.Ago(since)
}

// whyNot says why a job that does not wait does not.
func whyNot(p Page, w *api.Why, j *api.Job) string {
	switch {
	case j == nil:
		return "does not wait: it is " + w.State
	case j.Ended.IsZero() && len(j.Claims) > 0:
		nodes, _, _, _ := sumClaims(j.Claims)
		if j.Started.IsZero() {
			return strings.TrimSuffix(fmt.Sprintf("does not wait: its gang is being started on %s: %s", Hosts(nodes), j.Message), ": ")
		}
		return fmt.Sprintf("does not wait: it is %s on %s since %s", w.State, Hosts(nodes), p.Time(j.Started))
	case j.Ended.IsZero():
		return "does not wait: it is " + w.State
	}
	text := fmt.Sprintf("does not wait: it ended %s %s ago", w.State, p.Ago(j.Ended))
	if j.Failure != "" {
		text += ", " + failureText(j.Failure, strings.Join(j.FailedOn, ","))
	}
	if j.Message != "" {
		text += ": " + j.Message
	}
	return text
}

func countReasons(n int) string {
	switch n {
	case 1:
		return "One thing holds it"
	case 2:
		return "Two things hold it"
	case 3:
		return "Three things hold it"
	case 4:
		return "Four things hold it"
	}
	return fmt.Sprintf("%d things hold it", n)
}

// holdersText names the running jobs that have what is missing.
func holdersText(p Page, list []api.Holder) string {
	var parts []string
	for i, h := range list {
		if i == 4 {
			parts = append(parts, fmt.Sprintf("%d more", len(list)-i))
			break
		}
		who := "a job of others"
		if h.Job != "" {
			who = "job " + h.Job + " (" + Clean(h.User)
			if !h.Until.IsZero() {
				who += ", ends by " + p.Time(h.Until)
			}
			who += ")"
		} else if !h.Until.IsZero() {
			who += " (ends by " + p.Time(h.Until) + ")"
		}
		parts = append(parts, who+" on "+Hosts(h.Nodes))
	}
	return strings.Join(parts, ", ")
}

// expectedStart says when the job will start, how sure that is, and what is promised.
func expectedStart(p Page, w *api.Why) string {
	e := w.Expected
	by := ""
	if w.StartsBy.After(p.Now) {
		by = "by " + p.Time(w.StartsBy) + " at the latest, if all use their whole limits"
	}
	if e == nil {
		if by == "" {
			return ""
		}
		return "Starts by " + p.Time(w.StartsBy) + ", in " + Duration(w.StartsBy.Sub(p.Now)) + "."
	}
	text := "Starts about " + p.Time(e.Start) + ", in " + Duration(e.Start.Sub(p.Now))
	if e.Known > 0 {
		text += fmt.Sprintf(" (80 %%: %s–%s; %s of the past week were %s in the median)", p.Time(e.From), p.Time(e.To), Count(e.Known, "estimate"), lateText(e.Late))
	}
	if by != "" {
		text += "; " + by
	}
	return text + "."
}

func lateText(seconds float64) string {
	switch d := Seconds(seconds); {
	case d >= time.Second:
		return "late by " + Duration(d)
	case d <= -time.Second:
		return "early by " + Duration(-d)
	}
	return "right"
}

// smallerOptions is a change as options that can be pasted.
func smallerOptions(p Page, s api.Smaller) string {
	if s.Value == "" {
		return "without " + p.Paint(Accent, Clean("--"+s.Option)) + ofCurrent(s.Of)
	}
	return p.Paint(Accent, Clean("--"+s.Option+"="+s.Value)) + ofCurrent(s.Of)
}

func ofCurrent(now string) string {
	if now == "" {
		return ""
	}
	return " (of " + Clean(now) + ")"
}
