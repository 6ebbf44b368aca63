//go:build !linux

package server

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

func upCommand(a *cli.App) *cobra.Command {
	return cli.NeedsLinux("up", "Serve this machine (Linux)", "start it on a Linux machine, and set COX_SERVER here")
}

func backupCommand(a *cli.App) *cobra.Command {
	return cli.NeedsLinux("backup DIR", "Copy the server's state while it works (Linux)", "run it on the server's machine")
}

func restoreCommand(a *cli.App) *cobra.Command {
	return cli.NeedsLinux("restore DIR", "Make a state directory from a backup (Linux)", "run it on the server's machine")
}
