package jobs

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Bounds of the search for the line that matters: the last lines of an output, and their bytes.
const (
	errorLines = 20
	errorBytes = 64 << 10
)

// ErrorLine is the last line with text that the first failed task of a job wrote, else the last one of
// the job's error output or output. Empty: the job did not fail, or nothing can be read. It reads the
// file with the rights of the job's owner, and may wait for its file system.
func (s *Service) ErrorLine(ctx context.Context, id job.ID) string {
	v, err := s.cfg.Plane.Job(ctx, id)
	if err != nil || v.Job.State != job.Failed && v.Job.State != job.OutOfMemory {
		return ""
	}
	from := s.poolOutput(v.Pool)
	if from == nil {
		return ""
	}
	for _, file := range errorFiles(&v) {
		if line := lastLine(ctx, from, v.Job.Spec.Owner, file); line != "" {
			return line
		}
	}
	return ""
}

// errorFiles are the files in which the line is looked for, best first.
func errorFiles(v *state.View) (files []string) {
	var first *engine.TaskReport
	for i := range v.Report.Tasks {
		t := &v.Report.Tasks[i]
		if t.Step == engine.BatchStep || t.Running || t.Exit.OK() || t.Cause == engine.Stopped || t.Log == "" {
			continue
		}
		if first == nil || t.Ended.Before(first.Ended) {
			first = t
		}
	}
	if first != nil {
		files = append(files, first.Log)
	}
	for _, stream := range []string{"stderr", "stdout"} {
		if file, err := engine.LogFile(v.Report, stream, nil, nil); err == nil && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}

// lastLine is the last line with text of a file, without remarks of the supervisor.
func lastLine(ctx context.Context, from Output, owner job.Owner, file string) string {
	r, err := from.OpenLog(ctx, owner, file)
	if err != nil {
		return ""
	}
	defer r.Close()
	kept, _, err := tailLines(r, errorLines)
	if err != nil {
		return ""
	}
	rest, err := io.ReadAll(io.LimitReader(r, errorBytes))
	if err != nil {
		return ""
	}
	for _, line := range slices.Backward(strings.Split(string(kept)+string(rest), "\n")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "slurmstepd: error: ***") {
			return line
		}
	}
	return ""
}
