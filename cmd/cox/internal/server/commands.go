package server

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// Commands returns the commands of this package, each in its group of cox --help.
func Commands(a *cli.App) []*cobra.Command {
	return cli.InGroup(cli.GroupServer, cli.Local(upCommand(a)), downCommand(a), cli.Local(configCommand()), backupCommand(a), cli.Local(restoreCommand(a)), snapshotCommand(a), cli.Local(replayCommand()), infoCommand(a), pingCommand(a), tokenCommand(a), webCommand(a), auditCommand(a), contextCommand(a))
}
