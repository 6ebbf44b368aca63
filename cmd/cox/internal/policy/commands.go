package policy

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// Commands returns the commands of this package, each in its group of cox --help.
func Commands(a *cli.App) []*cobra.Command {
	return slices.Concat(
		cli.InGroup(cli.GroupAsk, sharesCommand(a), quotaCommand(a)),
		cli.InGroup(cli.GroupServer, applyCommand(a), policyCommand(a), cli.Local(importCommand(a)), reserveCommand(a)),
	)
}
