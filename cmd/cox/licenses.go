package main

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

func (a *app) licensesCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use:     "licenses",
		Aliases: []string{"licences"},
		Short:   "List the site's licences and who holds them",
		Example: "  cox licenses\n  cox licenses -o json",
		Args:    cobra.NoArgs,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			list, err := c.Licenses(cmd.Context())
			if err != nil {
				return err
			}
			switch {
			case f.machine():
				return f.write(a.out, list)
			case f == asName:
				var names []string
				for i := range list.Licenses {
					names = append(names, list.Licenses[i].Name)
				}
				return writeNames(a.out, names)
			}
			return printer.Licenses(list.Licenses).Write(a.out, a.page(a.out))
		}),
	}
	formatFlag(cmd, &f, asJSON, asYAML, asName)
	return cmd
}
