package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/internal/joboutput"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/job"
)

func showCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	var script, environ, series bool
	cmd := &cobra.Command{
		Use:   "show JOB…",
		Short: "Show everything about a job, even one that ended long ago",
		Long: `Shows each job; of an array, 7, its first 100 tasks (-o name: all). For an array,
-o json and -o yaml print a list. --script and --env are the same for all tasks.
--series draws how the job used CPUs, memory and GPUs over its time.`,
		Example: `  cox show 7
  cox show 7_3 -o json
  cox show 7 --script > again.sbatch
  cox show 7 --env | grep CUDA
  cox show 7 --series`,
		Args:              cli.RequireJobs("show"),
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			switch ctx := cmd.Context(); {
			case script:
				return cli.ForEach(args, func(name string) error {
					b, err := c.Script(ctx, name)
					if err == nil {
						_, err = a.Out.Write(b)
					}
					return err
				})
			case environ:
				return cli.ForEach(args, func(name string) error {
					env, err := c.Environment(ctx, name)
					if err != nil {
						return err
					}
					return cli.WriteNames(a.Out, env)
				})
			}
			if series {
				return showSeries(a, cmd.Context(), c, f, args)
			}
			var jobs []*api.Job
			list := false
			err := cli.ForEach(args, func(name string) error {
				j, err := c.Job(cmd.Context(), name)
				if err != nil {
					return err
				}
				if !ofArray(j, name) {
					addLiveUsage(cmd.Context(), c, j)
					jobs = append(jobs, j)
					return nil
				}
				list = true
				tasks, err := tasksOf(a, cmd.Context(), c, j.Array.Job, f)
				jobs = append(jobs, tasks...)
				return err
			})
			return errors.Join(printJobs(a, jobs, f, list, func(j *api.Job) string { return joboutput.FirstError(cmd.Context(), c, j) }), err)
		}),
	}
	cmd.Flags().BoolVar(&script, "script", false, "print the batch script as it was submitted")
	cmd.Flags().BoolVar(&environ, "env", false, "print the environment that was submitted")
	cmd.Flags().BoolVar(&series, "series", false, "draw the use of CPUs, memory and GPUs over the job's time")
	cmd.MarkFlagsMutuallyExclusive("script", "env", "series")
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML, cli.AsName)
	return cmd
}

// showSeries draws how jobs used what they hold. The number of an array names one of its tasks.
func showSeries(a *cli.App, ctx context.Context, c *client.Client, f cli.Format, names []string) error {
	var all []*api.Series
	err := cli.ForEach(names, func(name string) error {
		s, err := c.Series(ctx, name)
		switch {
		case err != nil:
			return err
		case f.IsData():
			all = append(all, s)
			return nil
		case f == cli.AsName:
			fmt.Fprintln(a.Out, s.Name)
			return nil
		}
		_, err = fmt.Fprint(a.Out, printer.Series(a.Page(a.Out), s))
		return err
	})
	return errors.Join(cli.WriteValues(a, f, all), err)
}

// addLiveUsage adds to a job that runs what it has used so far. A server or an engine that does not
// measure that is no error.
func addLiveUsage(ctx context.Context, c *client.Client, j *api.Job) {
	if j.State != job.Running.String() || j.Used != nil {
		return
	}
	if u, err := c.Usage(ctx, j.Name); err == nil && u.Running {
		j.Used = u.Used
	}
}

// mostShown is how many tasks of an array are shown whole.
const mostShown = 100

