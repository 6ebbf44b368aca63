// Package interactive has the commands for work inside a running job: a shell (cox shell), ports
// (cox forward; cox jupyter uses it too) and SSH (cox ssh-config, cox ssh-proxy).
//
// All of them are commands beside the tasks of the job (POST /v1/jobs/{job}/exec): the same rights,
// the same environment, control group and network as the job, on every engine that has the ability.
package interactive

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// Commands returns the commands of this package, each in its group of cox --help.
func Commands(a *cli.App) []*cobra.Command {
	return slices.Concat(
		cli.InGroup(cli.GroupWork, shellCommand(a), forwardCommand(a)),
		cli.InGroup(cli.GroupFiles, sshConfigCommand(a)),
		[]*cobra.Command{sshProxyCommand(a)},
	)
}
