package nodes

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func defragCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "defrag",
		Short: "Show which running jobs could move so that a waiting one starts",
		Long: `If enough is free for the first job of the queue, but in pieces, running jobs that
save checkpoints can move out of its way (preemption.defrag in the site's rules: off,
ask or automatic). This shows the proposed moves, their targets and their costs, and
the jobs that are moving. docs/explanation/defrag.md says more.`,
		Example: "  cox defrag\n  cox defrag approve 17-3fa2c1",
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			d, err := c.Defrag(cmd.Context())
			switch {
			case err != nil:
				return err
			case f.IsData():
				return a.WriteData(f, d)
			}
			fmt.Fprint(a.Out, printer.Defrag(a.Page(a.Out), d))
			return nil
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	cmd.AddCommand(&cobra.Command{
		Use: "approve ID", Short: "Have jobs moved as proposed", Args: cobra.ExactArgs(1),
		Long: `Carries out the proposal that cox defrag shows: all of it, or nothing if it is
outdated. For administrators.`,
		Example: "  cox defrag approve 17-3fa2c1",
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			d, err := c.ApproveDefrag(cmd.Context(), args[0])
			switch {
			case fault.KindOf(err) == fault.Unavailable: // whether it was heard nobody knows
				return err
			case err != nil:
				return cli.NotDone(err, "nothing was moved")
			}
			fmt.Fprint(a.Out, printer.Defrag(a.Page(a.Out), d))
			return nil
		}),
	})
	return cmd
}
