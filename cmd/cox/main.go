// Command cox is Coxswain: one control plane for GPU work. This package is wiring
// only, one file per subcommand; what the commands do stands in packages of its own.
//
// The binary answers to several names. As srun or scontrol it is the command that
// a job's script calls; with a hidden first argument it is the supervisor of a node
// or a held task. These paths touch nothing that costs start-up time.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/engine/local"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/step"
)

func main() { os.Exit(dispatch(os.Args)) }

// dispatch chooses by the name under which the binary was called.
func dispatch(argv []string) int {
	stdio := step.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	name := filepath.Base(argv[0])
	switch name {
	case "srun":
		return step.SrunMain(argv[1:], stdio)
	case "scontrol":
		return step.ScontrolMain(argv[1:], stdio)
	case "sbatch", "squeue", "scancel", "sinfo", "sacct":
		fmt.Fprintf(os.Stderr, "%s: not built yet: it needs the server, which this version of cox does not have\n", name)
		return fault.Unsupported.ExitCode()
	}
	if len(argv) > 1 {
		switch argv[1] {
		case "supervise":
			return local.SuperviseMain(argv[2:])
		case "task-init":
			return step.TaskInitMain(argv[2:])
		}
	}
	code := 0
	root := rootCommand(&code)
	root.SetArgs(argv[1:])
	if err := root.Execute(); err != nil {
		return complain(err)
	}
	return code
}

func rootCommand(code *int) *cobra.Command {
	root := &cobra.Command{
		Use:   "cox",
		Short: "One control plane for GPU work: the whole crew starts, or nobody",
		Long: `Coxswain runs the file that you have (an sbatch script today) on this machine:
whole or not at all, its ranks started together, with the reasons said.

Exit codes: 0 success; a job's own code from cox run; 2 a request that is wrong;
75 no answer; 77 no permission; 70 a defect. All of them: docs/exit-codes.md.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fault.New(fault.Invalid, "%w", err).Advise("cox --help lists what there is")
	})
	root.AddCommand(runCommand(code), simulateCommand(), versionCommand())
	return root
}

// complain prints an error as people want to read it and returns the exit code.
func complain(err error) int {
	kind := fault.KindOf(err)
	var located *spec.Error
	if errors.As(err, &located) {
		fmt.Fprintf(os.Stderr, "%v\n", located)
		fmt.Fprintf(os.Stderr, "not submitted (%s, exit %d)\n", fault.Invalid, fault.Invalid.ExitCode())
		return fault.Invalid.ExitCode()
	}
	if kind == fault.Internal && isUsage(err) {
		kind = fault.Invalid
	}
	fmt.Fprintf(os.Stderr, "cox: %v\n", err)
	remedy := fault.Remedy(err)
	if remedy == "" && kind == fault.Exhausted {
		remedy = "make room there, or set TMPDIR or --state-dir to a folder on another disk"
	}
	if remedy != "" {
		fmt.Fprintf(os.Stderr, "  %s\n", remedy)
	}
	return kind.ExitCode()
}
