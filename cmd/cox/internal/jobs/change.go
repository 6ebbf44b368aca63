package jobs

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// changeFlags is a command that makes the same change to a selection of jobs.
type changeFlags struct {
	sel    selectFlags
	all    bool
	yes    bool
	quiet  bool
	format cli.Format
	past   string // "cancelled"
}

// changeCommand makes a command for a verb; fill completes the change from flags.
func changeCommand(a *cli.App, cmd *cobra.Command, past string, fill func(*api.Change, []string) ([]string, error)) *cobra.Command {
	f := &changeFlags{past: past}
	cmd.ValidArgsFunction = a.CompleteJobs
	cmd.RunE = a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
		ch := &api.Change{Verb: cmd.Name()}
		ids := args
		if fill != nil {
			var err error
			if ids, err = fill(ch, args); err != nil {
				return err
			}
		}
		ch.Select = f.sel.selectJobs(ids)
		ch.Select.All = f.all
		if len(ids) == 0 && !f.all && !f.sel.isGiven(cmd.Flags()) {
			return needJobs(cmd.Name(), args)
		}
		if err := refuseParts(cmd.Name(), ids); err != nil {
			return err
		}
		return changeJobs(a, cmd.Context(), c, f, ch)
	})
	f.sel.add(a, cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "every live job that you may change")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&f.quiet, "quiet", false, "print only errors")
	cli.FormatFlag(cmd, &f.format, cli.AsJSON, cli.AsYAML, cli.AsName)
	return cmd
}

// refuseParts refuses tasks and steps, which are named by a point: a change is about whole jobs.
func refuseParts(verb string, ids []string) error {
	for _, id := range ids {
		if whole, _, part := strings.Cut(id, "."); part {
			return fault.New(fault.Invalid, "%s is a part of job %s, and cox %s is about whole jobs", id, whole, verb).
				Advise("for the whole job: cox %s %s; scancel %s ends a step alone", verb, whole, id)
		}
	}
	return nil
}

// needJobs is the error about a change that names no jobs; args are the words of the command.
func needJobs(verb string, args []string) error {
	example := verb
	if verb == api.VerbSignal {
		if len(args) == 1 && args[0] != "" && args[0][0] >= '0' && args[0][0] <= '9' {
			return fault.New(fault.Invalid, "cox signal needs a signal and then a job: %s is one of them", args[0]).Advise("for example: cox signal USR1 %s", args[0])
		}
		example += " USR1"
	}
	return fault.New(fault.Invalid, "cox %s needs jobs", verb).
		Advise("for example: cox %s 7 8; or choose them by --me, -u USER, --state PENDING, --name NAME or --all (cox queue lists the jobs)", example)
}

func changeJobs(a *cli.App, ctx context.Context, c *client.Client, f *changeFlags, ch *api.Change) error {
	if ok, err := confirmChange(a, ctx, c, f, ch); err != nil || !ok {
		return err
	}
	done, err := c.Change(ctx, ch)
	if err != nil {
		return err
	}
	switch {
	case f.format.IsData():
		err = a.WriteData(f.format, done)
	case f.format == cli.AsName:
		err = cli.WriteNames(a.Out, done.Names)
	case !f.quiet:
		_, err = fmt.Fprint(a.Out, printer.Changed(f.past, done))
	}
	if err != nil {
		return err
	}
	return printChangeErrors(a, done)
}

// printChangeErrors prints why some jobs were not changed, and leaves the exit code
// of the first of these errors.
func printChangeErrors(a *cli.App, done *api.Changed) error {
	const most = 10
	for i := range done.Errors {
		e := &done.Errors[i]
		if i == most {
			fmt.Fprintf(a.Err, "cox: and %s more\n", printer.Count(len(done.Errors)-most, "job"))
			break
		}
		text := printer.Clean(e.Error.Error())
		if !strings.Contains(text, e.Name) {
			text = e.Name + ": " + text
		}
		fmt.Fprintf(a.Err, "cox: %s\n", text)
		if e.Error.Remedy != "" && (i == 0 || e.Error.Remedy != done.Errors[i-1].Error.Remedy) {
			fmt.Fprintf(a.Err, "  %s\n", printer.Clean(e.Error.Remedy))
		}
	}
	if len(done.Errors) > 0 {
		a.Code = done.Errors[0].Error.FaultKind().ExitCode()
	}
	return nil
}

// confirmChange asks on a terminal before a selection of several jobs is changed. Jobs
// that were named are not asked about, nor is without a terminal.
func confirmChange(a *cli.App, ctx context.Context, c *client.Client, f *changeFlags, ch *api.Change) (bool, error) {
	if f.yes || len(ch.Select.IDs) > 0 || !cli.IsTerminal(a.In) || !cli.IsTerminal(a.Err) {
		return true, nil
	}
	n := 0
	q := client.Query{Select: ch.Select}
	q.All = false
	if err := cli.EachJobRow(ctx, c, q, []string{"name"}, func([]string) error { n++; return nil }); err != nil {
		return false, err
	}
	if n < 2 {
		return true, nil
	}
	fmt.Fprintf(a.Err, "%s %s? [y/N] ", ch.Verb, printer.Count(n, "job"))
	answer, _ := bufio.NewReader(a.In).ReadString('\n') // the end of the input is a no
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return true, nil
	}
	fmt.Fprintln(a.Err, "nothing was changed")
	a.Code = fault.Conflict.ExitCode()
	return false, nil
}

