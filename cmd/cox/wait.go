package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/show"
)

func (a *app) waitCommand() *cobra.Command {
	var timeout time.Duration
	var quiet bool
	var f format
	cmd := &cobra.Command{
		Use:   "wait JOB…",
		Short: "Wait until jobs have ended, and end with their exit code",
		Long: `Waits until all named jobs have ended and prints how; of an array, 7, that is each task.
The exit code is the job's own, the largest one of several (docs/exit-codes.md). It goes
on over a restart of the server.`,
		Example: `  cox wait 7
  cox wait 7 8 9 && echo all well
  cox wait --timeout 10m 7`,
		Args:              needJobs("wait"),
		ValidArgsFunction: a.completeJobs,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, args []string) error {
			ctx := cmd.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			jobs, ended, err := a.waitAll(ctx, c, args, func(j *api.Job) {
				if !quiet && !f.machine() {
					fmt.Fprintln(a.out, show.Ended(a.page(a.out), j))
				}
			})
			if f.machine() {
				err = errors.Join(writeSome(a.out, f, jobs), err)
			}
			if errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil {
				return fault.New(fault.Unavailable, "%d of %s ended within %s", ended, show.Count(len(args), "job"), timeout).Advise("wait longer, or see why: cox why %s", args[0])
			}
			return err
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "wait no longer than this, such as 10m (0: without end)")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing but errors")
	formatFlag(cmd, &f, asJSON, asYAML)
	return cmd
}

// waitFor waits for the end of a job, or of all tasks of an array.
func waitFor(ctx context.Context, c *client.Client, name string) ([]*api.Job, error) {
	j, err := c.Wait(ctx, name)
	if err != nil {
		return nil, err
	}
	return tasksOf(ctx, c, name, j)
}

// tasksOf is the job that a name has found; all tasks, where that is the number of an array. What
// the history has dropped of these is not there.
func tasksOf(ctx context.Context, c *client.Client, name string, j *api.Job) ([]*api.Job, error) {
	if j.Array == nil || j.Spec == nil || j.Spec.Array == nil || name != j.Array.Job.String() {
		return []*api.Job{j}, nil
	}
	var out []*api.Job
	for _, i := range j.Spec.Array.Indices {
		t, err := c.Job(ctx, fmt.Sprintf("%s_%d", name, i))
		switch {
		case err == nil:
			out = append(out, t)
		case fault.KindOf(err) != fault.NotFound:
			return nil, err
		}
	}
	return out, nil
}

// waitAll waits for all jobs at once and calls said for each as it ends. The exit
// code becomes the largest of theirs. ended counts the names of those that did.
func (a *app) waitAll(ctx context.Context, c *client.Client, names []string, said func(*api.Job)) (jobs []*api.Job, ended int, err error) {
	type end struct {
		jobs []*api.Job
		err  error
	}
	ends := make(chan end)
	for _, n := range names {
		go func() {
			some, err := waitFor(ctx, c, n)
			ends <- end{some, err}
		}()
	}
	var errs []error
	for left := len(names); left > 0; left-- {
		stop := a.spin(func() string { return "waiting for " + show.Count(left, "job") })
		e := <-ends
		stop()
		if e.err != nil {
			errs = append(errs, e.err)
			continue
		}
		ended++
		jobs = append(jobs, e.jobs...)
		for _, j := range e.jobs {
			a.code = max(a.code, exitCode(j))
			said(j)
		}
	}
	if len(errs) == 1 {
		return jobs, ended, errs[0]
	}
	return jobs, ended, errors.Join(errs...)
}
