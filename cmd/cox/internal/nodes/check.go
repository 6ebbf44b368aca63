package nodes

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// checkFlags are those of cox node check.
type checkFlags struct {
	pool   string
	last   bool
	format cli.Format
}

func nodeCheckCommand(a *cli.App) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [NODES]",
		Short: "Check nodes now, or show what the last checks saw",
		Long: `Runs the checks of nodes (all that have checks, if none is named) and prints what
they saw. A node or device that a check has fenced is used again at once if the
check passes now. Exit code 1: a check failed.

Administrators run checks. Everybody may look at the last results: --last.`,
		Example: `  cox node check v1
  cox node check 'gpu[1-8]' -o json
  cox node check --pool local --last`,
		ValidArgsFunction: a.CompleteNodes,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			out, err := f.askChecks(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(out.Nodes, hasFailed) {
				a.Code = 1
			}
			if f.format.IsData() {
				return a.WriteData(f.format, out)
			}
			return printer.NodeChecks(a.Page(a.Out), out.Nodes).Write(a.Out, a.Page(a.Out))
		}),
	}
	cmd.Flags().StringVar(&f.pool, "pool", "", "nodes of this pool")
	cmd.Flags().BoolVar(&f.last, "last", false, "show the last results and run nothing")
	cli.FormatFlag(cmd, &f.format, cli.AsJSON, cli.AsYAML)
	a.CompleteFlag(cmd, "pool", a.PoolNames)
	return cmd
}

// askChecks has nodes checked, or asks for the last results.
func (f *checkFlags) askChecks(ctx context.Context, c *client.Client, args []string) (*api.NodeChecks, error) {
	if !f.last {
		return c.CheckNodes(ctx, &api.CheckNodes{Nodes: args, Pool: f.pool})
	}
	out, err := c.NodeChecks(ctx, f.pool)
	if err != nil || len(args) == 0 {
		return out, err
	}
	names, err := expandHosts(args)
	if err != nil {
		return nil, err
	}
	is := func(n *api.NodeCheck, name string) bool {
		k := fleet.NodeKey{Pool: n.Pool, Name: n.Node}
		return n.Node == name || k.String() == name
	}
	for _, name := range names {
		if !slices.ContainsFunc(out.Nodes, func(n api.NodeCheck) bool { return is(&n, name) }) {
			return nil, fault.New(fault.NotFound, "there is no node %s that can be checked", name).Advise("cox nodes lists all nodes")
		}
	}
	out.Nodes = slices.DeleteFunc(out.Nodes, func(n api.NodeCheck) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return is(&n, name) })
	})
	return out, nil
}

func hasFailed(n api.NodeCheck) bool {
	return slices.ContainsFunc(n.Results, func(r fleet.CheckResult) bool { return r.Verdict == fleet.Failed })
}
