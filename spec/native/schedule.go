package native

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// aSchedule is the form of schedule.
var aSchedule = form{text: `"0 3 * * *", {cron, time_zone, …}`, schema: func() schema {
	object := objectSchema(scheduleFields)()
	object["required"] = []string{"cron"}
	return schema{"anyOf": []schema{{"type": "string", "minLength": 1}, object}}
}}

// scheduleField says when the job of a document runs. It is beside the job, not in it.
var scheduleField = field[draft]{name: "schedule", form: aSchedule, doc: "run it at these times ([run-on-a-schedule.md](../how-to/run-on-a-schedule.md)); once if not given", also: []string{"cron", "crontab", "cronjob", "periodic", "schedules"}, set: setSchedule}

// scheduleFields are the fields of schedule.
var scheduleFields = []field[schedule.Settings]{
	{name: "cron", form: aText, doc: "minute, hour, day of the month, month, day of the week: `0 3 * * *`; or @hourly, @daily, @weekly, @monthly, @yearly, @every 90m", also: []string{"schedule", "at", "crontab", "expression"}, set: func(p *parser, s *schedule.Settings, v value) { s.Cron, _ = p.parseLine(v) }},
	{name: "time_zone", form: aText, doc: "zone of its times, as Europe/Zurich; the server's own if not given", also: []string{"timezone", "tz", "zone"}, set: setZone},
	{name: "overlap", form: form{text: "skip, allow, replace", schema: func() schema { return schema{"enum": schedule.Overlaps()} }}, doc: "while an earlier run has not ended: leave the new one out, begin it too, or end the earlier one first; skip if not given", also: []string{"concurrency_policy", "concurrencypolicy", "concurrency"}, set: setOverlap},
	{name: "missed", form: form{text: "latest, skip, 2h", schema: scalarSchema}, doc: "runs whose time passed while the server was away: the latest of them begins, none does, or the latest if it is at most so late; latest if not given", also: []string{"starting_deadline", "startingdeadlineseconds", "catchup", "catch_up", "misfire"}, set: setMissed},
	{name: "suspend", form: aBool, doc: "no runs by the clock until `cox schedule resume`", also: []string{"suspended", "paused"}, set: boolField(func(s *schedule.Settings) *bool { return &s.Suspend })},
	{name: "keep", form: aNumber(0, schedule.MostHistory), doc: "runs that `cox schedule show` lists: so many that completed, and so many others; 10 if not given", also: []string{"history", "successfuljobshistorylimit", "failedjobshistorylimit"}, set: func(p *parser, s *schedule.Settings, v value) {
		n := int(p.parseNumber(v, 0, schedule.MostHistory))
		s.Keep = schedule.History{Done: n, Failed: n}
	}},
}

func setZone(p *parser, s *schedule.Settings, v value) {
	name, ok := p.parseLine(v)
	var zone *schedule.ZoneError
	if _, err := schedule.LoadZone(name); ok && errors.As(err, &zone) {
		p.failValue(v, zone.Remedy(), "%s", zone)
		return
	}
	s.Zone = name
}

func setOverlap(p *parser, s *schedule.Settings, v value) {
	text, ok := p.parseLine(v)
	s.Overlap = schedule.Overlap(strings.ToLower(text))
	if s.Overlap == "forbid" { // Kubernetes' word
		s.Overlap = schedule.Skip
	}
	if ok && !slices.Contains(schedule.Overlaps(), s.Overlap) {
		p.failValue(v, "write skip, allow or replace", "%q is none of skip, allow, replace", shortName(text))
	}
}

func setMissed(p *parser, s *schedule.Settings, v value) {
	switch v.Text {
	case "latest":
		s.Late = 0
	case "skip":
		s.Late = schedule.OnTime
	default:
		before := len(p.errs)
		s.Late = p.parseSpan(v, time.Second, 366*24*time.Hour)
		if len(p.errs) > before && !strings.ContainsAny(v.Text, "0123456789") {
			p.errs = p.errs[:before]
			p.failValue(v, "write latest, skip, or how late a run may begin: 2h", "%q is none of latest, skip and a time", shortName(v.Text))
		}
	}
}

