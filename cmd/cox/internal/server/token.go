package server

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func tokenCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke access tokens",
		Long: `On the socket, the kernel says who asks. Over TCP, a token does: COX_TOKEN, or the
file ~/.config/coxswain/token. The server keeps only a hash of it.
A token that you make with a token is revoked with that one.`,
		Example: "  cox token create --comment laptop\n  cox token list",
	}
	cmd.AddCommand(tokenCreateCommand(a), tokenListCommand(a), tokenRevokeCommand(a))
	return cli.Group(cmd)
}

func tokenCreateCommand(a *cli.App) *cobra.Command {
	var n api.NewToken
	var ttl time.Duration
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token; its secret is printed once",
		Example: `  cox token create --comment laptop > ~/.config/coxswain/token
  cox token create --user ci --ttl 24h
  cox token create --role gateway
  COX_SERVER=http://127.0.0.1:6820 COX_TOKEN=$(cox token create) cox queue`,
		Args: cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			if ttl < 0 {
				return fault.New(fault.Invalid, "--ttl %s: it cannot be negative", ttl)
			}
			n.TTL = ttl.Seconds()
			made, err := c.NewToken(cmd.Context(), &n)
			if err != nil {
				return err
			}
			if f.IsData() {
				return a.WriteData(f, made)
			}
			p := a.Page(a.Err)
			fmt.Fprintf(a.Err, "token %s for %s", made.Token.ID, made.Token.Name)
			if made.Token.Admin {
				fmt.Fprint(a.Err, ", administrator")
			}
			if made.Token.Role != "" {
				fmt.Fprintf(a.Err, ", role %s", printer.Clean(made.Token.Role))
			}
			if !made.Token.Expires.IsZero() {
				fmt.Fprintf(a.Err, ", until %s", p.Time(made.Token.Expires))
			}
			if made.Token.Parent != "" {
				fmt.Fprintf(a.Err, ", revoked with token %s, with which it was made", made.Token.Parent)
			}
			fmt.Fprint(a.Err, "; the secret, which is shown only now:\n")
			_, err = fmt.Fprintln(a.Out, made.Secret)
			return err
		}),
	}
	fl := cmd.Flags()
	fl.StringVarP(&n.User, "user", "u", "", "for another user (administrators)")
	fl.StringSliceVar(&n.Accounts, "account", nil, "accounts that the token's holder may use")
	fl.BoolVar(&n.Admin, "admin", false, "with an administrator's rights")
	fl.StringVar(&n.Role, "role", "", "gateway: for cox gateway and nothing else")
	fl.StringVar(&n.Comment, "comment", "", "what it is for")
	cli.AllowEmpty(cmd, "comment")
	cli.DurationFlag(fl, &ttl, "ttl", 0, "how long it is valid, such as 24h (default: 90 days)")
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	a.CompleteFlag(cmd, "user", a.UserNames)
	return cmd
}

func tokenListCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List tokens without their secrets",
		Example: "  cox token list",
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			t, err := c.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			switch {
			case f.IsData():
				return a.WriteData(f, t)
			case f == cli.AsName:
				var ids []string
				for i := range t.Tokens {
					ids = append(ids, t.Tokens[i].ID)
				}
				return a.WriteNames(ids)
			}
			if err := printer.Tokens(a.Page(a.Out), t.Tokens).Write(a.Out, a.Page(a.Out)); err != nil {
				return err
			}
			if len(t.Tokens) == 0 {
				fmt.Fprintln(a.Err, "no tokens          cox token create makes one")
			}
			return nil
		}),
	}
	a.ListFlags(cmd, &f, false)
	return cmd
}

func tokenRevokeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "revoke ID…",
		Short:             "Make tokens useless, at once and for good",
		Example:           "  cox token revoke k3x9",
		ValidArgsFunction: completeTokens(a),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.New(fault.Invalid, "cox token revoke needs the ID of a token").Advise("cox token list shows the IDs")
			}
			return nil
		},
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return cli.ForEach(args, func(id string) error {
				err := c.RevokeToken(cmd.Context(), id)
				if err == nil {
					_, err = fmt.Fprintf(a.Out, "revoked %s\n", printer.Clean(id))
				}
				return err
			})
		}),
	}
}

// completeTokens offers the access tokens.
func completeTokens(a *cli.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.CompleteWords(cmd, tokenNames)
	}
}

func tokenNames(ctx context.Context, c *client.Client) ([]string, error) {
	t, err := c.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	var words []string
	for i := range t.Tokens {
		words = append(words, t.Tokens[i].ID+"	"+printer.Clean(t.Tokens[i].Name+" "+t.Tokens[i].Comment))
	}
	return words, nil
}