// tasksOf are the first tasks of an array; for their names, all. They are asked for at once: by
// itself each comes with the indices of all, which are megabytes.
func tasksOf(a *cli.App, ctx context.Context, c *client.Client, array job.ID, f cli.Format) ([]*api.Job, error) {
	tasks, err := c.Tasks(ctx, array)
	if err != nil {
		return nil, err
	}
	var out []*api.Job
	if f == cli.AsName {
		for i := range tasks {
			out = append(out, &tasks[i])
		}
		return out, nil
	}
	if more := len(tasks) - mostShown; more > 0 {
		fmt.Fprintf(a.Err, "%d more tasks of %s          cox history %s --limit 0\n", more, array, array)
		tasks = tasks[:mostShown]
	}
	var indices []string
	for i := range tasks {
		_, index, _ := strings.Cut(tasks[i].Name, "_")
		indices = append(indices, index)
	}
	if len(indices) == 0 {
		return nil, nil
	}
	q := client.HistoryQuery{Select: api.Select{IDs: []string{array.String() + "_[" + strings.Join(indices, ",") + "]"}}, Limit: mostShown}
	page, err := c.HistoryPage(ctx, q)
	if err != nil {
		return nil, err
	}
	var whole *job.ArraySpec // what comes first has all indices: the last task
	for i := range slices.Backward(page.Jobs) {
		t := &page.Jobs[i]
		if out = append(out, t); t.Spec != nil && t.Spec.Array != nil && len(t.Spec.Array.Indices) > 0 {
			whole = t.Spec.Array
		}
	}
	if whole == nil {
		return out, nil
	}
	if first := out[0].Spec; first != nil && first.Array != nil && first.Array != whole { // as in lists
		first.Array.Indices, whole.Indices = whole.Indices, []uint32{}
	}
	return out, nil
}

// printJobs prints jobs; first says what matters of the output of one that failed.
func printJobs(a *cli.App, jobs []*api.Job, f cli.Format, list bool, first func(*api.Job) string) error {
	switch {
	case f.IsData() && list:
		return a.WriteData(f, append([]*api.Job{}, jobs...))
	case f.IsData():
		return cli.WriteValues(a, f, jobs)
	}
	for i, j := range jobs {
		if f == cli.AsName {
			fmt.Fprintln(a.Out, j.Name)
			continue
		}
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		fmt.Fprint(a.Out, printer.Job(a.Page(a.Out), j, first(j)))
	}
	return nil
}

func whyCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "why JOB…",
		Short: "Show everything that keeps a job waiting",
		Long: `Says all reasons why a job waits, not only the first, since when each holds, and when
the job starts if nothing changes.`,
		Example: `  cox why 7
  cox why 7_3 -o json`,
		Args:              cli.RequireJobs("why"),
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			var all []*api.Why
			if len(args) == 1 && !cli.IsJob(args[0]) {
				return whyService(a, cmd.Context(), c, f, args[0])
			}
			err := cli.ForEach(args, func(name string) error {
				if !cli.IsJob(name) {
					return whyService(a, cmd.Context(), c, f, name)
				}
				w, err := c.Why(cmd.Context(), name)
				if err != nil {
					return err
				}
				if f.IsData() {
					all = append(all, w)
					return nil
				}
				j, err := c.Job(cmd.Context(), w.Name) // of an array it is one of its tasks
				if err != nil {
					return err
				}
				if _, err = fmt.Fprint(a.Out, printer.Why(a.Page(a.Out), w, j)); err != nil {
					return err
				}
				if line := joboutput.FirstError(cmd.Context(), c, j); line != "" {
					_, err = fmt.Fprintf(a.Out, "  first  %s\n", printer.Clean(line))
				}
				if j.Array != nil && name == j.Array.Job.String() {
					fmt.Fprintf(a.Err, "this is one task of the array %s; cox why %s_N says it of another, cox show %s of all\n", name, name, name)
				}
				return err
			})
			return errors.Join(cli.WriteValues(a, f, all), err)
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cli.TakeServices(cmd)
}

// whyService says what a service decided and what it waits for, and why each replica waits that does.
func whyService(a *cli.App, ctx context.Context, c *client.Client, f cli.Format, name string) error {
	s, err := c.Service(ctx, name)
	if err != nil {
		return err
	}
	if f.IsData() {
		return a.WriteData(f, s)
	}
	if _, err := fmt.Fprint(a.Out, printer.Service(a.Page(a.Out), s)); err != nil {
		return err
	}
	if len(s.Reasons) == 0 && s.Replicas.Ready >= s.Replicas.Want {
		if _, err := fmt.Fprintln(a.Out, "nothing is missing: each replica that is wanted is ready"); err != nil {
			return err
		}
	}
	for i := range s.Parts {
		r := &s.Parts[i]
		if r.Job == 0 || r.State != job.Pending.String() {
			continue
		}
		w, err := c.Why(ctx, r.Job.String())
		if err != nil {
			return err
		}
		j, err := c.Job(ctx, r.Job.String())
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(a.Out, printer.Why(a.Page(a.Out), w, j)); err != nil {
			return err
		}
	}
	return nil
}
