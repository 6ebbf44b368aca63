package command

import (
	"context"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ site.NodeKeeper = (*Site)(nil)

// UpdateNode is site.NodeKeeper's.
func (s *Site) UpdateNode(ctx context.Context, node string, c site.NodeChange) error {
	args := []string{"update", "NodeName=" + node}
	if c.State != "" {
		args = append(args, "State="+c.State)
	}
	if c.Reason != "" {
		args = append(args, "Reason="+c.Reason)
	}
	if c.Extra != nil {
		args = append(args, "Extra="+*c.Extra)
	}
	_, err := s.runQuery(ctx, "scontrol", args...)
	if err != nil && strings.Contains(err.Error(), "Invalid user id") { // slurmctld's words for who is no operator
		return fault.New(fault.Permission, "%w", err)
	}
	return err
}

// WorkOn is site.NodeKeeper's.
func (s *Site) WorkOn(ctx context.Context, node string) ([]site.Work, error) {
	var out []site.Work
	for _, q := range []struct {
		args   []string
		fields []string
	}{
		{[]string{"--all", "--states=all"}, []string{"JobID", "UserName", "State", "Comment"}},
		{[]string{"--all", "--steps"}, []string{"StepID", "UserName"}},
	} {
		text, err := s.runQuery(ctx, "squeue", append(q.args, "--noheader", "--nodelist="+node, "--Format="+squeueFormat(q.fields))...)
		if err != nil {
			return nil, err
		}
		values := strings.Split(strings.TrimRight(string(text), " \n"), sep)
		if len(values)%len(q.fields) != 1 && len(q.fields) > 1 || values[len(values)-1] != "" {
			return nil, fault.New(fault.Unavailable, "squeue answered %.200q, of which %d fields a job were expected", text, len(q.fields))
		}
		for chunk := range slices.Chunk(values[:len(values)-1], len(q.fields)) {
			w := site.Work{Name: strings.TrimSpace(chunk[0]), User: strings.TrimSpace(chunk[1]), Step: len(chunk) == 2}
			if !w.Step {
				w.State, w.Comment = strings.TrimSpace(chunk[2]), emptyIfNone(strings.TrimSpace(chunk[3]))
				if word, ok := site.ParseState(w.State); ok && (word.State == site.Pending || word.State.Final() && !word.Completing) {
					continue
				}
			}
			out = append(out, w)
		}
	}
	return out, nil
}
