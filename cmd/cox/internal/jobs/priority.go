package jobs

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

func priorityCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "priority [JOB…]",
		Short: "Show how the priorities of waiting jobs add up",
		Long: `Shows every factor of a job's priority, its weight and its points, which add up to
the number that orders the queue. Without a job, it prints a line for each waiting
job.`,
		Example:           "  cox priority 7\n  cox priority -o json",
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if len(args) == 0 {
				all, err := c.Priorities(cmd.Context())
				switch {
				case err != nil:
					return err
				case f.IsData():
					return a.WriteData(f, all)
				case f == cli.AsName:
					var names []string
					for i := range all.Jobs {
						names = append(names, all.Jobs[i].Job)
					}
					return a.WriteNames(names)
				case len(all.Jobs) == 0:
					fmt.Fprintln(a.Err, "no job waits")
					return nil
				}
				return printer.Priorities(all.Jobs).Write(a.Out, a.Page(a.Out))
			}
			var all []*api.Priority
			err := cli.ForEach(args, func(name string) error {
				p, err := c.Priority(cmd.Context(), name)
				switch {
				case err != nil:
					return err
				case f.IsData():
					all = append(all, p)
					return nil
				case f == cli.AsName:
					return a.WriteNames([]string{p.Job})
				}
				_, err = fmt.Fprint(a.Out, printer.Priority(a.Page(a.Out), p))
				return err
			})
			return errors.Join(cli.WriteValues(a, f, all), err)
		}),
	}
	a.ListFlags(cmd, &f, false)
	return cmd
}
