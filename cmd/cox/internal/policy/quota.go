package policy

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

func quotaCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	var accounts []string
	cmd := &cobra.Command{
		Use:   "quota",
		Short: "Show what accounts may hold, hold, borrow and lend",
		Long: `Shows the trees of accounts with quotas. For each resource of each flavour it shows
the guaranteed amount (nominal), what running jobs hold, how much of that is borrowed
and from whom it may be, what others may hold of the account's own, and what waiting
jobs ask for.
SHARE is the dominant share by which fair sharing goes, in thousandths.`,
		Example: "  cox quota\n  cox quota -A nlp\n  cox quota -o json",
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			q, err := c.Quotas(cmd.Context())
			if err != nil {
				return err
			}
			q.Accounts = printer.SomeQuotas(q.Accounts, accounts)
			switch {
			case f.IsData():
				return a.WriteData(f, q)
			case f == cli.AsName:
				var names []string
				for _, account := range q.Accounts {
					names = append(names, account.Account)
				}
				return a.WriteNames(names)
			case len(q.Accounts) == 0 && len(accounts) > 0:
				fmt.Fprintln(a.Err, "none of these accounts has a quota (cox quota shows those that have)")
				return nil
			case len(q.Accounts) == 0:
				fmt.Fprintln(a.Err, "no account has a quota: the site's rules name none (cox policy show)")
				return nil
			}
			return printer.Quotas(q.Accounts).Write(a.Out, a.Page(a.Out))
		}),
	}
	cmd.Flags().StringSliceVarP(&accounts, "account", "A", nil, "only these accounts, with those above and below them")
	cli.HintArgument(cmd, "to see one account: cox quota -A %s")
	a.ListFlags(cmd, &f, false)
	return cmd
}
