package submission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/agent/ownlimit"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/jobs"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// submitFlags are the flags of cox submit.
type submitFlags struct {
	job                   jobOptions
	from, pool, pods      string
	wait, parsable, quiet bool
	follow                bool
	testOnly, dry, strict bool
	noProvenance, upload  bool
	schedule              api.ScheduleTimes
	format                cli.Format
}

func submitCommand(a *cli.App) *cobra.Command {
	var f submitFlags
	cmd := &cobra.Command{
		Use:   "submit [flags] FILE [ARG…]  |  submit [flags] -- COMMAND [ARG…]",
		Short: "Hand work to the server: an sbatch script, a Kubernetes manifest, native YAML, or a command",
		Long: `Submits a job to the server and prints its number. FILE is an sbatch script, a
Kubernetes manifest, or native YAML or JSON; its name or its content decides which. "-" is standard input.
YAML with kind: service, or a Deployment, starts a service, or begins its next
revision. Of a manifest everything that runs is checked, then submitted.
A file with schedule:, or --schedule, makes a schedule, whose job runs at these
times.
After "--" comes a command that every task runs.

All options of sbatch work, with sbatch's letters and meaning, for every kind of
FILE (docs/reference/sbatch.md lists them). They override the environment (SBATCH_*),
which overrides the file. Options come before FILE; words after FILE go to the script.
The job is durable when its number is printed.`,
		Example: `  cox submit train.sbatch
  cox submit train.yaml
  cox submit -N 4 --gpus-per-node 8 --mem 64G train.sbatch --epochs 3
  cox submit -n 8 -t 4h -o run-%j.log -- python -m torch.distributed.run train.py
  cox submit --env LR=0.1 --pool slurm-b train.sbatch
  cox submit -n 8 --pods task -- python train.py   # Kubernetes: a pod per task
  cox submit -f train.sbatch             # shows its output
  cox submit --wait train.sbatch         # ends with the job's exit code
  id=$(cox submit --parsable train.sbatch)
  cox submit --upload train.sbatch       # send the files of this directory too
  cox submit --test-only train.sbatch    # when and where would it start?
  cox submit --schedule "0 3 * * *" nightly.sbatch    # each day at 03:00
  generate | cox submit -`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // files
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := submitJob(a, cmd, &f, args); err != nil {
				return markNotSubmitted(err)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false) // what follows FILE is the script's
	fl.StringVar(&f.from, "from", "", "form of FILE: sbatch, native or manifest (default: detected)")
	fl.StringVar(&f.pool, "pool", "", "pool to run in (default: the file's, else the best one)")
	fl.StringVar(&f.pods, "pods", "", "Kubernetes: one pod per node or per task (default: node)")
	fl.BoolVarP(&f.wait, "wait", "W", false, "wait until the job has ended; exit with its code")
	fl.BoolVarP(&f.follow, "follow", "f", false, "wait as --wait does, and print the job's output")
	fl.BoolVar(&f.parsable, "parsable", false, "print only the number")
	fl.BoolVarP(&f.quiet, "quiet", "Q", false, "print only errors")
	fl.BoolVar(&f.testOnly, "test-only", false, "check the job and say when it would start; keep nothing")
	fl.BoolVar(&f.dry, "dry-run", false, "show the job without a server; with --pool, what the server would send there")
	fl.BoolVar(&f.strict, "strict", false, "treat warnings as errors")
	fl.StringVar(&f.schedule.Cron, "schedule", "", "`CRON` run it at these times, such as \"0 3 * * *\"")
	fl.StringVar(&f.schedule.TimeZone, "time-zone", "", "`ZONE` of --schedule, such as Europe/Zurich (default: the server's)")
	fl.StringVar(&f.schedule.Overlap, "overlap", "", "with --schedule, while a run has not ended: skip, allow, replace")
	fl.StringVar(&f.schedule.Missed, "missed", "", "with --schedule, missed runs: latest, skip, or at most 2h late")
	fl.BoolVar(&f.upload, "upload", false, "send the working directory too, except what .gitignore and .coxignore name")
	fl.BoolVar(&f.noProvenance, "no-provenance", false, "do not record files and git commit")
	cli.OutputFormatFlag(cmd, &f.format, "format", "", cli.AsJSON, cli.AsYAML, cli.AsName)
	f.job.addTo(a, cmd)
	_ = cmd.RegisterFlagCompletionFunc("pods", cobra.FixedCompletions([]string{"node", "task"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("overlap", cobra.FixedCompletions([]string{"skip", "allow", "replace"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions([]string{api.FormSbatch, api.FormNative, api.FormManifest}, cobra.ShellCompDirectiveNoFileComp))
	a.CompleteFlag(cmd, "pool", a.PoolNames)
	return cmd
}

// markNotSubmitted marks an error of a submission, unless what failed came after it.
func markNotSubmitted(err error) error {
	var after *errAfterSubmit
	if errors.As(err, &after) {
		return after.error
	}
	return cli.NotDone(err, "not submitted")
}

// errAfterSubmit marks an error that came when the job had been taken.
type errAfterSubmit struct{ error }

func submitJob(a *cli.App, cmd *cobra.Command, f *submitFlags, args []string) error {
	req, err := submitRequest(a, cmd, f, args)
	if err != nil {
		return err
	}
	if works := worksOf(req); len(works) > 0 {
		return submitEach(a, cmd, f, req, works)
	}
	return submitOne(a, cmd, f, req)
}

// submitOne hands one thing over, or shows it.
func submitOne(a *cli.App, cmd *cobra.Command, f *submitFlags, req *api.Submit) error {
	if f.dry {
		return dryRun(a, cmd.Context(), f, req)
	}
	read, files := readHere(req)
	req.Files = files
	if err := checkWait(f, read); err != nil {
		return err
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	if !f.noProvenance && !f.testOnly {
		req.Provenance = collectProvenance(cmd.Context(), req)
	}
	if f.upload {
		if err := uploadDirectory(a, cmd.Context(), c, f, req); err != nil {
			return err
		}
	}
	stop := a.ShowProgress(len(req.Text), "sending %s", printer.Bytes(int64(len(req.Text))))
	done, err := c.Submit(cmd.Context(), req)
	stop()
	if err != nil {
		return err
	}
	if p := a.Page(a.Err); p.Width > 0 && read != nil && !f.parsable && !f.quiet {
		fmt.Fprintln(a.Err, printer.Asked(read.Spec, req.File))
	}
	if !f.quiet {
		fmt.Fprint(a.Err, printer.Warnings(a.Page(a.Err), done.Warnings))
	}
	if !f.parsable && !f.format.IsData() && !done.Quiet && !f.quiet {
		fmt.Fprint(a.Err, printer.Chosen(a.Page(a.Err), done.Pool, done.Chosen))
	}
	if f.testOnly {
		return printEstimate(a, f, done)
	}
	if err := printSubmitted(a, f, done); err != nil {
		return &errAfterSubmit{err}
	}
	if f.wait || f.follow {
		if err := waitSubmitted(a, cmd.Context(), c, f, done); err != nil {
			return &errAfterSubmit{err}
		}
	}
	return nil
}

// submitRequest makes the request to the server from the arguments.
func submitRequest(a *cli.App, cmd *cobra.Command, f *submitFlags, args []string) (*api.Submit, error) {
	if array := f.job.array(); f.follow && array != "" {
		return nil, fault.New(fault.Invalid, "--follow shows the output of one job, and --array=%s makes several", array).Advise("submit it without -f, then cox logs -f JOB_INDEX")
	}
	if err := f.job.checkOutput("json", "yaml", "name"); err != nil {
		return nil, err
	}
	from, err := f.job.readSource(a, cmd, args, f.from)
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	env, err := f.job.variables()
	if err != nil {
		return nil, err
	}
	notify, err := f.job.notify()
	if err != nil {
		return nil, err
	}
	rerun, err := f.job.rerun()
	if err != nil {
		return nil, err
	}
	times, err := f.times()
	if err != nil {
		return nil, err
	}
	mask := cli.Umask()
	return &api.Submit{
		Form: from.text.Form, File: from.text.Name, Text: string(from.text.Data), ScriptArgs: from.args, Command: from.text.Command,
		Args: f.job.args(), Env: env, Image: f.job.image, Notify: notify, Rerun: rerun, Environ: os.Environ(), Dir: dir, Host: cli.Hostname(), Umask: &mask, Limits: ownlimit.Texts(),
		Strict: f.strict, TestOnly: f.testOnly, Pool: f.pool, Pods: f.pods, Schedule: times,
	}, nil
}

func printSubmitted(a *cli.App, f *submitFlags, done *api.Submitted) error {
	switch {
	case done.Service != nil:
		return printSubmittedService(a, f, done)
	case done.Schedule != nil:
		return printSubmittedSchedule(a, f, done)
	}
	id := done.ID.String()
	switch {
	case f.format.IsData():
		return a.WriteData(f.format, done)
	case f.parsable || f.format == cli.AsName:
		return cli.WriteNames(a.Out, []string{id})
	case f.quiet:
		return nil
	}
	p := a.Page(a.Out)
	line := p.Paint(printer.Accent, id)
	if done.Name != "" {
		line += " " + printer.Clean(done.Name)
	}
	line += " submitted"
	if done.Tasks > 1 {
		line += ", " + printer.Count(done.Tasks, "task")
	}
	if p.Width > 0 && !f.wait {
		line += p.Paint(printer.Dim, fmt.Sprintf("          cox why %s   cox logs -f %s", id, id))
	}
	_, err := fmt.Fprintln(a.Out, line)
	return err
}

func printEstimate(a *cli.App, f *submitFlags, done *api.Submitted) error {
	if f.format.IsData() {
		return a.WriteData(f.format, done)
	}
	_, err := fmt.Fprint(a.Out, printer.Estimate(a.Page(a.Out), done))
	return err
}

// waitSubmitted waits for the end of the job, or of all tasks, and takes the exit code. Ctrl-C ends
// the waiting, not the job.
func waitSubmitted(a *cli.App, ctx context.Context, c *client.Client, f *submitFlags, done *api.Submitted) error {
	if done.Service != nil {
		return waitService(ctx, a, c, f, done.Service)
	}
	name := done.ID.String()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	var ended []*api.Job
	if f.follow {
		if err = jobs.FollowLog(ctx, a, c, name, client.LogOptions{Follow: true}); err != nil && ctx.Err() == nil {
			fmt.Fprintf(a.Err, "cox: the output cannot be shown: %v\n", err)
		}
		ended, _, err = jobs.WaitFor(ctx, c, name)
	} else {
		ended, err = jobs.WaitAnnounced(ctx, a, c, name, f.quiet || f.parsable)
	}
	if ctx.Err() != nil {
		fmt.Fprintf(a.Err, "job %s goes on          cox wait %s   cox cancel %s\n", name, name, name)
		a.Code = 130
		return nil
	}
	if err != nil {
		return err
	}
	for _, j := range ended {
		if !f.quiet {
			jobs.PrintEnd(ctx, a, a.Err, c, j)
		}
		a.Code = max(a.Code, cli.JobExitCode(j))
	}
	return nil
}