func cancelCommand(a *cli.App) *cobra.Command {
	var now bool
	var grace time.Duration
	var signal, reason string
	cmd := &cobra.Command{
		Use:   "cancel JOB…",
		Short: "End jobs: first a signal, then the kill",
		Long: `Ends jobs, all in one durable step. A running job gets SIGTERM, and SIGKILL when
the grace time is over; a waiting job leaves the queue. A job is named by its
number, a task of an array as 7_3, several tasks as 7_[1-4,9].

Without numbers the flags choose among the live jobs; on a terminal the command
then asks for confirmation.`,
		Example: `  cox cancel 7 8
  cox cancel 7_[1-4]
  cox cancel --now 7
  cox cancel --me --state PENDING
  cox cancel -u anna -y`,
	}
	changeCommand(a, cmd, "cancelled", func(ch *api.Change, args []string) ([]string, error) {
		ch.Signal, ch.Reason = signal, reason
		switch {
		case now:
			ch.Grace = new(float64)
		case cmd.Flags().Changed("grace"):
			if grace < 0 {
				return nil, fault.New(fault.Invalid, "--grace=%s is negative", grace).Advise("write 0 or more, such as 30s; --now kills at once")
			}
			s := grace.Seconds()
			ch.Grace = &s
		}
		return args, nil
	})
	fl := cmd.Flags()
	fl.BoolVar(&now, "now", false, "kill at once, without a grace time")
	cli.DurationFlag(fl, &grace, "grace", 0, "time between the signal and the kill (default: the server's)")
	fl.StringVar(&signal, "signal", "", "the first signal, instead of TERM")
	fl.StringVar(&reason, "reason", "", "reason to show to the job's owner")
	cmd.MarkFlagsMutuallyExclusive("now", "grace")
	cli.AllowEmpty(cmd, "reason")
	return cmd
}

func signalCommand(a *cli.App) *cobra.Command {
	var batch, full bool
	cmd := &cobra.Command{
		Use:   "signal SIGNAL JOB…",
		Short: "Send a signal to the processes of jobs",
		Example: `  cox signal USR1 7
  cox signal HUP --batch 7       # the batch script alone`,
	}
	changeCommand(a, cmd, "signalled", func(ch *api.Change, args []string) ([]string, error) {
		if len(args) == 0 {
			return nil, fault.New(fault.Invalid, "cox signal needs a signal and a job").Advise("for example: cox signal USR1 7")
		}
		ch.Signal, ch.BatchOnly, ch.Full = args[0], batch, full
		return args[1:], nil
	})
	cmd.Flags().BoolVar(&batch, "batch", false, "send it only to the batch script")
	cmd.Flags().BoolVar(&full, "full", false, "send it to the batch script and all tasks")
	return cmd
}

func holdCommand(a *cli.App) *cobra.Command {
	return changeCommand(a, &cobra.Command{
		Use: "hold JOB…", Short: "Keep waiting jobs from starting",
		Example: "  cox hold 7 8\n  cox hold --me --name sweep",
	}, "held", nil)
}

func releaseCommand(a *cli.App) *cobra.Command {
	return changeCommand(a, &cobra.Command{
		Use: "release JOB…", Short: "Let held jobs start again",
		Example: "  cox release 7\n  cox release --me",
	}, "released", nil)
}

func suspendCommand(a *cli.App) *cobra.Command {
	return changeCommand(a, &cobra.Command{
		Use: "suspend JOB…", Short: "Stop the processes of running jobs; they keep their nodes and devices",
		Example: "  cox suspend 7",
	}, "suspended", nil)
}

func resumeCommand(a *cli.App) *cobra.Command {
	return changeCommand(a, &cobra.Command{
		Use: "resume JOB…", Short: "Continue suspended jobs",
		Example: "  cox resume 7",
	}, "resumed", nil)
}

func checkpointDoneCommand(a *cli.App) *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use: "checkpoint-done JOB…", Short: "Report that jobs have saved their state",
		Long: `Reports that running jobs have saved their state, so that they lose nothing if they
are stopped. Such jobs are the first to make room for others. A job that was asked
to make room, saved and ended is queued again. A job calls it for itself:
cox checkpoint-done "$SLURM_JOB_ID"; a file does the same.
docs/explanation/checkpoint.md has the contract.`,
		Example: `  cox checkpoint-done "$SLURM_JOB_ID"
  cox checkpoint-done --as step-1200.pt "$SLURM_JOB_ID"`,
	}
	changeCommand(a, cmd, "noted", func(ch *api.Change, args []string) ([]string, error) {
		ch.Saved = as
		return args, nil
	})
	cmd.Flags().StringVar(&as, "as", "", "saved file: a name in the job's checkpoint directory, or an absolute path (default: the directory)")
	return cmd
}

func requeueCommand(a *cli.App) *cobra.Command {
	var hold bool
	cmd := &cobra.Command{
		Use: "requeue JOB…", Short: "Run jobs again under the same number",
		Long: `Puts jobs back into the queue: a running job is ended first, a job that has ended
runs again. The script, its options and its environment stay as submitted.`,
		Example: "  cox requeue 7\n  cox requeue --hold 7",
	}
	changeCommand(a, cmd, "requeued", func(ch *api.Change, args []string) ([]string, error) {
		ch.Hold = hold
		return args, nil
	})
	cmd.Flags().BoolVar(&hold, "hold", false, "and hold them")
	return cmd
}