func setSchedule(p *parser, d *draft, v value) {
	s := schedule.DefaultSettings()
	before := len(p.errs)
	at := v
	if v.Kind == yaml.Mapping {
		decodeFields(p, v.path, v.Node, scheduleFields, &s)
		if n := v.Get("cron"); n != nil {
			at = value{Node: n, path: v.path + ".cron", name: "cron", at: n.Place}
		} else if len(p.errs) == before {
			p.failValue(v, `write schedule: {cron: "0 3 * * *"}`, "does not say when: cron is missing")
		}
	} else {
		s.Cron, _ = p.parseLine(v)
	}
	if len(p.errs) > before {
		return
	}
	if why, remedy := checkTimes(&s, p.opts.Now); why != "" {
		p.failValue(at, remedy, "%s", why)
		return
	}
	d.schedule = &s
}

// ScheduleOf returns when the job of a document runs; nil: it runs once. The error is that of
// ParseDocument.
func ScheduleOf(doc *yaml.Document, file string, opts Options) (*schedule.Settings, error) {
	if doc.Root.Get("schedule") == nil {
		return nil, nil //nolint:nilnil // it runs once
	}
	d, _, err := parseDocument(doc, file, opts)
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	return d.schedule, nil
}

// ScheduleText are settings of a schedule as they are written beside a file. Empty fields say nothing.
type ScheduleText struct{ Cron, Zone, Overlap, Missed string }

// ParseSchedule reads settings that are written beside a file, in the options of cox submit. The error
// names the option.
func ParseSchedule(t ScheduleText, now time.Time) (*schedule.Settings, error) {
	s := schedule.DefaultSettings()
	s.Cron = t.Cron
	for _, o := range []struct {
		option, text string
		set          func(*parser, *schedule.Settings, value)
	}{{"time-zone", t.Zone, setZone}, {"overlap", t.Overlap, setOverlap}, {"missed", t.Missed, setMissed}} {
		if o.text == "" {
			continue
		}
		p := &parser{doc: &yaml.Document{}}
		o.set(p, &s, value{Node: &yaml.Node{Kind: yaml.Scalar, Text: o.text, Place: yaml.Place{Line: 1, Col: 1, Len: 1}}})
		if len(p.errs) > 0 {
			return nil, fault.New(fault.Invalid, "--%s: %s", o.option, p.errs[0].Message).Advise("%s", p.errs[0].Remedy)
		}
	}
	if why, remedy := checkTimes(&s, now); why != "" {
		return nil, fault.New(fault.Invalid, "--schedule: %s", why).Advise("%s", remedy)
	}
	return &s, nil
}

// checkTimes says why settings have no times, and what to write instead; empty: they have.
func checkTimes(s *schedule.Settings, now time.Time) (why, remedy string) {
	times, err := schedule.ParseCron(s.Cron, s.Zone)
	var cron *schedule.CronError
	switch {
	case errors.As(err, &cron):
		return cron.Why, cron.Remedy
	case err != nil:
		return err.Error(), ""
	case times.Never(now):
		return fmt.Sprintf("%q never comes: no such day is in the calendar", s.Cron), `for the last day of a month write the first of the next: "0 0 1 * *"`
	}
	return "", ""
}

// RenderSchedule writes settings as a line of a document, and says what this form cannot say.
func RenderSchedule(s *schedule.Settings) (line string, missing []spec.Warning) {
	var b strings.Builder
	fmt.Fprintf(&b, "schedule: {cron: %q", s.Cron)
	if s.Zone != "" {
		fmt.Fprintf(&b, ", time_zone: %s", quoteFlow(s.Zone))
	}
	if usual := schedule.DefaultSettings(); s.Overlap != usual.Overlap {
		fmt.Fprintf(&b, ", overlap: %s", s.Overlap)
	}
	if s.Late > 0 {
		fmt.Fprintf(&b, ", missed: %s", formatDuration(max(s.Late.Truncate(time.Second), time.Second)))
	}
	if s.Suspend {
		b.WriteString(", suspend: true")
	}
	if n := max(s.Keep.Done, s.Keep.Failed); n != schedule.DefaultHistory {
		fmt.Fprintf(&b, ", keep: %d", n)
	}
	if s.Keep.Done != s.Keep.Failed {
		missing = append(missing, spec.Warning{Option: "schedule", Message: fmt.Sprintf("keeps %d runs that completed and %d others; this form has one number for both", s.Keep.Done, s.Keep.Failed)})
	}
	if s.CatchUp {
		missing = append(missing, spec.Warning{Option: "schedule", Message: "times that pass while it is suspended count as missed in Kubernetes; in this form they are left out"})
	}
	return b.String() + "}\n", missing
}
