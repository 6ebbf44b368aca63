package main

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

func (a *app) partitionsCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use:     "partitions",
		Short:   "List partitions, their nodes and limits",
		Example: "  cox partitions\n  cox partitions -o name",
		Args:    cobra.NoArgs,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			parts, err := c.Partitions(cmd.Context())
			if err != nil {
				return err
			}
			switch {
			case f.machine():
				return f.write(a.out, parts)
			case f == asName:
				var names []string
				for i := range parts.Partitions {
					names = append(names, parts.Partitions[i].Name)
				}
				return writeNames(a.out, names)
			}
			return printer.Partitions(a.page(a.out), parts.Partitions).Write(a.out, a.page(a.out))
		}),
	}
	formatFlag(cmd, &f, asJSON, asYAML, asName)
	return cmd
}
