package policy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

func reserveCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reserve",
		Short: "Keep nodes for some jobs, or for none, for a time",
		Long: `During a reservation, only jobs of its accounts and users with --reservation=NAME run
on its nodes. Reservations are part of the site's rules (reservations in
queues.yaml); these commands change that part and leave the rest.
docs/explanation/reservations.md says more. For administrators, except list and show.`,
		Example: "  cox reserve list",
	}
	cmd.AddCommand(reserveListCommand(a), reserveShowCommand(a), reserveCreateCommand(a), reserveUpdateCommand(a), reserveDeleteCommand(a))
	return cli.Group(cmd)
}

func reserveListCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use: "list", Short: "List the reservations", Args: cobra.NoArgs,
		Example: "  cox reserve list",
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			r, err := c.Reservations(cmd.Context())
			switch {
			case err != nil:
				return err
			case f.IsData():
				return a.WriteData(f, r.Reservations)
			case f == cli.AsName:
				var names []string
				for i := range r.Reservations {
					names = append(names, r.Reservations[i].Name)
				}
				return a.WriteNames(names)
			case len(r.Reservations) == 0:
				fmt.Fprintln(a.Err, "there are no reservations")
				return nil
			}
			return printer.Reservations(r.Reservations).Write(a.Out, a.Page(a.Out))
		}),
	}
	a.ListFlags(cmd, &f, false)
	return cmd
}

func reserveShowCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show all of a reservation", Args: cobra.ExactArgs(1),
		Example:           "  cox reserve show power\n  cox reserve show power -o json",
		ValidArgsFunction: completeReservations(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			r, _, err := reservationNamed(cmd, c, args[0])
			switch {
			case err != nil:
				return err
			case f.IsData():
				return a.WriteData(f, r)
			}
			_, err = fmt.Fprint(a.Out, printer.Reservation(a.Page(a.Out), r))
			return err
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

// reservationNamed finds a reservation, and the revision of the rules that have it.
func reservationNamed(cmd *cobra.Command, c *client.Client, name string) (*api.Reservation, uint64, error) {
	all, err := c.Reservations(cmd.Context())
	if err != nil {
		return nil, 0, err
	}
	i := slices.IndexFunc(all.Reservations, func(r api.Reservation) bool { return r.Name == name })
	if i < 0 {
		return nil, 0, fault.New(fault.NotFound, "there is no reservation %s", name).Advise("cox reserve list shows them")
	}
	return &all.Reservations[i], all.Revision, nil
}

// completeReservations offers the names of reservations.
func completeReservations(a *cli.App) cobra.CompletionFunc {
	return a.CompleteArgument(func(ctx context.Context, c *client.Client) ([]string, error) {
		var names []string
		all, err := c.Reservations(ctx)
		if err == nil {
			for i := range all.Reservations {
				names = append(names, all.Reservations[i].Name)
			}
		}
		return names, err
	})
}

// reserveFlags describe a reservation on a command line.
type reserveFlags struct {
	r               api.SetReservation
	start, nodes    string
	duration, ahead time.Duration
}

func (x *reserveFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&x.start, "start", "", "start, as in sbatch --begin")
	cli.DurationFlag(fl, &x.duration, "duration", 0, "length, such as 90m")
	cli.DurationFlag(fl, &x.ahead, "ahead", 0, "it always begins this long from now (floating)")
	fl.StringVar(&x.r.Every, "every", "", "repeat it every hour, day, weekday, weekend or week")
	fl.StringVar(&x.nodes, "nodes", "", "host list (default without --count: all nodes)")
	fl.IntVar(&x.r.Count, "count", 0, "number of nodes, chosen among those that are free all that time")
	fl.StringVar(&x.r.Partition, "partition", "", "with --count: nodes of this partition")
	fl.StringSliceVar(&x.r.Features, "features", nil, "with --count: features that the nodes must have")
	fl.StringSliceVar(&x.r.Accounts, "accounts", nil, "accounts whose jobs may use it")
	fl.StringSliceVar(&x.r.Users, "users", nil, "users who may use it")
	fl.BoolVar(&x.r.Flex, "flex", false, "its jobs may begin before it and end after it")
	fl.BoolVar(&x.r.Overlap, "overlap", false, "it may have nodes of another reservation")
	fl.BoolVar(&x.r.Ignore, "ignore-jobs", false, "make it even if jobs run on its nodes beyond its start; they continue")
	fl.StringVarP(&x.r.Note, "note", "m", "", "why, for people")
	cli.AllowEmpty(cmd, "note")
	fl.BoolVar(&x.r.DryRun, "dry-run", false, "show what it would do, and do nothing")
}

