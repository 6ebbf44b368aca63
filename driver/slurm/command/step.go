package command

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

var _ site.Stepper = (*Site)(nil)

// Step is site.Stepper's, by srun.
func (s *Site) Step(ctx context.Context, j *site.Step) (job.ExitCode, error) {
	by, ok := s.run.(Streamer)
	if !ok {
		return job.ExitCode{}, fault.New(fault.Unsupported, "this way into the cluster carries no streams of commands")
	}
	args := []string{"--jobid=" + strconv.FormatUint(uint64(j.Job), 10)}
	if j.Name != "" {
		args = append(args, "--job-name="+j.Name)
	}
	code, err := by.Stream(ctx, Call{Name: "srun", Args: append(args, j.Words...), Env: slices.Clone(j.Env), User: j.User}, j.Streams)
	if err != nil && j.Name != "" {
		s.endStep(ctx, j)
	}
	return job.ExitCode{Status: code}, err
}

// stepEnding bounds how long the end of a step is asked for.
const stepEnding = 10 * time.Second

// endStep ends a step whose srun is gone, or cannot be told: what it started would go on.
func (s *Site) endStep(ctx context.Context, j *site.Step) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepEnding)
	defer cancel()
	as := &Site{run: s.run, as: j.User}
	out, err := as.runQuery(ctx, "squeue", "--steps", "--noheader", "--jobs="+strconv.FormatUint(uint64(j.Job), 10), "--Format=StepID:"+sep+",StepName:"+sep)
	if err != nil {
		return // it has ended with its job, or ends with it
	}
	fields := strings.Split(string(out), sep)
	for pair := range slices.Chunk(fields[:len(fields)/2*2], 2) {
		if strings.TrimSpace(pair[1]) == j.Name {
			_ = as.runScancel(ctx, []string{strings.TrimSpace(pair[0])})
		}
	}
}
