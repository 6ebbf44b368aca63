package nodes

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

func licensesCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:     "licenses",
		Aliases: []string{"licences"},
		Short:   "List the site's licences and who holds them",
		Example: "  cox licenses\n  cox licenses -o json",
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			list, err := c.Licenses(cmd.Context())
			if err != nil {
				return err
			}
			switch {
			case f.IsData():
				return a.WriteData(f, list)
			case f == cli.AsName:
				var names []string
				for i := range list.Licenses {
					names = append(names, list.Licenses[i].Name)
				}
				return a.WriteNames(names)
			}
			return printer.Licenses(list.Licenses).Write(a.Out, a.Page(a.Out))
		}),
	}
	a.ListFlags(cmd, &f, false)
	return cmd
}
