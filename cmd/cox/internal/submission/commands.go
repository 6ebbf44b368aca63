package submission

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// Commands returns the commands of this package, each in its group of cox --help.
func Commands(a *cli.App) []*cobra.Command {
	a.SubmitFile = submitFile(a)
	return slices.Concat(
		cli.InGroup(cli.GroupWork, cli.TakesProgram(runCommand(a)), cli.TakesProgram(submitCommand(a)), jupyterCommand(a)),
		cli.InGroup(cli.GroupAsk, whatIfCommand(a)),
		cli.InGroup(cli.GroupFiles, adviseCommand(a), cli.Local(cli.TakesProgram(convertCommand(a)))),
	)
}
