package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/fabric"
	"github.com/coxswain-sched/coxswain/agent/portdial"
	"github.com/coxswain-sched/coxswain/agent/sshserver"
	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/holder"
	"github.com/coxswain-sched/coxswain/agent/step/scontrol"
	"github.com/coxswain-sched/coxswain/agent/step/srun"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// runByName runs the command that the binary's name or its hidden first argument asks
// for. It returns false for an ordinary call of cox.
func runByName(argv []string) (code int, ok bool) {
	stdio := step.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	name := filepath.Base(argv[0])
	switch {
	case name == "srun" && (step.IsOwn(srunopt.JobOf(argv[1:], os.Environ()), os.Getenv) || cli.SlurmBinaryPath() == ""):
		return srun.Main(argv[1:], stdio), true
	case name == sshserver.Name:
		return sshserver.Main(), true
	case slices.Contains(slurmfmt.Commands, name):
		return execSlurmBinary(name, argv, stdio), true
	case len(argv) < 2:
		return 0, false
	case argv[1] == "supervise":
		return local.SuperviseMain(argv[2:]), true
	case argv[1] == "task-init":
		return barrier.Main(argv[2:]), true
	case argv[1] == container.InitCommand:
		return container.Main(argv[2:]), true
	case argv[1] == holder.Command:
		return holder.Main(argv[2:]), true
	case argv[1] == fabric.Command:
		return fabric.Main(argv[2:]), true
	case argv[1] == portdial.Command:
		return portdial.Main(argv[2:]), true
	}
	return 0, false
}

// execSlurmBinary becomes cox-slurm, the small binary for Slurm's names beside cox.
func execSlurmBinary(name string, argv []string, stdio step.Stdio) int {
	binary := cli.SlurmBinaryPath()
	if binary == "" && name == "scontrol" {
		return scontrol.Main(argv[1:], stdio) // inside of a job it needs nothing else
	}
	if binary == "" {
		fmt.Fprintf(os.Stderr, "%s: error: cox-slurm, which answers to this name, is not beside cox\n  build it: go build ./cmd/cox-slurm, and put it beside cox\n", name)
		return fault.Unsupported.ExitCode()
	}
	err := syscall.Exec(binary, argv, os.Environ())
	fmt.Fprintf(os.Stderr, "%s: error: start %s: %v\n", name, binary, err)
	return fault.KindOf(err).ExitCode()
}
