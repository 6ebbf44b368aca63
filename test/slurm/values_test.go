package slurmtest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// directive is what stands behind #SBATCH in a script of its own, with a line break
// perhaps and the next line.
type directive struct {
	text string
	why  string // sbatch reads it otherwise; empty: it does not
}

// readDirectives reads testdata/lines.txt.
func readDirectives(t *testing.T) []directive {
	t.Helper()
	data, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []directive
	for line := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n") {
		if line == "" || strings.HasPrefix(line, "## ") {
			continue
		}
		text, why, _ := strings.Cut(line, "\t")
		out = append(out, directive{strings.ReplaceAll(text, "⏎", "\n"), why})
	}
	return out
}

// Each line is taken or refused alike, and what both take shows the same fields.
func TestValues(t *testing.T) {
	l := openLab(t)
	count, compared := map[string]int{}, 0
	lines := readDirectives(t)
	for _, line := range lines {
		text := "#!/bin/sh\n#SBATCH " + line.text + "\ntrue\n"
		s, ours := l.parse(text, true)
		got, r := l.hold(t, text)
		real := complaint(t, r)
		var diff []string
		switch {
		case agree(real, ours):
			count["both refuse"]++
		case real == (verdict{}) && len(ours) == 0:
			count["both accept"]++
			var n int
			n, diff = l.compare(t, s, got)
			compared += n
		case real == (verdict{}) && complaint(t, l.run(t, "sbatch", "--test-only", l.write(t, text))).kind == "does not fit":
			count["both refuse: no node could ever do"]++ // sbatch only where the job is not held
		case real.kind == "value" && len(ours) == 0 && withoutEffect(real.what):
			count["values of options without effect, not checked here"]++
		default:
			diff = []string{"sbatch: " + real.String() + ", here: " + join(ours)}
		}
		switch {
		case line.why != "" && len(diff) == 0:
			t.Errorf("%q is listed as a difference, but there is none", line.text)
		case line.why != "":
			count["listed differences"]++
			t.Logf("%q: %s: %s", line.text, strings.Join(diff, "; "), line.why)
		case len(diff) > 0:
			t.Errorf("%q: %s\n%s", line.text, strings.Join(diff, "; "), r.stderr)
		}
	}
	t.Logf("%d lines, %v, %d fields compared", len(lines), count, compared)
}

// withoutEffect reports whether an option is taken without effect.
func withoutEffect(name string) bool {
	return slices.ContainsFunc(sbatch.Table(), func(o sbatch.Option) bool { return o.Name == name && o.Status == sbatch.NoEffect })
}

func join(v []verdict) string {
	if len(v) == 0 {
		return "accepted"
	}
	var out []string
	for _, v := range v {
		out = append(out, v.String())
	}
	return strings.Join(out, ", ")
}
