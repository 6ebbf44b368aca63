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
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// Exit codes of srun itself, as Slurm's has them.
const (
	exitError = 1
	exitUsage = 255
)

// errNoCommand is a command line without a program.
var errNoCommand = errors.New("No command given to execute.")

// Main is srun inside of a job, with its arguments (without the command's name). The result is
// its exit code: the highest of the step's tasks, 128 + signal for a task that a
// signal ended.
func Main(args []string, stdio step.Stdio) int {
	parsed, err := parseComponents(args)
	if err != nil {
		return reportError(stdio.Err, err)
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
		fmt.Fprint(stdio.Out, mpiTypes())
		return 0
	}
	a, err := step.LoadOwn(first.job)
	if err != nil {
		return reportError(stdio.Err, err)
	}
	code, _ := runParsed(&Invocation{Alloc: a, Environ: os.Environ(), Stdio: stdio}, parsed)
	return code
}

// Invocation is srun with an allocation that is known.
type Invocation struct {
	Alloc   *step.Alloc
	Args    []string // without the command's name
	Environ []string // NAME=VALUE, with the variables of the allocation
	Stdio   step.Stdio
}

// Run runs the step. Errors are printed. The results are srun's exit code and how the task of
// the highest exit code ended.
func (v *Invocation) Run() (int, job.ExitCode) {
	parsed, err := parseComponents(v.Args)
	if err != nil {
		code := reportError(v.Stdio.Err, err)
		return code, job.ExitCode{Status: code}
	}
	return runParsed(v, parsed)
}

// CheckOptions reports whether the options of a step can be read; if not, the error is printed
// and the code is srun's exit code.
func CheckOptions(args []string, w io.Writer) (code int, ok bool) {
	o := newOptions()
	if err := parseSrun(o, args); err != nil {
		return reportError(w, err), false
	}
	return 0, true
}

func runParsed(v *Invocation, parsed []*options) (int, job.ExitCode) {
	p, err := completePlan(v.Alloc, parsed, v.Environ)
	if err == nil {
		if !p.first.show.quiet {
			p.printWarnings(v.Stdio.Err, parsed)
		}
		signal.Ignore(syscall.SIGPIPE) // who stops reading our output does not end the step
		var code int
		var worst job.ExitCode
		if code, worst, err = newClient(p, v.Stdio).run(); err == nil {
			return code, worst
		}
	}
	code := reportError(v.Stdio.Err, err)
	return code, job.ExitCode{Status: code}
}

// parseComponents reads the options of every component.
func parseComponents(args []string) ([]*options, error) {
	var parsed []*options
	for _, words := range splitComponents(args) {
		o := newOptions()
		if err := parseSrun(o, words); err != nil {
			return nil, err
		}
		parsed = append(parsed, o)
	}
	return parsed, nil
}

// printWarnings says what was changed or has no effect.
func (p *plan) printWarnings(w io.Writer, parsed []*options) {
	say := func(format string, v ...any) { fmt.Fprintf(w, "srun: "+format+"\n", v...) }
	for _, w := range p.warnings {
		say("%s", w)
	}
	for _, o := range parsed {
		for _, u := range o.unused {
			say("--%s has no effect here: %s", u.Name(), u.StepWhy)
		}
	}
}

// reportError prints an error as srun does, and gives its exit code.
func reportError(w io.Writer, err error) int {
	say := func(format string, v ...any) { fmt.Fprintf(w, "srun: "+format+"\n", v...) }
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
