package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and the server's where one answers",
		Example: "  cox version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(a.out, "cox %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
			if s := a.serverVersion(cmd.Context()); s != "" && err == nil {
				_, err = fmt.Fprintf(a.out, "server %s (this cox speaks %d.%d)\n", s, api.Version, api.Minor)
			}
			return err
		},
	}
}

// version is the module's version, or the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "development " + s.Value[:min(12, len(s.Value))]
		}
	}
	return "development"
}
