package nodes

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

func partitionsCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:     "partitions",
		Short:   "List partitions, their nodes and limits",
		Example: "  cox partitions\n  cox partitions -o name",
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			parts, err := c.Partitions(cmd.Context())
			if err != nil {
				return err
			}
			switch {
			case f.IsData():
				return a.WriteData(f, parts)
			case f == cli.AsName:
				var names []string
				for i := range parts.Partitions {
					names = append(names, parts.Partitions[i].Name)
				}
				return a.WriteNames(names)
			}
			return printer.Partitions(a.Page(a.Out), parts.Partitions).Write(a.Out, a.Page(a.Out))
		}),
	}
	a.ListFlags(cmd, &f, false)
	return cmd
}
