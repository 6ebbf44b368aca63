package printer

import (
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
)

// WhatIf says what a change would do: the answer first, then figures side by side,
// then who starts at another time.
func WhatIf(p Page, q *api.WhatIf, d *api.WhatIfDone) string {
	c := card{p: p}
	c.head("%s: %s", strings.Join(whatIfChanges(q, d), ", "), whatIfEffect(d))
	for _, m := range d.Handovers {
		c.line(fmt.Sprintf("  %s goes from %s to %s, in %s: %s", Clean(m.Machine), Clean(m.From), Clean(m.To), Duration(time.Duration(m.Takes*float64(time.Second))), Clean(m.Reason)))
	}
	for _, x := range d.Pools {
		if x.Why != "" {
			c.line(fmt.Sprintf("  %s, with %s of which %d idle, lacks %d and gets none: %s", Clean(x.Pool), Count(x.Machines, "machine"), x.Idle, x.Lacks, Clean(x.Why)))
		}
	}
	for _, s := range d.Submitted {
		if s.Start.IsZero() {
			c.line(fmt.Sprintf("  %s would not start in this simulation", Clean(s.Name)))
			continue
		}
		if s.Tasks > 0 {
			c.line(fmt.Sprintf("  %s: of %s the first would start about %s, in %s, %d in all, the last of these %s", Clean(s.Name),
				Count(s.Tasks, "task"), p.Time(s.Start), Duration(s.Start.Sub(d.Now)), s.Began, p.Time(s.Last)))
			continue
		}
		c.line(fmt.Sprintf("  %s would start about %s, in %s", Clean(s.Name), p.Time(s.Start), Duration(s.Start.Sub(d.Now))))
	}
	c.b.WriteString(figuresTable(p, d))
	for i, m := range d.Moved {
		if i == 12 {
			c.line(fmt.Sprintf("  … and %d more; -o json has 50", d.Sooner+d.Later+d.Never-i))
			break
		}
		c.line(movedText(p, d.Now, m))
	}
	if a, b := d.Before.Taken, d.After.Taken; a+b > 0 {
		c.line(fmt.Sprintf("Running jobs that are ended for others: %d as things are, %d then.", a, b))
	}
	if d.Before.Bounded || d.After.Bounded {
		c.line("Some jobs never start in this simulation; the figures cover only those that do.")
	}
	return c.b.String()
}

func whatIfChanges(q *api.WhatIf, d *api.WhatIfDone) (out []string) {
	if n := len(d.Added); n > 0 {
		out = append(out, Count(n, "node")+" more")
	}
	if len(d.Drained) > 0 {
		out = append(out, "without "+Hosts(d.Drained))
	}
	if len(q.Quotas) > 0 {
		out = append(out, "other quotas")
	}
	if q.Policy != "" {
		out = append(out, "the rules of "+Clean(q.File))
	}
	if len(q.Submit) > 0 {
		out = append(out, Count(len(q.Submit), "job")+" more")
	}
	return out
}

func whatIfEffect(d *api.WhatIfDone) string {
	if d.Sooner+d.Later+d.Never == 0 {
		return "no waiting job starts at another time"
	}
	text := fmt.Sprintf("of %s that wait %d start sooner, %d later", Count(d.Before.Jobs, "job"), d.Sooner, d.Later)
	if d.Never > 0 {
		text += fmt.Sprintf(", %d not at all", d.Never)
	}
	return text
}

func figuresTable(p Page, d *api.WhatIfDone) string {
	t := &Table{Columns: []Column{{Title: ""}, {Title: "JOBS", Right: true}, {Title: "NOW: MEDIAN", Right: true}, {Title: "90 %", Right: true}, {Title: "THEN: MEDIAN", Right: true}, {Title: "90 %", Right: true}}}
	text := func(started int, seconds float64) string { // of no job there is no wait
		if started == 0 {
			return "-"
		}
		return waitText(seconds)
	}
	row := func(name string, jobs, nowStarted, thenStarted int, a, b api.Waits) {
		t.Rows = append(t.Rows, []Cell{
			textCell(Clean(name)), textCell(fmt.Sprint(jobs)), textCell(text(nowStarted, a.Median)), textCell(text(nowStarted, a.P90)), textCell(text(thenStarted, b.Median)), textCell(text(thenStarted, b.P90)),
		})
	}
	row("waits", d.Before.Jobs, d.Before.Started, d.After.Started, d.Before.Wait, d.After.Wait)
	for _, list := range [][2][]api.Part{{d.Before.Sizes, d.After.Sizes}, {d.Before.Accounts, d.After.Accounts}} {
		for _, b := range list[0] {
			for _, a := range list[1] {
				if a.Name == b.Name {
					row(b.Name, b.Jobs, b.Started, a.Started, b.Wait, a.Wait)
				}
			}
		}
	}
	var b strings.Builder
	_ = t.Write(&b, p) // a Builder does not fail
	if now, then := d.Before.Started, d.After.Started; now != then {
		fmt.Fprintf(&b, "started   %d of %s now, %d then; the waits are those of the jobs that start\n", now, Count(d.Before.Jobs, "job"), then)
	}
	fmt.Fprintf(&b, "in use    %.1f %% now, %.1f %% then, over %s\n", d.Before.Use*100, d.After.Use*100, Duration(Seconds(d.Before.Span)))
	fmt.Fprintf(&b, "fairness  %.3f now, %.3f then (1: each account gets the same part of what it asked for)\n", d.Before.Fair, d.After.Fair)
	return b.String()
}

func waitText(seconds float64) string { return Duration(Seconds(seconds)) }

func movedText(p Page, now time.Time, m api.Moved) string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return "never"
		}
		return "in " + Duration(t.Sub(now))
	}
	return fmt.Sprintf("  %s %s (%s)  %s → %s", Clean(m.Job), Clean(m.Name), Clean(m.User), at(m.Before), p.Paint(Strong, at(m.After)))
}
