package sbatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// fillTimes fills how long the job may run, from when, and until when at the latest.
func (p *parser) fillTimes(s *job.Spec, set settings) {
	limit := func(name string) time.Duration {
		d, ok := set.get(name)
		if !ok {
			return 0
		}
		t, err := slurmfmt.ParseTimeLimit(d.Value)
		p.checkValue(d, err)
		return t
	}
	s.TimeLimit, s.TimeMin = limit("time"), limit("time-min")
	if d, ok := set.get("begin"); ok {
		s.Begin = p.parseWhen(d)
	}
	if d, ok := set.get("time-min"); ok {
		p.timeMin(s, d)
	}
	if d, ok := set.get("deadline"); ok {
		s.Deadline = p.parseWhen(d)
	}
}

// timeMin checks --time-min against the time limit.
func (p *parser) timeMin(s *job.Spec, d *Directive) {
	switch {
	case s.TimeMin > s.TimeLimit && s.TimeLimit > 0:
		p.failOption(d, fmt.Errorf("is longer than the time limit, %s", slurmfmt.FormatTimeLimit(s.TimeLimit)),
			"write a --time-min of at most "+slurmfmt.FormatTimeLimit(s.TimeLimit)+", or a longer --time")
	case s.TimeMin == 0 && !p.isBlamed(d):
		p.failOption(d, errors.New("is no time to ask for at least"), "write the shortest time limit that is of use, such as --time-min=30")
	}
}

// parseWhen reads a point in time.
func (p *parser) parseWhen(d *Directive) time.Time {
	t, err := slurmfmt.ParseWhen(d.Value, p.opts.Now)
	if !p.checkValue(d, err) {
		return time.Time{}
	}
	return t
}

// fitDeadline refuses a deadline that leaves no room for the job: Slurm takes such a
// job and ends it at once.
func (p *parser) fitDeadline(s *job.Spec, set settings) {
	d, ok := set.get("deadline")
	if !ok || s.Deadline.IsZero() {
		return
	}
	from, least, by := p.opts.Now, s.TimeLimit, "time"
	if s.Begin.After(from) {
		from = s.Begin
	}
	if s.TimeMin > 0 {
		least, by = s.TimeMin, "time-min"
	}
	room := s.Deadline.Sub(from)
	begin, begins := set.get("begin")
	switch {
	case s.Deadline.Before(p.opts.Now):
		p.failOption(d, fmt.Errorf("has passed: it is %s", formatClock(p.opts.Now)), "name a time to come, such as --deadline=now+2hours")
	case begins && room < 0:
		p.failOption(d, fmt.Errorf("is before %s", begin.showOption()), "name a later deadline, or begin earlier")
	case room < least:
		remedy := fmt.Sprintf("name a deadline at %s or later", formatClock(from.Add(least)))
		if room >= time.Minute {
			remedy = fmt.Sprintf("write --%s=%s, or name a deadline at %s or later", by, formatMinutes(room), formatClock(from.Add(least)))
		}
		p.failOption(d, fmt.Errorf("is in %s, and --%s=%s would not fit before it", formatMinutes(s.Deadline.Sub(p.opts.Now)), by, set.optionValue(by)), remedy)
	}
}

// formatClock prints a time as the options take it.
func formatClock(t time.Time) string { return t.Format("2006-01-02T15:04:05") }

// formatMinutes prints a time as a limit, full minutes, at least one.
func formatMinutes(d time.Duration) string {
	return slurmfmt.FormatTimeLimit(max(d.Truncate(time.Minute), time.Minute))
}
