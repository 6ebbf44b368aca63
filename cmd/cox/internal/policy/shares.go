package policy

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

func sharesCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	var accounts, users []string
	cmd := &cobra.Command{
		Use:   "shares",
		Short: "Show what accounts and users have used, and their fair share",
		Long: `Shows the tree of accounts with their shares, their usage (which decays), and the
resulting fair-share factor: whoever used less than the share goes first.`,
		Example: "  cox shares\n  cox shares -A nlp -u anna\n  cox shares -o json",
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			s, err := c.Shares(cmd.Context())
			if err != nil {
				return err
			}
			s.Shares = printer.SomeShares(s.Shares, accounts, users)
			switch {
			case f.IsData():
				return a.WriteData(f, s)
			case f == cli.AsName:
				var names []string
				for _, share := range s.Shares {
					names = append(names, strings.TrimSuffix(share.Account+"/"+share.User, "/"))
				}
				return a.WriteNames(names)
			case len(s.Shares) == 0:
				fmt.Fprintln(a.Err, "nobody has a share: the site's rules name no such account (cox policy show)")
				return nil
			}
			return printer.Shares(s.Shares).Write(a.Out, a.Page(a.Out))
		}),
	}
	cmd.Flags().StringSliceVarP(&accounts, "account", "A", nil, "only these accounts, with those below them")
	cmd.Flags().StringSliceVarP(&users, "user", "u", nil, "only these users")
	a.ListFlags(cmd, &f, false)
	return cmd
}
