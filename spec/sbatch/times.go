package sbatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// times fills how long the job may run, from when, and until when at the latest.
func (p *parser) times(s *job.Spec, set settings) {
	limit := func(name string) time.Duration {
		d, ok := set.get(name)
		if !ok {
			return 0
		}
		t, err := slurmfmt.ParseTimeLimit(d.Value)
		p.check(d, err)
		return t
	}
	s.TimeLimit, s.TimeMin = limit("time"), limit("time-min")
	if d, ok := set.get("begin"); ok {
		s.Begin = p.when(d)
	}
	if d, ok := set.get("time-min"); ok {
		p.timeMin(s, d)
	}
	if d, ok := set.get("deadline"); ok {
		s.Deadline = p.when(d)
	}
}

// timeMin checks --time-min against the time limit.
func (p *parser) timeMin(s *job.Spec, d *Directive) {
	switch {
	case s.TimeMin > s.TimeLimit && s.TimeLimit > 0:
		p.fail(d, fmt.Errorf("is longer than the time limit, %s", slurmfmt.FormatTimeLimit(s.TimeLimit)),
			"write a --time-min of at most "+slurmfmt.FormatTimeLimit(s.TimeLimit)+", or a longer --time")
	case s.TimeMin == 0 && !p.blamed(d):
		p.fail(d, errors.New("is no time to ask for at least"), "write the shortest time limit that is of use, such as --time-min=30")
	}
}

// when reads a point in time.
func (p *parser) when(d *Directive) time.Time {
	t, err := slurmfmt.ParseWhen(d.Value, p.opts.Now)
	if !p.check(d, err) {
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
		p.fail(d, fmt.Errorf("has passed: it is %s", clock(p.opts.Now)), "name a time to come, such as --deadline=now+2hours")
	case begins && room < 0:
		p.fail(d, fmt.Errorf("is before %s", begin.show()), "name a later deadline, or begin earlier")
	case room < least:
		remedy := fmt.Sprintf("name a deadline at %s or later", clock(from.Add(least)))
		if room >= time.Minute {
			remedy = fmt.Sprintf("write --%s=%s, or name a deadline at %s or later", by, short(room), clock(from.Add(least)))
		}
		p.fail(d, fmt.Errorf("is in %s, and --%s=%s would not fit before it", short(s.Deadline.Sub(p.opts.Now)), by, set.value(by)), remedy)
	}
}

// clock prints a time as the options take it.
func clock(t time.Time) string { return t.Format("2006-01-02T15:04:05") }

// short prints a time as a limit, full minutes, at least one.
func short(d time.Duration) string {
	return slurmfmt.FormatTimeLimit(max(d.Truncate(time.Minute), time.Minute))
}
