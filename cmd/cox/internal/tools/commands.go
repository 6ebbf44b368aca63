package tools

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// Commands returns the commands of this package, each in its group of cox --help.
func Commands(a *cli.App) []*cobra.Command {
	return cli.InGroup(cli.GroupFiles, cli.Local(simulateCommand(a)), cli.Local(installNamesCommand(a, slurmBinary)), cli.Local(completionCommand()), versionCommand(a))
}
