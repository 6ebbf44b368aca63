package schedule

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // for machines without a database of time zones

	"github.com/robfig/cron/v3"
)

// Times are the times of a cron expression. It is read by the library that Kubernetes uses, so it is
// what a CronJob takes and means:
//
//   - five fields, each with *, ?, lists, ranges, steps and, for months and days of the week, names; or
//     @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @every DURATION;
//   - where both days are given, either is enough;
//   - a time that clocks jump over, in spring, is left out on that day; one that they show twice, in
//     autumn, comes twice.
//
// It is safe for concurrent use.
type Times struct {
	fields cron.Schedule
	every  time.Duration // of @every; 0: it is none
	zone   *time.Location
}

// CronError is why a text is no cron expression, and what to write instead.
type CronError struct{ Why, Remedy string }

func (e *CronError) Error() string { return e.Why }

// leastEvery is the shortest time of @every: cron's own.
const leastEvery = time.Minute

// cronField is one of the five fields.
type cronField struct{ name, takes string }

var cronFields = []cronField{
	{"minute", "0-59"}, {"hour", "0-23"}, {"day of the month", "1-31"}, {"month", "1-12 or JAN-DEC"}, {"day of the week", "0-6 or SUN-SAT, 0 is Sunday"},
}

// exampleCron is the expression that remedies show.
const exampleCron = `"0 3 * * *" for each day at 03:00`

// ParseCron reads a cron expression in a time zone; "" is that of this process. The error is a
// *CronError or, for the zone, a *ZoneError.
func ParseCron(text, zone string) (*Times, error) {
	loc, err := LoadZone(zone)
	if err != nil {
		return nil, err
	}
	text = strings.TrimSpace(text)
	out := &Times{zone: loc}
	switch fields := strings.Fields(text); {
	case text == "":
		return nil, &CronError{"the cron expression is empty", "write " + exampleCron}
	case len(text) > 500:
		return nil, &CronError{"the cron expression has more than 500 characters", "write " + exampleCron}
	case strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ="):
		name, _, _ := strings.Cut(fields[0][strings.Index(fields[0], "=")+1:], " ")
		return nil, &CronError{"a time zone has no place in the cron expression", fmt.Sprintf("write time_zone: %.60s beside it", name)}
	case strings.HasPrefix(text, "@every"):
		return out, out.parseEvery(strings.TrimSpace(strings.TrimPrefix(text, "@every")))
	case strings.HasPrefix(text, "@"):
		if out.fields, err = cron.ParseStandard(text); err != nil {
			return nil, &CronError{fmt.Sprintf("%.40q is not known", text), "write @hourly, @daily, @weekly, @monthly, @yearly, or " + exampleCron}
		}
	case len(fields) == 6 || len(fields) == 7:
		return nil, &CronError{fmt.Sprintf("%d fields where five are taken: minute, hour, day of the month, month, day of the week", len(fields)), "leave seconds and years out: " + exampleCron}
	case len(fields) != len(cronFields):
		return nil, &CronError{fmt.Sprintf("%d of the five fields: minute, hour, day of the month, month, day of the week", len(fields)), "write " + exampleCron}
	default:
		if out.fields, err = cron.ParseStandard(text); err != nil {
			return nil, findBadField(fields)
		}
	}
	spec, ok := out.fields.(*cron.SpecSchedule)
	if !ok {
		return nil, &CronError{fmt.Sprintf("%.60q is not known", text), "write " + exampleCron}
	}
	spec.Location = loc
	return out, nil
}

func (t *Times) parseEvery(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return &CronError{fmt.Sprintf("@every %.40q: is no duration", text), "write @every 90m or @every 36h"}
	case d < leastEvery:
		return &CronError{fmt.Sprintf("@every %s: the shortest is one minute", text), "write @every 1m, or let the job itself wait and repeat"}
	}
	t.every = d.Truncate(time.Second)
	return nil
}

// findBadField says which of five fields is wrong.
func findBadField(fields []string) error {
	for i, f := range cronFields {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = fields[i]
		if _, err := cron.ParseStandard(strings.Join(alone, " ")); err != nil {
			return &CronError{fmt.Sprintf("%s %.40q: it takes %s", f.name, fields[i], f.takes), "write *, a number, a list (1,15), a range (1-5) or a step (*/10)"}
		}
	}
	return &CronError{fmt.Sprintf("%.80q is no cron expression", strings.Join(fields, " ")), "write " + exampleCron}
}

// ZoneError is why a text is no time zone.
type ZoneError struct{ Zone string }

func (e *ZoneError) Error() string {
	return fmt.Sprintf("%.60q is no time zone that is known here", e.Zone)
}

// Remedy says what to write instead.
func (e *ZoneError) Remedy() string {
	return "write a name of the IANA database, such as Europe/Zurich, America/New_York or Etc/UTC"
}

// LoadZone returns a time zone by its name; "" is that of this process. The error is a *ZoneError.
func LoadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.Local, nil
	}
	if strings.EqualFold(name, "local") { // Go's own word, which Kubernetes refuses too
		return nil, &ZoneError{name}
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, &ZoneError{name}
	}
	return loc, nil
}

// Zone is the time zone of the expression.
func (t *Times) Zone() *time.Location { return t.zone }

// Next returns the first time after another, in the zone; zero: there is none within five years, which is
// never.
func (t *Times) Next(after time.Time) time.Time {
	if t.every > 0 {
		return after.Truncate(time.Second).Add(t.every).In(t.zone)
	}
	next := t.fields.Next(after)
	if next.IsZero() {
		return next
	}
	return next.In(t.zone)
}

// Never reports whether no time comes after another.
func (t *Times) Never(after time.Time) bool { return t.Next(after).IsZero() }

// windows are how far Latest looks back, step by step: most expressions have a time within the first.
var windows = []time.Duration{time.Hour, 24 * time.Hour, 40 * 24 * time.Hour, 370 * 24 * time.Hour, 5 * 370 * 24 * time.Hour}

// Latest returns the last time that is after one and not after the other; zero: there is none.
func (t *Times) Latest(after, now time.Time) time.Time {
	if t.every > 0 {
		start := after.Truncate(time.Second)
		n := now.Sub(start) / t.every
		if n < 1 {
			return time.Time{}
		}
		return start.Add(n * t.every).In(t.zone)
	}
	for _, w := range windows {
		from := now.Add(-w)
		if from.Before(after) {
			from = after
		}
		var last time.Time
		for at := t.Next(from); !at.IsZero() && !at.After(now); at = t.Next(at) {
			last = at
		}
		if !last.IsZero() || from.Equal(after) {
			return last
		}
	}
	return time.Time{}
}

// MostMissed is how far Count counts.
const MostMissed = 100

// Count returns how many times are after one and not after the other, MostMissed + 1 at most.
func (t *Times) Count(after, now time.Time) (n int) {
	for at := t.Next(after); !at.IsZero() && !at.After(now) && n <= MostMissed; at = t.Next(at) {
		n++
	}
	return n
}
