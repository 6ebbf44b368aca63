//go:build !linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// byName refuses Slurm's names, which need Linux.
func byName(argv []string) (code int, ok bool) {
	name := filepath.Base(argv[0])
	if name != "srun" && !slices.Contains(slurmNames, name) {
		return 0, false
	}
	fmt.Fprintf(os.Stderr, "%s: error: Slurm's names need Linux; here use cox itself: cox submit, cox queue, cox cancel\n", name)
	return fault.Unsupported.ExitCode(), true
}

func (a *app) runCommand() *cobra.Command {
	return needsLinux("run FILE", "Run a script or a command on virtual nodes of this machine (Linux)", "hand the work to a server on Linux: cox submit FILE")
}

func (a *app) upCommand() *cobra.Command {
	return needsLinux("up", "Serve this machine (Linux)", "start it on a Linux machine, and set COX_SERVER here")
}

func (a *app) backupCommand() *cobra.Command {
	return needsLinux("backup DIR", "Copy the server's state while it works (Linux)", "run it on the server's machine")
}

func (a *app) restoreCommand() *cobra.Command {
	return needsLinux("restore DIR", "Make a state directory of a backup (Linux)", "run it on the server's machine")
}

func needsLinux(use, short, remedy string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fault.New(fault.Unsupported, "cox %s needs Linux; this is %s", cmd.Name(), runtime.GOOS).Advise("%s", remedy)
		},
	}
}
