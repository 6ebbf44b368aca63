package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/account"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/hostlist"
	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/show"
	"github.com/coxswain-sched/coxswain/slurmfmt"
)

func (a *app) reserveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reserve",
		Short: "Keep nodes for some jobs, or for none, for a time",
		Long: `Advance reservations: jobs outside of one do not run on its nodes while it holds, jobs
of its accounts and users do with --reservation=NAME. They stand in the site's rules
(reservations in queues.yaml); these commands change that part of the document and
leave the rest as it is. docs/reservations.md tells more. For administrators, but list.`,
		RunE: func(*cobra.Command, []string) error {
			return fault.New(fault.Invalid, "list, create or delete?").Advise("cox reserve list")
		},
	}
	cmd.AddCommand(a.reserveListCommand(), a.reserveCreateCommand(), a.reserveDeleteCommand())
	return cmd
}

func (a *app) reserveListCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use: "list", Short: "List the reservations", Args: cobra.NoArgs,
		Example: "  cox reserve list",
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			_, rules, err := rulesInForce(cmd.Context(), c)
			switch {
			case err != nil:
				return err
			case f.machine():
				return f.write(a.out, rules.Reservations)
			case len(rules.Reservations) == 0:
				fmt.Fprintln(a.err, "there are no reservations")
				return nil
			}
			return show.Reservations(rules.Reservations, time.Now()).Write(a.out, a.page(a.out))
		}),
	}
	formatFlag(cmd, &f, asJSON, asYAML)
	return cmd
}

func (a *app) reserveCreateCommand() *cobra.Command {
	var r account.Reservation
	var start, nodes string
	var duration, ahead time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a reservation",
		Example: `  cox reserve create power --start 2026-12-01T08:00 --duration 4h            # maintenance of all nodes
  cox reserve create course --start 2026-12-01T08:00 --duration 2h --every weekday --nodes gpu[1-4] --accounts teaching
  cox reserve create quick --ahead 1h --duration 24h --nodes gpu5             # only jobs of at most an hour run there`,
		Args: cobra.ExactArgs(1),
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, args []string) error {
			r.Name, r.Duration, r.Ahead = args[0], account.Duration(duration), account.Duration(ahead)
			if err := complete(&r, start, nodes); err != nil {
				return err
			}
			return a.reserve(cmd.Context(), c, "reservation "+r.Name, func(list []account.Reservation) ([]account.Reservation, error) {
				return append(list, r), nil
			})
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&start, "start", "", "when it begins, as sbatch --begin writes it")
	fl.DurationVar(&duration, "duration", 0, "how long it lasts, as 90m")
	fl.DurationVar(&ahead, "ahead", 0, "it always begins so long from now (floating)")
	fl.StringVar(&r.Every, "every", "", "hour, day, weekday, weekend or week")
	fl.StringVar(&nodes, "nodes", "", "a host list; all nodes if it is left out")
	fl.StringSliceVar(&r.Accounts, "accounts", nil, "whose jobs may use it")
	fl.StringSliceVar(&r.Users, "users", nil, "who may use it")
	fl.BoolVar(&r.Flex, "flex", false, "its jobs may begin before it and end after it")
	fl.BoolVar(&r.Overlap, "overlap", false, "it may stand on nodes of another one")
	fl.StringVarP(&r.Note, "note", "m", "", "why, for people")
	return cmd
}

// complete fills what is written otherwise on a command line than in the document.
func complete(r *account.Reservation, start, nodes string) error {
	if start != "" {
		at, err := slurmfmt.ParseWhen(start, time.Now())
		if err != nil {
			return fault.New(fault.Invalid, "--start=%s: %w", start, err).Advise("write 2026-12-01T08:00 or now+2hours")
		}
		r.Start = at.UTC().Format(time.RFC3339)
	}
	if nodes != "" {
		list, err := hostlist.Expand(nodes)
		if err != nil {
			return fault.New(fault.Invalid, "--nodes=%s: %w", nodes, err).Advise("write a host list, as gpu[1-4]")
		}
		r.Nodes = list
	}
	return nil
}

func (a *app) reserveDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "End a reservation; what runs in it goes on", Args: cobra.ExactArgs(1),
		Example: "  cox reserve delete power",
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return a.reserve(cmd.Context(), c, "no reservation "+args[0], func(list []account.Reservation) ([]account.Reservation, error) {
				i := slices.IndexFunc(list, func(r account.Reservation) bool { return r.Name == args[0] })
				if i < 0 {
					return nil, fault.New(fault.NotFound, "there is no reservation %s", args[0]).Advise("cox reserve list shows them")
				}
				return slices.Delete(list, i, i+1), nil
			})
		}),
	}
}

// rulesInForce reads the site's rules.
func rulesInForce(ctx context.Context, c *client.Client) (*api.Policy, *account.Policy, error) {
	p, err := c.Policy(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	rules, err := policy.Parse(p.File, []byte(p.Text))
	return p, rules, err
}

// reserve changes the reservations in the document of the site's rules.
func (a *app) reserve(ctx context.Context, c *client.Client, note string, change func([]account.Reservation) ([]account.Reservation, error)) error {
	old, rules, err := rulesInForce(ctx, c)
	if err != nil {
		return err
	}
	list, err := change(rules.Reservations)
	if err != nil {
		return err
	}
	text := policy.WithReservations(old.Text, list)
	done, err := c.SetPolicy(ctx, &api.SetPolicy{Text: text, File: old.File, Note: note, Base: &old.Revision})
	if err != nil {
		return &undone{err, "nothing was changed"}
	}
	fmt.Fprint(a.out, show.PolicyChanges(a.page(a.out), done))
	return nil
}
