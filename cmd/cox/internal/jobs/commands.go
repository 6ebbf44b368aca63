package jobs

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// Commands returns the commands of this package, each in its group of cox --help.
func Commands(a *cli.App) []*cobra.Command {
	return slices.Concat(
		cli.InGroup(cli.GroupWork, waitCommand(a), cli.TakesProgram(execCommand(a)), logsCommand(a), pullCommand(a)),
		cli.InGroup(cli.GroupAsk, queueCommand(a), getCommand(a), showCommand(a), whyCommand(a), priorityCommand(a), watchCommand(a), historyCommand(a), reportCommand(a), topCommand(a)),
		cli.InGroup(cli.GroupChange, cancelCommand(a), holdCommand(a), releaseCommand(a), requeueCommand(a), suspendCommand(a), resumeCommand(a), checkpointDoneCommand(a), signalCommand(a), updateCommand(a)),
	)
}
