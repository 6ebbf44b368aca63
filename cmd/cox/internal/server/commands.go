package server

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// Commands returns the commands of this package, each in its group of cox --help.
func Commands(a *cli.App) []*cobra.Command {
	return cli.InGroup(cli.GroupServer, upCommand(a), downCommand(), configCommand(), backupCommand(a), restoreCommand(a), snapshotCommand(a), replayCommand(), infoCommand(a), pingCommand(a), tokenCommand(a), auditCommand(a))
}
