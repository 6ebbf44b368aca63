package slurmtest

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// What is rendered from the job that a public script comes to is the same job for a
// real sbatch.
func TestRendered(t *testing.T) {
	l := openLab(t)
	headers := readHeaders(t)
	l.reserve(t, headers)
	jobs, compared := 0, 0
	for _, h := range sample(headers, 90) {
		text := h.script()
		s, refusals := l.parse(text, false)
		if len(refusals) > 0 || s.Image != "" || s.Source.Given["cores-per-socket"] != "" {
			continue // refused, of a plugin, or with cores that are not chosen here
		}
		rendered, warnings := sbatch.Render(s, []byte(text))
		if len(warnings) > 0 {
			t.Errorf("%s: %v", h.Source, warnings)
		}
		got, r := l.hold(t, string(rendered))
		if r.code != 0 {
			if first := l.run(t, "sbatch", "--test-only", l.write(t, text)); first.code == 0 {
				t.Errorf("%s: %s%s\n%s", h.Source, r.stderr, strings.Join(h.Lines, "\n"), rendered)
			}
			continue
		}
		jobs++
		n, diff := l.compare(t, s, got)
		compared += n
		for _, d := range diff {
			t.Errorf("%s: %s\n%s\nrendered\n%s", h.Source, d, strings.Join(h.Lines, "\n"), rendered)
		}
	}
	t.Logf("%d jobs, %d fields compared", jobs, compared)
	if jobs < 30 {
		t.Error("too few")
	}
}
