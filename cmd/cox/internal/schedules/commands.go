// Package schedules has the commands for schedules: schedule list, show, suspend, resume, run, stop.
package schedules

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Commands returns the commands of this package, each in its group of cox --help.
func Commands(a *cli.App) []*cobra.Command {
	return cli.InGroup(cli.GroupWork, scheduleCommand(a))
}

func scheduleCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "schedule",
		Aliases: []string{"schedules", "cron"},
		Short:   "Schedules: list, show, suspend, resume, run, stop",
		Long: `A schedule submits its job at the times of a cron expression. A file with schedule:
or cox submit --schedule makes one; the same command again changes it. Each run is
a job of the schedule's name.`,
		Example: "  cox schedule list\n  cox schedule show nightly\n  cox schedule run nightly\n  cox schedule suspend nightly\n  cox schedule stop nightly",
	}
	cmd.AddCommand(listCommand(a), showCommand(a), suspendCommand(a), resumeCommand(a), runCommand(a), stopCommand(a))
	return cli.Group(cmd)
}

// completeSchedules offers the names of schedules.
func completeSchedules(a *cli.App) cobra.CompletionFunc {
	return a.CompleteArgument(func(ctx context.Context, c *client.Client) ([]string, error) {
		all, err := c.Schedules(ctx)
		if err != nil {
			return nil, err
		}
		return scheduleNames(all.Schedules), nil
	})
}

func scheduleNames(list []api.Schedule) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return names
}

func listCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the schedules", Args: cobra.NoArgs,
		Example: "  cox schedule list\n  cox schedule list -o json",
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			all, err := c.Schedules(cmd.Context())
			switch {
			case err != nil:
				return err
			case f.IsData():
				return a.WriteData(f, all.Schedules)
			case f == cli.AsName:
				return a.WriteNames(scheduleNames(all.Schedules))
			case len(all.Schedules) == 0:
				fmt.Fprintln(a.Err, `there are no schedules; cox submit --schedule "0 3 * * *" FILE makes one`)
				return nil
			}
			return printer.Schedules(all.Schedules).Write(a.Out, a.Page(a.Out))
		}),
	}
	a.ListFlags(cmd, &f, false)
	return cmd
}

func showCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a schedule and its runs", Args: cobra.ExactArgs(1),
		Example:           "  cox schedule show nightly\n  cox schedule show team/nightly -o json",
		ValidArgsFunction: completeSchedules(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			s, err := c.Schedule(cmd.Context(), args[0])
			switch {
			case err != nil:
				return err
			case f.IsData():
				return a.WriteData(f, s)
			}
			_, err = fmt.Fprint(a.Out, printer.Schedule(a.Page(a.Out), s))
			return err
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

func suspendCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "suspend NAME", Aliases: []string{"pause"}, Short: "Begin no runs until it is resumed", Args: cobra.ExactArgs(1),
		Long:              "Begins no runs by the clock until cox schedule resume. Runs that were begun go on.",
		Example:           "  cox schedule suspend nightly",
		ValidArgsFunction: completeSchedules(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			s, err := c.SuspendSchedule(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "schedule %s is suspended; cox schedule resume %s\n", s.Name, s.Name)
			return err
		}),
	}
}

func resumeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "resume NAME", Short: "Begin runs by the clock again", Args: cobra.ExactArgs(1),
		Long: `Begins runs by the clock again, with the next time. Times that passed while the
schedule was suspended are left out.`,
		Example:           "  cox schedule resume nightly",
		ValidArgsFunction: completeSchedules(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			s, err := c.ResumeSchedule(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "schedule %s: next run %s\n", s.Name, printer.ScheduleTime(s.Next, s.TimeZone))
			return err
		}),
	}
}

func runCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "run NAME", Short: "Begin a run now, by hand", Args: cobra.ExactArgs(1),
		Long: `Begins a run now, beside the times of the schedule, and prints the number of its
job. With overlap: skip it is refused while an earlier run has not ended. It works
for a suspended schedule too.`,
		Example:           "  cox schedule run nightly",
		ValidArgsFunction: completeSchedules(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			r, err := c.RunSchedule(cmd.Context(), args[0])
			switch {
			case err != nil:
				return err
			case r.State == "REFUSED":
				return fault.New(fault.Invalid, "the job of schedule %s was refused: %s", args[0], r.Why)
			case r.Job == 0:
				_, err = fmt.Fprintf(a.Out, "the run waits: %s          cox schedule show %s\n", cmp.Or(r.Why, "an earlier run is being ended"), args[0])
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s submitted by schedule %s\n", a.Page(a.Out).Paint(printer.Accent, r.Job.String()), args[0])
			return err
		}),
	}
}

func stopCommand(a *cli.App) *cobra.Command {
	var cancel bool
	cmd := &cobra.Command{
		Use: "stop NAME", Aliases: []string{"delete", "rm"}, Short: "Remove a schedule", Args: cobra.ExactArgs(1),
		Long:              "Removes a schedule: there are no more runs. Runs that have not ended go on, or are\ncancelled with --cancel.",
		Example:           "  cox schedule stop nightly\n  cox schedule stop --cancel nightly",
		ValidArgsFunction: completeSchedules(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			s, err := c.StopSchedule(cmd.Context(), args[0], cancel)
			if err != nil {
				return err
			}
			line := fmt.Sprintf("schedule %s is stopped", s.Name)
			for i, id := range s.Jobs {
				switch {
				case i > 0:
					line += ", " + id.String()
				case s.Cancelled:
					line += "; cancelled: job " + id.String()
				default:
					line += "; not ended, goes on: job " + id.String()
				}
			}
			_, err = fmt.Fprintln(a.Out, line)
			return err
		}),
	}
	cmd.Flags().BoolVar(&cancel, "cancel", false, "cancel the runs that have not ended")
	return cmd
}
