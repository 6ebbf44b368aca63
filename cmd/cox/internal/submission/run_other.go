//go:build !linux

package submission

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

func runCommand(a *cli.App) *cobra.Command {
	return cli.NeedsLinux("run FILE", "Run a script or a command on virtual nodes of this machine (Linux)", "hand the work to a server on Linux: cox submit FILE")
}
