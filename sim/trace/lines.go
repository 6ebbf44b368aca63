package trace

import (
	"bufio"
	"errors"
	"io"
	"math"
	"strconv"
	"time"
)

// lines hands out the lines of a file one by one.
type lines struct {
	file string
	scan *bufio.Scanner
	no   int
}

func newLines(file string, r io.Reader) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), longest)
	return &lines{file: file, scan: s}
}

func (l *lines) next() (string, bool) {
	if !l.scan.Scan() {
		return "", false
	}
	l.no++
	return l.scan.Text(), true
}

// readError is what went wrong with the file as a whole.
func (l *lines) readError() error {
	err := l.scan.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return &Error{File: l.file, Line: l.no + 1, What: "the line is longer than " + strconv.Itoa(longest) + " bytes"}
	}
	if err != nil {
		return &Error{File: l.file, Line: l.no + 1, What: "it is not whole: " + err.Error()}
	}
	return nil
}

func (l *lines) failAt(field, what string) error {
	return &Error{File: l.file, Line: l.no, Field: field, What: what}
}

// values reads fields of one line and keeps the first error.
type values struct {
	*lines
	names  []string
	fields []string
	err    error
}

func (v *values) markBad(i int, what string) {
	if v.err == nil {
		v.err = v.failAt(v.names[i], strconv.Quote(v.fields[i])+" "+what)
	}
}

// parseWhole is an integer; "8.0" is one too.
func (v *values) parseWhole(i int) int64 {
	if n, err := strconv.ParseInt(v.fields[i], 10, 64); err == nil {
		return n
	}
	f := v.parseNumber(i)
	if f != math.Trunc(f) {
		v.markBad(i, "is not a whole number")
	}
	return int64(f)
}

// parseCount is a number of things.
func (v *values) parseCount(i int) int {
	n := v.parseWhole(i)
	if n < -1 || n > math.MaxInt32 {
		v.markBad(i, "is not a number of things")
	}
	return int(max(n, 0))
}

func (v *values) parseNumber(i int) float64 {
	f, err := strconv.ParseFloat(v.fields[i], 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 1<<53 {
		v.markBad(i, "is not a number")
		return 0
	}
	return f
}

// parseSeconds is a duration; what is negative stays so.
func (v *values) parseSeconds(i int) time.Duration { return v.parseSpan(i, time.Second) }

func (v *values) parseSpan(i int, unit time.Duration) time.Duration {
	f := v.parseNumber(i)
	if math.Abs(f) > math.MaxInt64/4/float64(unit) {
		v.markBad(i, "is not a time that can be counted")
		return 0
	}
	if f == math.Trunc(f) {
		return time.Duration(f) * unit
	}
	return time.Duration(math.Round(f * float64(unit)))
}

func (v *values) parseInstant(i int, layout string) time.Time {
	t, err := time.Parse(layout, v.fields[i])
	if err != nil {
		v.markBad(i, "is not a time such as "+layout)
	}
	return t
}
