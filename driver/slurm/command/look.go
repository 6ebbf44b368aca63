package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var (
	_ site.Looker = (*Site)(nil)
	_ site.Trier  = (*Site)(nil)

	_ site.OptionFinder   = (*Site)(nil)
	_ site.StartEstimator = (*Site)(nil)
)

// Look is site.Looker's.
func (s *Site) Look(ctx context.Context) (*site.Look, error) {
	before := time.Now()
	out, err := s.runQuery(ctx, "scontrol", "show", "config")
	if err != nil {
		return nil, err
	}
	after := time.Now()
	l := &site.Look{Way: "Slurm's commands", Settings: map[string]string{}}
	if w, ok := s.run.(fmt.Stringer); ok {
		l.Way += " " + w.String()
	}
	for line := range strings.Lines(string(out)) {
		if at, ok := strings.CutPrefix(line, "Configuration data as of "); ok {
			l.Ahead, l.Clock = clockSkew(strings.TrimSpace(at), before, after)
		}
		if key, value, ok := strings.Cut(line, "="); ok {
			l.Settings[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return l, nil
}

// clockSkew is how much a clock that showed a second, between two times of ours, is before ours.
func clockSkew(second string, before, after time.Time) (d time.Duration, ok bool) {
	n, err := strconv.ParseInt(second, 10, 64)
	if err != nil {
		return 0, false
	}
	first, last := time.Unix(n, 0), time.Unix(n+1, 0)
	switch {
	case last.Before(before):
		d = last.Sub(before)
	case first.After(after):
		d = first.Sub(after)
	}
	return d.Round(time.Second), true
}

// Try is site.Trier's.
func (s *Site) Try(ctx context.Context, j *site.Submission) error {
	_, err := s.runSbatch(ctx, j, "--test-only")
	return err
}

// EstimateStart is site.StartEstimator's: sbatch --test-only, which leaves nothing in slurmctld.
func (s *Site) EstimateStart(ctx context.Context, j *site.Submission) (time.Time, error) {
	r, err := s.callSbatch(ctx, j, epoch, []string{"--test-only", "--export=NONE"}) // with a file of the job's variables, sbatch drops its own
	if err != nil {
		return time.Time{}, err
	}
	return testedStart(string(r.Stderr))
}

// testedStart reads what sbatch --test-only says: "Job 7 to start at 1789000000 using 2 processors on nodes n[1-2]
// in partition main"; of a heterogeneous job it says so for each component, and the last start counts.
func testedStart(said string) (last time.Time, err error) {
	found := false
	for line := range strings.Lines(said) {
		_, rest, ok := strings.Cut(line, " to start at ")
		if !ok {
			continue
		}
		word, _, _ := strings.Cut(rest, " ")
		found = true
		at := parseTime(word)
		if at.IsZero() && word != "Unknown" && word != "0" {
			return at, fault.New(fault.Unavailable, "sbatch --test-only says %q, which is no time", oneLine(line))
		}
		if at.After(last) {
			last = at
		}
	}
	if !found {
		return last, fault.New(fault.Unavailable, "sbatch --test-only does not say when the job would start: %.200q", oneLine(said))
	}
	return last, nil
}

// HasSrunOption is site.OptionFinder's.
func (s *Site) HasSrunOption(ctx context.Context, option string) (bool, error) {
	out, err := s.runQuery(ctx, "srun", "--help")
	return strings.Contains(string(out), option+"=") || strings.Contains(string(out), option+" "), err
}

// String says where the commands run.
func (h *Here) String() string {
	if h.Commands != "" {
		return "in " + h.Commands + " on this machine"
	}
	return "on this machine"
}

// String says where the commands run.
func (s *SSH) String() string { return "over SSH as " + s.Login }
