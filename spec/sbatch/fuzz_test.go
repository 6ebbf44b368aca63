package sbatch

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
)

// one reads a single option; a value with what ends a line is left out.
func one(t *testing.T, option, value string, more ...string) (*job.Spec, error) {
	t.Helper()
	s, _, err := Parse(source("#!/bin/sh\n"), Options{
		Dir: "/d", Args: append([]string{"--" + option + "=" + value}, more...), MaxArraySize: 100_000, Now: time.Date(2026, 11, 21, 13, 29, 8, 0, time.UTC), Mail: true,
	})
	var e *spec.Error
	if err != nil && (!errors.As(err, &e) || e.Message == "") {
		t.Fatalf("--%s=%q: %T %v", option, value, err, err)
	}
	if err != nil {
		if e.Text != "" && (e.Col < 1 || e.Col-1 > len(e.Text) || e.Col-1+e.Len > len(e.Text)) {
			t.Fatalf("--%s=%q: marks %d bytes at %d of %q", option, value, e.Len, e.Col, e.Text)
		}
		_ = err.Error()
	}
	return s, err
}

// A dependency that is taken names jobs, and is the same when its spelling is read.
func FuzzDependency(f *testing.F) {
	for _, s := range []string{"afterok:7:8_3,after:9+10:11", "singleton?afterany:5", "7_[1-3,9],8", "aftercorr:7_*", "expand:3", "afterok:", ",?", "after:1+99999999999", "0", "afterok:7_[1-3%2]", "7?8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 {
			return
		}
		s, err := one(t, "dependency", text)
		if err != nil || s.Depends.IsZero() {
			return
		}
		n := 0
		for _, c := range s.Depends.Clauses {
			n += len(c.Jobs)
			if (c.Kind == job.Singleton) != (len(c.Jobs) == 0) || c.Delay != 0 && c.Kind != job.After || c.Delay < 0 {
				t.Fatalf("%q: %+v", text, c)
			}
		}
		if n > maxDependencies {
			t.Fatalf("%q names %d jobs", text, n)
		}
		back, err := one(t, "dependency", s.Depends.String())
		if err != nil {
			t.Fatalf("%q is written %q: %v", text, s.Depends.String(), err)
		}
		back.Depends.Text = s.Depends.Text
		if diff := cmp.Diff(s.Depends, back.Depends); diff != "" && len(s.Depends.Clauses) > 1 {
			t.Fatalf("%q -want +got\n%s", text, diff)
		}
	})
}

// An array that is taken has ascending indices below the limit, and is the same when
// its spelling is read.
func FuzzArray(f *testing.F) {
	for _, s := range []string{"0-15", "1,3,5", "1-7:2%3", "[1-3%2]", "[0-9]%1", "5-1", "0-9999999", "1-3,2-5,7", "%", "0-4294967295:7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 {
			return
		}
		s, err := one(t, "array", text)
		if err != nil {
			return
		}
		a := s.Array
		for i, n := range a.Indices {
			if n >= 100_000 || i > 0 && n <= a.Indices[i-1] {
				t.Fatalf("%q: index %d", text, n)
			}
		}
		written := *a
		written.Text = ""
		back, err := slurmfmt.ParseArray(arrayText(&written), 100_000)
		if err != nil || back.MaxRunning != a.MaxRunning || !cmp.Equal(back.Indices(), a.Indices) {
			t.Fatalf("%q is written %q: %v", text, arrayText(&written), err)
		}
	})
}

// A deadline that is taken is to come and leaves room; a time limit that is taken is
// written and read as the same.
func FuzzDeadline(f *testing.F) {
	for _, s := range []string{"now+1hour|60|now", "16:00|5|noon", "2030-01-02T03:04|1-2:3|tomorrow", "12/24-18:00|UNLIMITED|", "uts1893456000|0:0:61|now+2weeks", "010230|90|4 pm", "29.02|5|fika"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 21, 13, 29, 8, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		parts := strings.Split(text, "|")
		if len(text) > 200 || len(parts) != 3 {
			return
		}
		more := []string{"--time=" + parts[1]}
		if parts[2] != "" {
			more = append(more, "--begin="+parts[2])
		}
		s, err := one(t, "deadline", parts[0], more...)
		if err != nil {
			return
		}
		from := now
		if s.Begin.After(now) {
			from = s.Begin
		}
		if s.Deadline.Sub(from) < s.TimeLimit || s.Deadline.Before(now) || s.TimeLimit < 0 || s.TimeLimit%time.Minute != 0 {
			t.Fatalf("%q: deadline %v, begin %v, limit %v", text, s.Deadline, s.Begin, s.TimeLimit)
		}
		if back, err := slurmfmt.ParseTimeLimit(slurmfmt.FormatTimeLimit(s.TimeLimit)); err != nil || back != s.TimeLimit {
			t.Fatalf("%q: limit %v is written %s", text, s.TimeLimit, slurmfmt.FormatTimeLimit(s.TimeLimit))
		}
		if back, err := slurmfmt.ParseWhen(formatClock(s.Deadline), now); err != nil || !back.Equal(s.Deadline) {
			t.Fatalf("%q: deadline %v is read back as %v, %v", text, s.Deadline, back, err)
		}
	})
}

// Whatever header is taken can be rendered, and what comes out is taken and means
// the same, or a warning says what does not.
func FuzzRender(f *testing.F) {
	for _, s := range renderable {
		f.Add("#SBATCH " + strings.ReplaceAll(s, "\n", "\n#SBATCH "))
	}
	opts := Options{Dir: "/home/anna", Mail: true, MaxArraySize: 10_000, Now: time.Date(2026, 11, 21, 13, 29, 8, 0, time.UTC)}
	f.Fuzz(func(t *testing.T, header string) {
		if len(header) > 2000 {
			return
		}
		script := "#!/bin/sh\n" + header + "\ntrue\n"
		s, _, err := Parse(source(script), opts)
		if err != nil || s.Env.Set != nil {
			return
		}
		out, warnings := Render(s, []byte(script))
		back, _, err := Parse(source(string(out)), opts)
		if err == nil && same(s, back) == "" {
			return
		}
		if len(warnings) == 0 {
			t.Fatalf("%v\n%s\nwithout a warning:\n%s", err, header, out)
		}
	})
}
