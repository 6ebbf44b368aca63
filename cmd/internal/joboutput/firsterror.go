package joboutput

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/engine"
)

// lastLines is how many lines at the end of a log the one that matters is looked for in.
const lastLines = 20

// FirstError is what the first task of a job that failed wrote last, "rank 3: CUDA error", or the last
// line of the job's error output; empty where the job did not fail, or nobody may see its output.
func FirstError(ctx context.Context, c *client.Client, j *api.Job) string {
	if !slices.Contains([]string{"FAILED", "OUT_OF_MEMORY", "TIMEOUT"}, j.State) || j.State == "TIMEOUT" && j.Exit.OK() {
		return ""
	}
	if t := firstFailure(j.Tasks); t != nil {
		if line := lastLineOf(ctx, c, j.Name, client.LogOptions{Step: &t.Step, Rank: &t.Rank, Tail: lastLines}); line != "" {
			return fmt.Sprintf("rank %d: %s", t.Rank, line)
		}
	}
	if j.Spec != nil && j.Spec.Output.Stderr != "" {
		if line := lastLineOf(ctx, c, j.Name, client.LogOptions{Stream: "stderr", Tail: lastLines}); line != "" {
			return line
		}
	}
	return lastLineOf(ctx, c, j.Name, client.LogOptions{Tail: lastLines})
}

// firstFailure is the task that ended badly first; those that were stopped because of it do not count.
func firstFailure(tasks []api.Task) *api.Task {
	var first *api.Task
	for i := range tasks {
		t := &tasks[i]
		if t.Step == engine.BatchStep || t.Running || t.Exit.OK() || t.Cause == string(engine.Stopped) || !t.Log {
			continue
		}
		if first == nil || t.Ended.Before(first.Ended) {
			first = t
		}
	}
	return first
}

// lastLineOf is the last line with text of a log, without the server's own remarks.
func lastLineOf(ctx context.Context, c *client.Client, name string, o client.LogOptions) string {
	r, err := c.Logs(ctx, name, o)
	if err != nil {
		return ""
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return ""
	}
	for _, line := range slices.Backward(strings.Split(string(b), "\n")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "slurmstepd: error: ***") {
			return line
		}
	}
	return ""
}
