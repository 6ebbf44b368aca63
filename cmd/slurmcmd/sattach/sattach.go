package sattach

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/step"
	stepsrun "github.com/coxswain-sched/coxswain/agent/step/srun"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/srun"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
)

const usageText = `Usage: sattach [options] <jobid.stepid>
`

const helpText = usageText + `
      --input-filter=taskid   send standard input to the specified task only
      --output-filter=taskid  only print stdout from the specified task
      --error-filter=taskid   only print stderr from the specified task
  -l, --label                 prepend task number to lines of stdout & stderr
      --layout                print task layout info and exit (does not attach to
                              tasks)
  -Q, --quiet                 no effect: nothing but output and errors is printed
  -v, --verbose               no effect
  -V, --version               print the version
  -h, --help                  this text
  -u, --usage                 the first line of it

A step whose output goes into files on its nodes (srun -o f.%t) prints nothing here.
Ctrl-C ends sattach, not the step.
`

// follower is what is asked for.
type follower struct {
	*slurmcmd.Command
	input, output, err   string
	label, layout        bool
	help, usage, version bool
}

// Options lists the options of sattach, for documents and tests.
func Options() []slurmcmd.Option { return (&follower{Command: &slurmcmd.Command{}}).options() }

func (f *follower) options() []slurmcmd.Option {
	return []slurmcmd.Option{
		slurmcmd.Autocomplete(),
		slurmcmd.Text("error-filter", 0, &f.err),
		slurmcmd.Flag("help", 'h', &f.help),
		slurmcmd.Text("input-filter", 0, &f.input),
		slurmcmd.Flag("label", 'l', &f.label),
		slurmcmd.Flag("layout", 0, &f.layout),
		slurmcmd.Text("output-filter", 0, &f.output),
		slurmcmd.Refused("pty", 0, getopt.None, "srun --jobid=JOB --overlap --pty bash opens a terminal beside the step"),
		slurmcmd.Ignored("quiet", 'Q', getopt.None),
		slurmcmd.Flag("usage", 'u', &f.usage),
		slurmcmd.Ignored("verbose", 'v', getopt.None),
		slurmcmd.Flag("version", 'V', &f.version),
	}
}

// Main is sattach with its arguments. The result is its exit code: the highest of the tasks
// that ended while it looked.
func Main(args []string, stdio slurmcmd.Stdio) int {
	f := &follower{Command: slurmcmd.Begin("sattach", stdio)}
	err := f.run(args)
	if err == nil {
		return f.Exit()
	}
	f.Fail(err)
	if code, bad := strconv.Atoi(f.Getenv("SLURM_EXIT_ERROR")); bad == nil {
		f.Code = code
	}
	return f.Exit()
}

func (f *follower) run(args []string) error {
	rest, err := slurmcmd.Parse(f.options(), args)
	switch {
	case err != nil:
		return err
	case f.Told(f.help, helpText, false), f.Told(f.usage, usageText, f.version):
		return nil
	case len(rest) != 1:
		f.Errorf("name one step, as JOB.STEP")
		f.Out.WriteString(usageText)
		f.Code = 1
		return nil
	}
	name, number, ok := strings.Cut(rest[0], ".")
	n, bad := strconv.Atoi(number)
	if !ok || bad != nil || n < 0 || name == "" {
		return fault.New(fault.Invalid, "%q is not a step", rest[0]).Advise("write JOB.STEP, as in 15.0: steps are numbered from 0 as they start")
	}
	alloc, err := f.findAllocation(name)
	if err != nil {
		return err
	}
	a := &stepsrun.Attachment{Alloc: alloc, Step: n, Label: f.label}
	for _, filter := range []struct {
		option, value string
		to            *int
	}{{"input-filter", f.input, &a.Input}, {"output-filter", f.output, &a.Output}, {"error-filter", f.err, &a.Error}} {
		if *filter.to = stepsrun.AllTasks; filter.value == "" {
			continue
		}
		if *filter.to, err = strconv.Atoi(filter.value); err != nil || *filter.to < 0 {
			return slurmcmd.Textf("Invalid numeric value %q for --%s.", filter.value, filter.option)
		}
	}
	a.Stdio = step.Stdio{Out: f.Raw, Err: f.Err}
	a.Stdio.In, _ = f.In.(*os.File)
	if f.layout {
		err = a.Layout(f.Raw)
	} else {
		f.Code, err = a.Run()
	}
	if err != nil {
		return slurmcmd.Textf("Could not get job step info: %w", err)
	}
	return nil
}

// findAllocation finds the job's allocation: our own, or that of another job of this machine.
func (f *follower) findAllocation(name string) (*step.Alloc, error) {
	if step.IsOwn(name, os.Getenv) {
		return step.LoadOwn(name)
	}
	a, err := srun.Allocation(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Unsupported, "job %s runs on another machine", name).
			Advise("run sattach there: cox exec %s -- sattach %s.STEP; on a Slurm pool, use Slurm's own sattach with Slurm's number of the job", name, name)
	}
	return a, err
}