// applyTo puts what was said into a reservation; changed reports whether a flag was.
func (x *reserveFlags) applyTo(r *api.Reservation, changed func(flag string) bool) error {
	if changed("start") {
		at, err := slurmfmt.ParseWhen(x.start, time.Now())
		if err != nil {
			return fault.New(fault.Invalid, "--start=%s: %w", x.start, err).Advise("write 2026-12-01T08:00 or now+2hours")
		}
		r.Start, r.Ahead = at.UTC().Format(time.RFC3339), 0
	}
	if changed("nodes") {
		list, err := hostlist.Expand(x.nodes)
		if err != nil {
			return fault.New(fault.Invalid, "--nodes=%s: %w", x.nodes, err).Advise("write a host list, as gpu[1-4]")
		}
		r.Nodes = list
	}
	for flag, set := range map[string]func(){
		"duration": func() { r.Duration = x.duration.Seconds() },
		"ahead":    func() { r.Ahead, r.Start = x.ahead.Seconds(), "" },
		"every":    func() { r.Every = x.r.Every },
		"count": func() {
			r.Count = x.r.Count
			if !changed("nodes") {
				r.Nodes = nil // those that it has are chosen anew
			}
		},
		"partition":   func() { r.Partition = x.r.Partition },
		"features":    func() { r.Features = x.r.Features },
		"accounts":    func() { r.Accounts = x.r.Accounts },
		"users":       func() { r.Users = x.r.Users },
		"flex":        func() { r.Flex = x.r.Flex },
		"overlap":     func() { r.Overlap = x.r.Overlap },
		"ignore-jobs": func() { r.Ignore = x.r.Ignore },
		"note":        func() { r.Note = x.r.Note },
	} {
		if changed(flag) {
			set()
		}
	}
	return nil
}

func reserveCreateCommand(a *cli.App) *cobra.Command {
	var x reserveFlags
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a reservation",
		Long: `Makes a reservation. It is refused if jobs on its nodes run beyond its start (the
message names them), or if another reservation has one of its nodes. With --count the
server chooses that many nodes: free all that time, close together and, as far as
possible, not planned for a waiting job. The command lists jobs that may start later
than planned.`,
		Example: `  cox reserve create power --start 2026-12-01T08:00 --duration 4h            # maintenance of all nodes
  cox reserve create demo --start tomorrow --duration 2h --count 4 --users anna
  cox reserve create course --start 2026-12-01T08:00 --duration 2h --every weekday --nodes gpu[1-4] --accounts teaching
  cox reserve create quick --ahead 1h --duration 24h --nodes gpu5             # only jobs of at most an hour run there`,
		Args: cobra.ExactArgs(1),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			req := api.SetReservation{Reservation: api.Reservation{Name: args[0]}, DryRun: x.r.DryRun}
			if err := x.applyTo(&req.Reservation, cmd.Flags().Changed); err != nil {
				return err
			}
			done, err := c.NewReservation(cmd.Context(), &req)
			return printReservation(a, done, err, x.r.DryRun)
		}),
	}
	x.add(cmd)
	return cmd
}

func reserveUpdateCommand(a *cli.App) *cobra.Command {
	var x reserveFlags
	cmd := &cobra.Command{
		Use:   "update NAME",
		Short: "Change a reservation",
		Long: `Changes the given fields and leaves the rest of the reservation. It is refused in the
same cases as create; jobs that run inside the reservation do not count.`,
		Example:           "  cox reserve update power --duration 6h\n  cox reserve update course --nodes gpu[1-6] --users anna,ben",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeReservations(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			old, revision, err := reservationNamed(cmd, c, args[0])
			if err != nil {
				return err
			}
			req := api.SetReservation{Reservation: *old, Base: &revision, DryRun: x.r.DryRun}
			req.From, req.Until, req.Active, req.CPUs, req.Count = nil, nil, false, 0, 0
			if err := x.applyTo(&req.Reservation, cmd.Flags().Changed); err != nil {
				return err
			}
			done, err := c.SetReservation(cmd.Context(), args[0], &req)
			return printReservation(a, done, err, x.r.DryRun)
		}),
	}
	x.add(cmd)
	cli.AllowEmpty(cmd, "every") // no longer again and again
	return cmd
}

func reserveDeleteCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "End a reservation; what runs in it goes on", Args: cobra.ExactArgs(1),
		Example:           "  cox reserve delete power",
		ValidArgsFunction: completeReservations(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if _, err := c.DeleteReservation(cmd.Context(), args[0]); err != nil {
				return cli.NotDone(err, "nothing was changed")
			}
			fmt.Fprintf(a.Out, "reservation %s is gone\n", args[0])
			return nil
		}),
	}
}

// printReservation says what was made.
func printReservation(a *cli.App, done *api.ReservationDone, err error, dry bool) error {
	if err != nil {
		return cli.NotDone(err, "nothing was changed")
	}
	if dry {
		fmt.Fprintln(a.Out, "nothing was changed; this is what it would be:")
	}
	_, err = fmt.Fprint(a.Out, printer.ReservationDone(a.Page(a.Out), done))
	return err
}
