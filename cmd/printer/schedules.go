package printer

import (
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
)

// ScheduleTime is a time of a schedule in its own zone: "2026-11-30 03:00 Europe/Zurich".
func ScheduleTime(t time.Time, zone string) string {
	if t.IsZero() {
		return "none"
	}
	return scheduleMinute(t) + " " + zone
}

// scheduleMinute is a time as its schedule has it, with seconds if there are some.
func scheduleMinute(t time.Time) string {
	if t.Second() != 0 {
		return t.Format("2006-01-02 15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

// Schedules is the table of schedules.
func Schedules(list []api.Schedule) *Table {
	t := &Table{Columns: []Column{{Title: "NAME"}, {Title: "STATE"}, {Title: "SCHEDULE"}, {Title: "NEXT", Least: 16}, {Title: "LAST"}, {Title: "OWNER"}}}
	for i := range list {
		s := &list[i]
		next, last := "-", "-"
		if !s.Next.IsZero() {
			next = ScheduleTime(s.Next, s.TimeZone)
		}
		if s.Last != nil {
			last = scheduleMinute(s.Last.Time) + " " + s.Last.State
		}
		t.Rows = append(t.Rows, []Cell{textCell(s.Name), textCell(s.State), textCell(s.Cron), textCell(next), textCell(last), textCell(s.Owner)})
	}
	return t
}

// Schedule is all of one: a few lines, and its runs.
func Schedule(p Page, s *api.Schedule) string {
	c := card{p: p}
	c.head("schedule %s: %s, next run %s", s.Name, s.State, ScheduleTime(s.Next, s.TimeZone))
	c.fact("times", s.Cron+" in "+s.TimeZone)
	if !s.SuspendedAt.IsZero() {
		c.fact("suspended", fmt.Sprintf("%s by %s; cox schedule resume %s", p.Time(s.SuspendedAt), s.SuspendedBy, s.Name))
	}
	c.fact("overlap", overlapText(s.Overlap))
	if s.Late > 0 {
		c.fact("missed", fmt.Sprintf("a run begins at most %s late", Duration(time.Duration(s.Late*float64(time.Second)))))
	}
	c.fact("owner", s.Owner)
	c.fact("revision", fmt.Sprintf("%d, %s by %s", s.Revision, p.Time(s.At), s.By))
	c.fact("why", s.Why)
	if len(s.Runs) == 0 {
		c.fact("runs", "none yet")
	}
	for i := range s.Runs {
		c.line(runLine(p, &s.Runs[i]))
	}
	return c.b.String()
}

func overlapText(overlap string) string {
	switch overlap {
	case "allow":
		return "allow: a run begins even if an earlier one has not ended"
	case "replace":
		return "replace: a run ends the earlier one that has not ended"
	}
	return overlap + ": no run begins while an earlier one has not ended"
}

// runLine is one run: "  2026-11-30 03:00  COMPLETED  job 12".
func runLine(p Page, r *api.ScheduledRun) string {
	tone := Plain
	switch r.State {
	case "COMPLETED", "RUNNING":
		tone = Good
	case "SKIPPED", "DUE", "PENDING":
		tone = Warn
	case "FAILED", "REFUSED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY":
		tone = Bad
	}
	parts := []string{"  " + scheduleMinute(r.Time), p.Paint(tone, Clean(r.State))}
	if r.Job != 0 {
		parts = append(parts, "job "+r.Job.String())
	}
	if r.Exit != "" {
		parts = append(parts, Clean(r.Exit))
	}
	if r.By != "" {
		parts = append(parts, "by hand ("+Clean(r.By)+")")
	}
	if r.Missed > 100 {
		parts = append(parts, "more than 100 times before it were missed")
	} else if r.Missed > 0 {
		parts = append(parts, Count(r.Missed, "time")+" before it missed")
	}
	if r.Why != "" {
		parts = append(parts, Clean(r.Why))
	}
	return strings.Join(parts, "  ")
}

// SubmittedSchedule is what became of a schedule that was submitted: "schedule nightly: next run
// 2026-11-30 03:00 Europe/Zurich".
func SubmittedSchedule(p Page, s *api.SubmittedSchedule) string {
	line := "schedule " + p.Paint(Accent, Clean(s.Name))
	switch {
	case !s.Changed:
		line += ", nothing has changed"
	case !s.Created:
		line += fmt.Sprintf(", revision %d", s.Revision)
	}
	if s.Next.IsZero() {
		return line + ": suspended"
	}
	return line + ": next run " + Clean(ScheduleTime(s.Next, s.TimeZone))
}
