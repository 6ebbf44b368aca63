package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/pools"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// nodesFlags are the flags of cox nodes.
type nodesFlags struct {
	partitions, states []string
	pools              []string
	watch              bool
	format             cli.Format
}

// nodeStates are the states of nodes, as --state names them.
var nodeStates = []string{"up", "draining", "down", "unknown"}

func nodesCommand(a *cli.App) *cobra.Command {
	var f nodesFlags
	cmd := &cobra.Command{
		Use:   "nodes [NODES]",
		Short: "List nodes and how much of them is used",
		Example: `  cox nodes
  cox nodes 'gpu[1-8]' -o wide
  cox nodes -t draining,down
  cox nodes --pool slurm-b
  cox nodes --watch
  cox nodes -o json | jq '.nodes[] | select(.state=="up") | .name'`,
		ValidArgsFunction: a.CompleteNodes,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			for _, s := range f.states {
				if !slices.Contains(nodeStates, strings.ToLower(s)) {
					return fault.New(fault.Invalid, "--state=%s: nodes have no such state", s).Advise("states of nodes: %s", strings.Join(nodeStates, ", "))
				}
			}
			return listNodes(a, cmd.Context(), c, &f, args)
		}),
	}
	cmd.Flags().StringSliceVarP(&f.partitions, "partition", "p", nil, "nodes of these partitions")
	cmd.Flags().StringSliceVar(&f.pools, "pool", nil, "nodes of these pools")
	cmd.Flags().StringSliceVarP(&f.states, "state", "t", nil, "nodes in these states: up, draining, down, unknown")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "keep running and show changes")
	a.ListFlags(cmd, &f.format, true)
	a.CompleteFlag(cmd, "partition", a.PartitionNames)
	a.CompleteFlag(cmd, "pool", a.PoolNames)
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(nodeStates, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func listNodes(a *cli.App, ctx context.Context, c *client.Client, f *nodesFlags, args []string) error {
	if len(f.pools) == 1 && len(args)+len(f.states)+len(f.partitions) == 0 && !f.watch && !f.format.IsData() && f.format != cli.AsName {
		if done, err := stockOf(a, ctx, c, f.pools[0]); done || err != nil {
			return err
		}
	}
	list := func() (*printer.Table, int, error) {
		nodes, err := chosenNodes(ctx, c, f, args)
		return printer.NodeTable(a.Page(a.Out), nodes, f.format == cli.AsWide), len(nodes), err
	}
	if f.watch {
		return a.WatchTable(ctx, c, list, client.WatchOptions{})
	}
	nodes, err := chosenNodes(ctx, c, f, args)
	if err != nil {
		return err
	}
	switch {
	case f.format.IsData():
		return a.WriteData(f.format, api.Nodes{Nodes: nodes})
	case f.format == cli.AsName:
		var names []string
		for i := range nodes {
			names = append(names, nodes[i].Name)
		}
		return a.WriteNames(names)
	}
	if len(nodes) == 0 {
		fmt.Fprintln(a.Err, "no node matches")
	}
	page := a.Page(a.Out)
	if f.format == cli.AsWide {
		page.Width = 0 // all columns, whole
	}
	return printer.NodeTable(page, nodes, f.format == cli.AsWide).Write(a.Out, page)
}

// stockOf prints the nodes of a pool as the system knows them that its engine drives; false
// if it drives none.
func stockOf(a *cli.App, ctx context.Context, c *client.Client, pool string) (bool, error) {
	inv, err := pools.PoolInventory(ctx, c, pool)
	if err != nil || inv == nil || len(inv.Nodes) == 0 {
		return false, err
	}
	all, err := c.Nodes(ctx)
	if err != nil {
		return false, err
	}
	page := a.Page(a.Out)
	if err := printer.StockTable(inv, all.Nodes).Write(a.Out, page); err != nil {
		return true, err
	}
	_, err = fmt.Fprintf(a.Out, "as its engine found it %s; without --pool: what jobs hold now\n", page.Time(inv.Taken))
	return true, err
}

// chosenNodes lists the nodes that the arguments and flags choose. A node that is
// named and does not exist is an error.
func chosenNodes(ctx context.Context, c *client.Client, f *nodesFlags, args []string) ([]api.Node, error) {
	names, err := expandHosts(args)
	if err != nil {
		return nil, err
	}
	all, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	asked, missing := map[string]bool{}, map[string]bool{}
	for _, n := range names {
		asked[n], missing[n] = true, true
	}
	nodes := []api.Node{}
	for _, n := range all.Nodes {
		key := fleet.NodeKey{Pool: n.Pool, Name: n.Name}.String()
		if len(names) > 0 && !asked[n.Name] && !asked[key] {
			continue
		}
		delete(missing, n.Name)
		delete(missing, key)
		if len(f.partitions) > 0 && !slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(f.partitions, p) }) {
			continue
		}
		if len(f.states) > 0 && !slices.Contains(f.states, n.State) {
			continue
		}
		nodes = append(nodes, n)
	}
	for _, n := range names {
		if missing[n] {
			return nil, fault.New(fault.NotFound, "node %s does not exist", n).Advise("cox nodes lists them all")
		}
	}
	return pools.NodesInPools(ctx, c, nodes, f.pools)
}

// expandHosts makes names of host lists.
func expandHosts(lists []string) ([]string, error) {
	var names []string
	for _, l := range lists {
		ns, err := hostlist.Expand(l)
		if err != nil {
			return nil, fault.New(fault.Invalid, "%w", err).Advise("a host list is gpu[1-4,7],login1; quote it for the shell")
		}
		names = append(names, ns...)
	}
	return names, nil
}
