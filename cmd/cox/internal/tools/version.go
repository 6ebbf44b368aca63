package tools

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

func versionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and the server's where one answers",
		Example: "  cox version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(a.Out, "cox %s %s/%s %s\n", cli.Version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
			if s := a.ServerVersion(cmd.Context()); s != "" && err == nil {
				_, err = fmt.Fprintf(a.Out, "server %s (this cox speaks %d.%d)\n", s, api.Version, api.Minor)
			}
			return err
		},
	}
}
