package jobs

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// kinds are the words that cox get takes, and the command that lists what they name. Plurals and
// letters before a dot are left out.
var kinds = map[string][]string{
	"job": {"queue"}, "pod": {"queue"}, "queue": {"queue"}, "node": {"nodes"}, "partition": {"partitions"}, "pool": {"pool", "list"},
	"reservation": {"reserve", "list"}, "licence": {"licenses"}, "license": {"licenses"}, "token": {"token", "list"}, "history": {"history"},
}

func getCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "get [jobs|nodes|partitions|pools|reservations|licenses|history] [ARG…]",
		Short: "List jobs, nodes or pools: another name of their commands",
		Long: `Does the same as the command with that name and its flags: cox get nodes is
cox nodes. Alone, or with the name of a job, it is cox queue.`,
		Example: `  cox get
  cox get jobs --me -o wide
  cox get nodes -o name`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			to, rest := []string{"queue"}, args
			if len(args) > 0 {
				kind := strings.ToLower(args[0])
				if k, ok := kinds[kind]; ok {
					to, rest = k, args[1:]
				} else if k, ok := kinds[strings.TrimSuffix(kind, "s")]; ok {
					to, rest = k, args[1:]
				}
				if kind == "-h" || kind == "--help" {
					return cmd.Help()
				}
			}
			found, _, err := cmd.Root().Find(to)
			if err != nil {
				return fault.New(fault.Internal, "cox get: %w", err)
			}
			if a.Server != "" {
				rest = append([]string{"--server", a.Server}, rest...)
			}
			if err := found.ParseFlags(rest); err != nil {
				return found.FlagErrorFunc()(found, err)
			}
			words := found.Flags().Args()
			if err := found.ValidateArgs(words); err != nil {
				return err
			}
			if err := cmd.Root().PersistentPreRunE(found, words); err != nil {
				return err
			}
			found.SetContext(cmd.Context())
			return found.RunE(found, words)
		},
	}
}
