package nodes

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func machinesCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	var owners []string
	var moving bool
	cmd := &cobra.Command{
		Use:   "machines [MACHINES]",
		Short: "List machines, which pool owns each, and hand-overs",
		Long: `A machine can be a node of several pools. One of them owns it: only there can
work start.`,
		Example:           "  cox machines\n  cox machines 'gpu[1-8]' -o wide\n  cox machines --owner slurm-b\n  cox machines --moving",
		ValidArgsFunction: a.CompleteNodes,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			names, err := expandHosts(args)
			if err != nil {
				return err
			}
			all, err := c.Machines(cmd.Context())
			if err != nil {
				return err
			}
			for _, name := range names {
				if !slices.ContainsFunc(all.Machines, func(m api.Machine) bool { return m.Name == name }) {
					return fault.New(fault.NotFound, "there is no machine %s", name).Advise("cox machines lists them all")
				}
			}
			list := slices.DeleteFunc(all.Machines, func(m api.Machine) bool {
				return len(names) > 0 && !slices.Contains(names, m.Name) || len(owners) > 0 && !slices.Contains(owners, m.Pool) || moving && m.To == ""
			})
			switch {
			case f.IsData():
				return a.WriteData(f, api.Machines{Machines: list})
			case f == cli.AsName:
				var out []string
				for i := range list {
					out = append(out, list[i].Name)
				}
				return a.WriteNames(out)
			}
			page := a.Page(a.Out)
			if f == cli.AsWide {
				page.Width = 0 // all columns, whole
			}
			return printer.Machines(list, f == cli.AsWide).Write(a.Out, page)
		}),
	}
	cmd.Flags().StringSliceVar(&owners, "owner", nil, "machines that these pools own")
	cmd.Flags().BoolVar(&moving, "moving", false, "machines that are being handed over")
	a.ListFlags(cmd, &f, true)
	a.CompleteFlag(cmd, "owner", a.PoolNames)
	return cmd
}

func doctorCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find machines that two engines could use, and hand-overs that are stuck",
		Long: `Find machines on which the engine of a pool could start work that does not own
them, machines that a hand-over has given to a pool that cannot use them, and
rules of hand-over that have no effect. Each comes with the command that mends
it. The exit code is 1 if there is anything.`,
		Example: "  cox doctor\n  cox doctor -o json",
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			all, err := c.Machines(cmd.Context())
			if err != nil {
				return err
			}
			d := printer.Diagnose(all, time.Now())
			switch {
			case f.IsData():
				err = a.WriteData(f, d)
			case d.IsWell():
				_, err = fmt.Fprintf(a.Out, "%s: on none of them could two engines start work\n", printer.Count(len(all.Machines), "machine"))
			default:
				_, err = fmt.Fprint(a.Out, d.Text())
			}
			if !d.IsWell() {
				a.Code = 1
			}
			return err
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}
