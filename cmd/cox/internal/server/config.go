package server

import (
	"cmp"
	"fmt"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/spec/input"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Check or show the server's configuration",
		Long:    `The configuration is one YAML file; docs/reference/configuration.md has every field.`,
		Example: "  cox config check ./cox.yaml",
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration file and start nothing",
		Example: `  cox config check
  cox config check ./cox.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, file, err := config.Load(firstArg(args))
			if err != nil {
				err = explainOtherFile(firstArg(args), err)
				return cli.NotDone(err, "the configuration cannot be used")
			}
			if file == "" {
				fmt.Fprintf(cmd.OutOrStdout(), "no configuration file (%v): the defaults hold\n", config.Files())
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: ok\n", file)
			return nil
		},
	}, &cobra.Command{
		Use:     "show [FILE]",
		Short:   "Print what holds, defaults included",
		Example: "  cox config show",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, file, err := config.Load(firstArg(args))
			if err != nil {
				err = explainOtherFile(firstArg(args), err)
				return cli.NotDone(err, "the configuration cannot be used")
			}
			text, err := yaml.Marshal(c)
			if err != nil {
				return err
			}
			from := "# " + file + ", with the defaults for what it leaves out; a server that runs may have been started with another file\n"
			if file == "" {
				from = "# the defaults, because there is no configuration file; a server that runs may have been started with one\n"
			}
			_, err = cmd.OutOrStdout().Write(append([]byte(from), text...))
			return err
		},
	})
	return cli.Group(cmd)
}

func firstArg(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// explainOtherFile is the error about a file that is no configuration, or err.
func explainOtherFile(name string, err error) error {
	data, unread := os.ReadFile(name)
	if name == "" || unread != nil {
		return err
	}
	return cmp.Or(cli.CheckInput(name, data, input.Config, "the configuration of a server", "docs/reference/configuration.md has every field; cox config show prints one"), err)
}
