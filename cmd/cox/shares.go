package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

func (a *app) sharesCommand() *cobra.Command {
	var f format
	var accounts, users []string
	cmd := &cobra.Command{
		Use:   "shares",
		Short: "Show what accounts and users have used, and how they stand",
		Long: `Shows the tree of accounts with their shares, what was used (it decays), and the
fair-share factor that comes of it: who was served less than his share goes first.`,
		Example: "  cox shares\n  cox shares -A nlp -u anna\n  cox shares -o json",
		Args:    cobra.NoArgs,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			s, err := c.Shares(cmd.Context())
			if err != nil {
				return err
			}
			s.Shares = printer.SomeShares(s.Shares, accounts, users)
			switch {
			case f.machine():
				return f.write(a.out, s)
			case len(s.Shares) == 0:
				fmt.Fprintln(a.err, "nobody has a share: the site's rules name no such account (cox policy show)")
				return nil
			}
			return printer.Shares(s.Shares).Write(a.out, a.page(a.out))
		}),
	}
	cmd.Flags().StringSliceVarP(&accounts, "account", "A", nil, "only these accounts, and those below them")
	cmd.Flags().StringSliceVarP(&users, "user", "u", nil, "only these users")
	formatFlag(cmd, &f, asJSON, asYAML)
	return cmd
}

func (a *app) priorityCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use:   "priority [JOB…]",
		Short: "Show how the priorities of waiting jobs come about",
		Long: `Shows every factor of a job's priority, its weight and the points that it makes: they
add up to the very number that orders the queue. Without a job, a line for each that
waits.`,
		Example:           "  cox priority 7\n  cox priority -o json",
		ValidArgsFunction: a.completeJobs,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if len(args) == 0 {
				all, err := c.Priorities(cmd.Context())
				switch {
				case err != nil:
					return err
				case f.machine():
					return f.write(a.out, all)
				case len(all.Jobs) == 0:
					fmt.Fprintln(a.err, "no job waits")
					return nil
				}
				return printer.Priorities(all.Jobs).Write(a.out, a.page(a.out))
			}
			var all []*api.Priority
			err := each(args, func(name string) error {
				p, err := c.Priority(cmd.Context(), name)
				switch {
				case err != nil:
					return err
				case f.machine():
					all = append(all, p)
					return nil
				}
				_, err = fmt.Fprint(a.out, printer.Priority(a.page(a.out), p))
				return err
			})
			return errors.Join(writeSome(a.out, f, all), err)
		}),
	}
	formatFlag(cmd, &f, asJSON, asYAML)
	return cmd
}
