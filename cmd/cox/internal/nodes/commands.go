package nodes

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// Commands returns the commands of this package, each in its group of cox --help.
func Commands(a *cli.App) []*cobra.Command {
	return cli.InGroup(cli.GroupNodes, nodesCommand(a), nodeCommand(a), machinesCommand(a), doctorCommand(a), partitionsCommand(a), licensesCommand(a), defragCommand(a))
}
