package printer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Duration is a length of time in words: "0.2 s", "41 s", "2 h 14 min", "3 days 4 h".
func Duration(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return strconv.FormatFloat(float64(d.Milliseconds()/100)/10, 'f', 1, 64) + " s"
	case d < 2*time.Minute && d%time.Minute != 0:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return twoUnits(d, time.Minute, "min", time.Second, "s")
	case d < day:
		return twoUnits(d, time.Hour, "h", time.Minute, "min")
	}
	return twoUnits(d, day, "d", time.Hour, "h")
}

func twoUnits(d, large time.Duration, name string, small time.Duration, rest string) string {
	n, m := int(d/large), int(d%large/small)
	s := fmt.Sprintf("%d %s", n, name)
	if name == "d" {
		s = Count(n, "day")
	}
	if m > 0 {
		s += fmt.Sprintf(" %d %s", m, rest)
	}
	return s
}

// Elapsed is a length of time for a column: "0:07", "2:14:03", "3-04:00:00".
func Elapsed(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	days, hours, minutes, seconds := s/86400, s/3600%24, s/60%60, s%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", days, hours, minutes, seconds)
	case hours > 0:
		return fmt.Sprintf("%d:%02d:%02d", hours, minutes, seconds)
	}
	return fmt.Sprintf("%d:%02d", minutes, seconds)
}

// Seconds makes a duration of the API's seconds.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Time is a moment: the clock alone today, the date with it otherwise, "" if it is
// not known.
func (p Page) Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	t, now := p.localTime(t), p.localTime(p.Now)
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

// moments are times as reasons have them.
var moments = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// localizeTimes is a text whose moments are as all others of the page.
func (p Page) localizeTimes(text string) string {
	return moments.ReplaceAllStringFunc(text, func(m string) string {
		t, err := time.Parse(time.RFC3339, m)
		if err != nil {
			return m
		}
		return p.Time(t)
	})
}

// Ago is how long ago a moment was, in words.
func (p Page) Ago(t time.Time) string { return Duration(p.Now.Sub(t)) }

// Count is a number with its noun: "1 node", "8 nodes".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "y") && noun != "day" {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	if strings.HasSuffix(noun, "s") {
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Number prints a float without a useless fraction.
func Number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Bytes is a size with its unit.
func Bytes(n int64) string { return resource.FormatBytes(resource.Amount(n)) }

// Hosts is the short form of node names.
func Hosts(names []string) string { return hostlist.Compress(names) }

// card is lines of a label and its facts.
type card struct {
	p Page
	b strings.Builder
}

// labels is the width of the column of labels.
const labels = 10

func (c *card) head(format string, args ...any) {
	c.b.WriteString(c.p.Paint(Strong, Clean(fmt.Sprintf(format, args...))))
	c.b.WriteByte('\n')
}

// fact prints a line under a label unless its text is empty.
func (c *card) fact(label, text string) {
	if text == "" {
		return
	}
	c.b.WriteString(c.p.Paint(Dim, label))
	c.b.WriteString(strings.Repeat(" ", max(labels-Width(label), 1)))
	c.b.WriteString(Clean(text))
	c.b.WriteByte('\n')
}

// line prints a line as it is; it must be clean.
func (c *card) line(text string) {
	c.b.WriteString(text)
	c.b.WriteByte('\n')
}
