package slurmfmt

import (
	"strconv"
	"strings"
	"time"
)

// WhenForms lists the forms of a begin time, for messages.
const WhenForms = "HH:MM[:SS] [AM|PM], MMDD[YY], MM/DD[/YY][-HH:MM[:SS]], YYYY-MM-DD[THH:MM[:SS]], now[+count[seconds|minutes|hours|days|weeks]], today, tomorrow, midnight, noon, elevenses, fika, teatime"

// ParseWhen reads the time of --begin and --deadline. Times of day that have
// passed mean tomorrow, dates without a year that have passed mean next year.
// The result is in now's time zone, and in the year 2261 at the latest: later ones
// cannot be counted in nanoseconds.
func ParseWhen(s string, now time.Time) (time.Time, error) {
	t, err := parseWhen(s, now)
	if err == nil && t.UTC().Year() > 2261 {
		return time.Time{}, textError(s, "is later than the year 2261, the last one that is known here")
	}
	return t, err
}

func parseWhen(s string, now time.Time) (time.Time, error) {
	words := strings.Fields(strings.ToLower(s))
	if len(words) == 0 {
		return time.Time{}, textError(s, "is not a time (forms: %s)", WhenForms)
	}
	if rest, ok := strings.CutPrefix(strings.Join(words, ""), "now"); ok {
		return parseNow(s, rest, now)
	}
	if seconds, ok := strings.CutPrefix(words[0], "uts"); ok && len(words) == 1 && len(seconds) < 12 && allDigits(seconds) {
		n, _ := strconv.ParseInt(seconds, 10, 64)
		return time.Unix(n, 0).In(now.Location()), nil
	}
	w := when{now: now}
	for _, word := range splitDateTime(words) {
		if !w.takeWord(word) {
			at := max(strings.Index(strings.ToLower(s), word), 0)
			return time.Time{}, wrongPart(s, at, min(at+len(word), len(s)), "is not a time (forms: %s)", WhenForms)
		}
	}
	return w.timeOf(s)
}

// splitDateTime cuts "2027-01-20t12:34" and "01/20-12:34" in two and joins "4:00" "pm".
func splitDateTime(words []string) []string {
	var out []string
	for _, w := range words {
		date, clock, ok := strings.Cut(w, "t")
		switch {
		case ok && strings.Contains(date, "-"):
			out = append(out, date, clock)
		case strings.Contains(w, ":") && strings.Contains(w, "-"):
			i := strings.LastIndexByte(w, '-')
			out = append(out, w[:i], w[i+1:])
		case (w == "am" || w == "pm") && len(out) > 0:
			out[len(out)-1] += w
		default:
			out = append(out, w)
		}
	}
	return out
}

func parseNow(s, rest string, now time.Time) (time.Time, error) {
	if rest == "" {
		return now, nil
	}
	bad := wrongPart(s, min(3, len(s)), len(s), "is not a time: now+count[seconds|minutes|hours|days|weeks]")
	sign := int64(1)
	switch rest[0] {
	case '+':
	case '-':
		sign = -1
	default:
		return time.Time{}, bad
	}
	digits := 1
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	n, ok := parseDigits(rest[1:digits])
	unit, known := whenUnit(rest[digits:])
	if !ok || !known || n > int64(MaxTimeLimit/unit) {
		return time.Time{}, bad
	}
	return now.Add(time.Duration(sign*n) * unit), nil
}

// whenUnit takes a unit or the beginning of one; no unit is seconds.
func whenUnit(s string) (time.Duration, bool) {
	if s == "" {
		return time.Second, true
	}
	for _, u := range []struct {
		name string
		unit time.Duration
	}{
		{"seconds", time.Second},
		{"minutes", time.Minute},
		{"hours", time.Hour},
		{"days", 24 * time.Hour},
		{"weeks", 7 * 24 * time.Hour},
	} {
		if strings.HasPrefix(u.name, s) {
			return u.unit, true
		}
	}
	return 0, false
}

// when collects a date and a time of day.
type when struct {
	now                  time.Time
	hasDate, hasClock    bool
	hasYear              bool
	year, month, day     int
	hour, minute, second int
}

var dayTimes = map[string]int{"midnight": 0, "elevenses": 11, "noon": 12, "fika": 15, "teatime": 16}

