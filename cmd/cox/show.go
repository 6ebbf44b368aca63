package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/job"
)

func (a *app) showCommand() *cobra.Command {
	var f format
	var script, environ bool
	cmd := &cobra.Command{
		Use:   "show JOB…",
		Short: "Show everything about a job, also one that ended long ago",
		Long: `Shows each job, and of an array, 7, its first 100 tasks (-o name: all). Of an array -o json and
-o yaml are a list. --script and --env are the same for all tasks.`,
		Example: `  cox show 7
  cox show 7_3 -o json
  cox show 7 --script > again.sbatch
  cox show 7 --env | grep CUDA`,
		Args:              needJobs("show"),
		ValidArgsFunction: a.completeJobs,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, args []string) error {
			switch ctx := cmd.Context(); {
			case script:
				return each(args, func(name string) error {
					b, err := c.Script(ctx, name)
					if err == nil {
						_, err = a.out.Write(b)
					}
					return err
				})
			case environ:
				return each(args, func(name string) error {
					env, err := c.Environment(ctx, name)
					if err != nil {
						return err
					}
					return writeNames(a.out, env)
				})
			}
			var jobs []*api.Job
			list := false
			err := each(args, func(name string) error {
				j, err := c.Job(cmd.Context(), name)
				if err != nil {
					return err
				}
				if !ofArray(j, name) {
					jobs = append(jobs, j)
					return nil
				}
				list = true
				tasks, err := a.tasksOf(cmd.Context(), c, j.Array.Job, f)
				jobs = append(jobs, tasks...)
				return err
			})
			return errors.Join(a.sayJobs(jobs, f, list), err)
		}),
	}
	cmd.Flags().BoolVar(&script, "script", false, "print the batch script as it was submitted")
	cmd.Flags().BoolVar(&environ, "env", false, "print the environment that was submitted")
	cmd.MarkFlagsMutuallyExclusive("script", "env")
	formatFlag(cmd, &f, asJSON, asYAML, asName)
	return cmd
}

// mostShown is how many tasks of an array are shown whole.
const mostShown = 100

// tasksOf are the first tasks of an array; for their names, all. They are asked for at once: by
// itself each comes with the indices of all, which are megabytes.
func (a *app) tasksOf(ctx context.Context, c *client.Client, array job.ID, f format) ([]*api.Job, error) {
	tasks, err := c.Tasks(ctx, array)
	if err != nil {
		return nil, err
	}
	var out []*api.Job
	if f == asName {
		for i := range tasks {
			out = append(out, &tasks[i])
		}
		return out, nil
	}
	if more := len(tasks) - mostShown; more > 0 {
		fmt.Fprintf(a.err, "%d more tasks of %s          cox history %s --limit 0\n", more, array, array)
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

func (a *app) sayJobs(jobs []*api.Job, f format, list bool) error {
	switch {
	case f.machine() && list:
		return f.write(a.out, append([]*api.Job{}, jobs...))
	case f.machine():
		return writeSome(a.out, f, jobs)
	}
	for i, j := range jobs {
		if f == asName {
			fmt.Fprintln(a.out, j.Name)
			continue
		}
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprint(a.out, printer.Job(a.page(a.out), j))
	}
	return nil
}

// writeSome prints one value by itself, several as a list, none not at all.
func writeSome[T any](w io.Writer, f format, values []T) error {
	switch len(values) {
	case 0:
		return nil
	case 1:
		return f.write(w, values[0])
	}
	return f.write(w, values)
}

// each calls f for every name, and goes on after an error.
func each(names []string, f func(name string) error) error {
	var errs []error
	for _, n := range names {
		if err := f(n); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func (a *app) whyCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use:   "why JOB…",
		Short: "Say everything that keeps a job waiting",
		Long: `Says all reasons why a job waits, not only the first, since when each holds, and when
the job starts if nothing changes.`,
		Example: `  cox why 7
  cox why 7_3 -o json`,
		Args:              needJobs("why"),
		ValidArgsFunction: a.completeJobs,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, args []string) error {
			var all []*api.Why
			err := each(args, func(name string) error {
				w, err := c.Why(cmd.Context(), name)
				if err != nil {
					return err
				}
				if f.machine() {
					all = append(all, w)
					return nil
				}
				j, err := c.Job(cmd.Context(), w.Name) // of an array it is one of its tasks
				if err != nil {
					return err
				}
				_, err = fmt.Fprint(a.out, printer.Why(a.page(a.out), w, j))
				return err
			})
			return errors.Join(writeSome(a.out, f, all), err)
		}),
	}
	formatFlag(cmd, &f, asJSON, asYAML)
	return cmd
}
