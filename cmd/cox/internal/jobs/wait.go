package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/internal/joboutput"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func waitCommand(a *cli.App) *cobra.Command {
	var timeout time.Duration
	var quiet bool
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "wait JOB…",
		Short: "Wait until jobs have ended, and end with their exit code",
		Long: `Waits until all named jobs have ended and prints how; for an array, 7, for each task.
The exit code is the job's own, the largest one of several
(docs/reference/exit-codes.md). It continues over a restart of the server. Ctrl-C ends
the waiting, not the jobs. For an
array, -o json and -o yaml print a list with a short entry for each task; cox show
has the rest.`,
		Example: `  cox wait 7
  cox wait 7 8 9 && echo all well
  cox wait --timeout 10m 7`,
		Args:              cli.RequireJobs("wait"),
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			began := time.Now()
			whole, stop := cli.Interruptible(cmd.Context())
			defer stop()
			ctx := whole
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			done, err := waitAll(a, ctx, c, args, quiet, func(j *api.Job) {
				if !quiet && !f.IsData() {
					PrintEnd(ctx, a, a.Out, c, j)
				}
			})
			if f.IsData() {
				err = errors.Join(printJobs(a, done.jobs, f, done.list, nil), err)
			}
			switch {
			case err == nil:
			case whole.Err() != nil:
				a.ReportInterrupted(began, stillWaited(whole, c, args, done.names), "cox wait "+strings.Join(args, " ")+" waits again; the jobs go on")
				return nil
			case ctx.Err() != nil:
				return fault.New(fault.Unavailable, "%d of %s ended within %s", done.names, printer.Count(len(args), "job"), timeout).Advise("wait longer, or see why: cox why %s", args[0])
			}
			return err
		}),
	}
	cli.DurationFlag(cmd.Flags(), &timeout, "timeout", 0, "wait no longer than this, such as 10m (0: without end)")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only errors")
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

// stillWaited says how far a wait that was interrupted has come.
func stillWaited(ctx context.Context, c *client.Client, names []string, ended int) string {
	if len(names) > 1 {
		return fmt.Sprintf("%d of %s ended", ended, printer.Count(len(names), "job"))
	}
	after, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	j, err := c.Job(after, names[0])
	if err != nil {
		return fmt.Sprintf("job %s has not ended", names[0])
	}
	return cli.StateAndWhy(j)
}

// WaitFor waits for the end of a job, or of all tasks of an array, of which it has the outcome
// alone (client.Tasks).
func WaitFor(ctx context.Context, c *client.Client, name string) (jobs []*api.Job, list bool, err error) {
	j, err := c.Wait(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if !ofArray(j, name) {
		return []*api.Job{j}, false, nil
	}
	tasks, err := c.Tasks(ctx, j.Array.Job)
	out := make([]*api.Job, len(tasks))
	for i := range tasks {
		out[i] = &tasks[i]
	}
	return out, true, err
}

// PrintEnd prints how a job ended, and what matters of the output of one that failed.
func PrintEnd(ctx context.Context, a *cli.App, w io.Writer, c *client.Client, j *api.Job) {
	p := a.Page(w)
	fmt.Fprintln(w, printer.Ended(p, j))
	if line := joboutput.FirstError(ctx, c, j); line != "" {
		fmt.Fprintf(w, "first  %s\n", printer.Clean(line))
	}
}

// ofArray reports whether a name that has found a job is the number of an array.
func ofArray(j *api.Job, name string) bool { return j.Array != nil && name == j.Array.Job.String() }

// waited is what ended.
type waited struct {
	jobs  []*api.Job
	names int  // that found them
	list  bool // one of these is the number of an array
}

// waitAll waits for all jobs at once and calls said for each as it ends. The exit
// code becomes the largest of theirs.
func waitAll(a *cli.App, ctx context.Context, c *client.Client, names []string, quiet bool, said func(*api.Job)) (waited, error) {
	type end struct {
		jobs []*api.Job
		list bool
		err  error
	}
	var done waited
	ends := make(chan end)
	if len(names) == 1 && !quiet {
		defer announceBeside(ctx, a, c, names[0])()
	}
	for _, n := range names {
		go func() {
			some, list, err := WaitFor(ctx, c, n)
			ends <- end{some, list, err}
		}()
	}
	var errs []error
	for left := len(names); left > 0; left-- {
		stop := a.ShowSpinner(func() string { return "waiting for " + printer.Count(left, "job") })
		e := <-ends
		stop()
		if e.err != nil {
			errs = append(errs, e.err)
			continue
		}
		done.names++
		done.list = done.list || e.list
		done.jobs = append(done.jobs, e.jobs...)
		for _, j := range e.jobs {
			a.Code = max(a.Code, cli.JobExitCode(j))
			said(j)
		}
	}
	if len(errs) == 1 {
		return done, errs[0]
	}
	return done, errors.Join(errs...)
}
