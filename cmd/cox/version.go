package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "cox %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
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

// isUsage recognises cobra's own complaints about arguments, which have no type.
func isUsage(err error) bool {
	for _, text := range []string{"unknown command", "accepts ", "requires at least", "unknown flag", "required flag"} {
		if strings.HasPrefix(err.Error(), text) {
			return true
		}
	}
	return false
}