func (w *when) takeWord(word string) bool {
	if hour, ok := dayTimes[word]; ok {
		return w.setClock(hour, 0, 0)
	}
	switch word {
	case "today":
		return w.setDate(w.now.Year(), int(w.now.Month()), w.now.Day(), true)
	case "tomorrow":
		t := w.now.AddDate(0, 0, 1)
		return w.setDate(t.Year(), int(t.Month()), t.Day(), true)
	}
	if strings.Contains(word, ":") {
		return w.takeClock(word)
	}
	return w.takeDate(word)
}

func (w *when) takeClock(word string) bool {
	word, pm := strings.CutSuffix(word, "pm")
	word, am := strings.CutSuffix(word, "am")
	n, ok := splitNumbers(word, ":", 2, 3)
	if !ok {
		return false
	}
	n = append(n, 0)
	switch {
	case (am || pm) && (n[0] < 1 || n[0] > 12):
		return false
	case am || pm:
		n[0] %= 12
		if pm {
			n[0] += 12
		}
	}
	return n[0] < 24 && n[1] < 60 && n[2] < 60 && w.setClock(n[0], n[1], n[2])
}

func (w *when) takeDate(word string) bool {
	switch {
	case strings.Contains(word, "-"):
		n, ok := splitNumbers(word, "-", 3, 3)
		return ok && w.setDate(n[0], n[1], n[2], true)
	case strings.ContainsAny(word, "/."):
		sep := "/"
		if strings.Contains(word, ".") {
			sep = "."
		}
		n, ok := splitNumbers(word, sep, 2, 3)
		if !ok {
			return false
		}
		if len(n) == 2 {
			return w.setDate(0, n[0], n[1], false)
		}
		return w.setDate(fullYear(n[2]), n[0], n[1], true)
	case allDigits(word) && (len(word) == 4 || len(word) == 6):
		month, _ := strconv.Atoi(word[:2])
		day, _ := strconv.Atoi(word[2:4])
		if len(word) == 4 {
			return w.setDate(0, month, day, false)
		}
		year, _ := strconv.Atoi(word[4:])
		return w.setDate(fullYear(year), month, day, true)
	}
	return false
}

func fullYear(y int) int {
	if y < 100 {
		return 2000 + y
	}
	return y
}

// splitNumbers splits at sep into least to most small numbers.
func splitNumbers(s, sep string, least, most int) ([]int, bool) {
	parts := strings.Split(s, sep)
	if len(parts) < least || len(parts) > most {
		return nil, false
	}
	n := make([]int, 0, most+1)
	for _, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || !allDigits(p) || len(p) > 4 {
			return nil, false
		}
		n = append(n, v)
	}
	return n, true
}

func (w *when) setClock(h, m, s int) bool {
	if w.hasClock {
		return false
	}
	w.hasClock, w.hour, w.minute, w.second = true, h, m, s
	return true
}

func (w *when) setDate(y, m, d int, hasYear bool) bool {
	lengths := []int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if w.hasDate || m < 1 || m > 12 || d < 1 || d > lengths[m-1] {
		return false
	}
	leap := time.Date(y, 2, 29, 0, 0, 0, 0, time.UTC).Day() == 29
	if hasYear && m == 2 && d == 29 && !leap {
		return false
	}
	w.hasDate, w.hasYear, w.year, w.month, w.day = true, hasYear, y, m, d
	return true
}

func (w *when) timeOf(s string) (time.Time, error) {
	at := func(y, m, d int) time.Time {
		return time.Date(y, time.Month(m), d, w.hour, w.minute, w.second, 0, w.now.Location())
	}
	switch {
	case w.hasDate && w.hasYear:
		return at(w.year, w.month, w.day), nil
	case w.hasDate: // the next such day; 29 February may be years away
		for y := range 9 {
			t := at(w.now.Year()+y, w.month, w.day)
			if t.Day() == w.day && !t.Before(w.now) {
				return t, nil
			}
		}
		return time.Time{}, textError(s, "is no day of the next years")
	}
	t := at(w.now.Year(), int(w.now.Month()), w.now.Day())
	if t.Before(w.now) {
		t = at(w.now.Year(), int(w.now.Month()), w.now.Day()+1)
	}
	return t, nil
}
