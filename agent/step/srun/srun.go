package srun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// Exit codes of srun itself, as Slurm's has them.
const (
	exitError = 1
	exitUsage = 255
)

// errNoCommand is a command line without a program.
var errNoCommand = errors.New("No command given to execute.")

// Main is srun with its arguments (without the command's name). The result is
// its exit code: the highest of the step's tasks, 128 + signal for a task that a
// signal ended.
func Main(args []string, stdio step.Stdio) int {
	say := func(format string, v ...any) { fmt.Fprintf(stdio.Err, "srun: "+format+"\n", v...) }
	var parsed []*options
	for _, words := range splitComponents(args) {
		o := newOptions()
		if err := parseSrun(o, words); err != nil {
			return reportError(say, stdio.Err, err)
		}
		parsed = append(parsed, o)
	}
	first := parsed[0]
	switch {
	case first.show.help:
		fmt.Fprint(stdio.Out, srunHelp())
		return 0
	case first.show.version:
		fmt.Fprintln(stdio.Out, "srun of coxswain, as slurm 24.11")
		return 0
	case first.mpi == "list":
		fmt.Fprint(stdio.Out, "MPI plugin types are...\n\tnone\n\tpmi1\n")
		return 0
	}
	a, err := step.LoadOwn(first.job)
	if err != nil {
		return reportError(say, stdio.Err, err)
	}
	p, err := completePlan(a, parsed, os.Getenv)
	if err != nil {
		return reportError(say, stdio.Err, err)
	}
	if !first.show.quiet {
		p.printWarnings(say, parsed)
	}
	signal.Ignore(syscall.SIGPIPE) // who stops reading our output does not end the step
	code, err := newClient(p, stdio).run()
	if err != nil {
		return reportError(say, stdio.Err, err)
	}
	return code
}

// printWarnings says what was changed or has no effect.
func (p *plan) printWarnings(say func(string, ...any), parsed []*options) {
	for _, w := range p.warnings {
		say("%s", w)
	}
	for _, o := range parsed {
		for _, u := range o.unused {
			say("--%s has no effect here: %s", u.Name(), u.StepWhy)
		}
	}
	switch mpi := p.first.mpi; mpi {
	case "", "none", "pmi1", "openmpi":
	case "pmi2":
		say("--mpi=%s: programs are offered PMI-1, which PMI-2 programs of MPICH also speak", mpi)
	default:
		say("--mpi=%s is not built; programs are offered PMI-1 (MPICH, Intel MPI); Open MPI starts with mpirun inside the job", mpi)
	}
}

// reportError prints an error as srun does, and gives its exit code.
func reportError(say func(string, ...any), w io.Writer, err error) int {
	var mistake *getopt.Error
	var usage *usageError
	switch {
	case errors.As(err, &mistake):
		say("%v", err)
		var line *lineError
		if errors.As(err, &line) && line.near != "" {
			say("  did you mean --%s?", line.near)
		}
		fmt.Fprintln(w, `Try "srun --help" for more information`)
		return exitUsage
	case errors.As(err, &usage):
		say("error: %v", err)
		return exitUsage
	case errors.Is(err, errNoCommand):
		say("fatal: %v", err)
	default:
		say("error: %v", err)
	}
	return exitError
}

// srunHelp is the text of --help.
func srunHelp() string {
	out := "Usage: srun [OPTIONS...] program [arguments...] [ : [OPTIONS...] program ... ]\n" +
		"Runs a program as a step in the nodes of this job.\n"
	for _, opt := range srunopt.All() {
		if opt.Step != srunopt.Honoured {
			continue
		}
		short := "    "
		if opt.Short != 0 {
			short = fmt.Sprintf("-%c, ", opt.Short)
		}
		name := opt.Long
		switch opt.Arg {
		case getopt.Required:
			name += "=VALUE"
		case getopt.Optional:
			name += "[=VALUE]"
		}
		out += "  " + short + "--" + name + "\n"
	}
	return out
}

// openOutput opens an output file of srun itself.
func openOutput(what, name string, appends bool) (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !appends {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(filepath.Clean(name), flags, 0o666)
	if err != nil {
		return nil, fmt.Errorf("Could not open %s file: %w", what, err)
	}
	return f, nil
}
