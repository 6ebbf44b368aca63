//go:build !linux

package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// NeedsLinux is a command that this system does not have.
func NeedsLinux(use, short, remedy string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fault.New(fault.Unsupported, "cox %s needs Linux; this is %s", cmd.Name(), runtime.GOOS).Advise("%s", remedy)
		},
	}
}
