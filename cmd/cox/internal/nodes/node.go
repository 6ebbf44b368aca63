package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func nodeCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "node",
		Short:   "Show, check, drain, resume, fence or move nodes",
		Example: "  cox node show v1\n  cox node check v1\n  cox node drain v1 --reason \"fan is noisy\"\n  cox node resume v1",
	}
	cmd.AddCommand(nodeShowCommand(a), nodeCheckCommand(a), nodeDrainCommand(a), nodeResumeCommand(a), nodeFenceCommand(a), nodeUnfenceCommand(a), nodeMoveCommand(a))
	return cli.Group(cmd)
}

func nodeShowCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:               "show NODES",
		Short:             "Show a node, its devices and who holds them",
		Example:           "  cox node show v1\n  cox node show 'gpu[1-2]' -o json",
		Args:              needNodes("show"),
		ValidArgsFunction: a.CompleteNodes,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			names, err := expandHosts(args)
			if err != nil {
				return err
			}
			var nodes []*api.Node
			err = cli.ForEach(names, func(name string) error {
				n, err := c.Node(cmd.Context(), name)
				if err == nil {
					nodes = append(nodes, n)
				}
				return err
			})
			if f.IsData() {
				return errors.Join(cli.WriteValues(a, f, nodes), err)
			}
			for i, n := range nodes {
				if i > 0 {
					fmt.Fprintln(a.Out)
				}
				fmt.Fprint(a.Out, printer.Node(a.Page(a.Out), n))
			}
			return err
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

func nodeDrainCommand(a *cli.App) *cobra.Command {
	var reason string
	var wait bool
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "drain NODES --reason TEXT",
		Short: "Start no new jobs on nodes; running jobs continue",
		Example: `  cox node drain v1 --reason "fan makes noise"
  cox node drain 'gpu[49-56]' --reason "moved to rack 8" --wait`,
		Args:              needNodes("drain"),
		ValidArgsFunction: a.CompleteNodes,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return fault.New(fault.Invalid, "a reason is required: --reason \"fan is noisy\"").Advise("cox nodes shows it to everybody, until the nodes are resumed")
			}
			if err := changeNodes(a, cmd.Context(), c, &api.NodeChange{Nodes: args, Verb: "drain", Reason: reason}, f); err != nil || !wait {
				return err
			}
			return waitDrained(a, cmd.Context(), c, args)
		}),
	}
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "reason; everybody can see it")
	cmd.Flags().BoolVarP(&wait, "wait", "W", false, "wait until no job is left on them")
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

func nodeResumeCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:               "resume NODES",
		Short:             "Let jobs start on drained nodes again",
		Example:           "  cox node resume v1\n  cox node resume 'gpu[49-56]'",
		Args:              needNodes("resume"),
		ValidArgsFunction: a.CompleteNodes,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return changeNodes(a, cmd.Context(), c, &api.NodeChange{Nodes: args, Verb: "resume"}, f)
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

func needNodes(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fault.New(fault.Invalid, "cox node %s needs the names of nodes", verb).Advise("for example: cox node %s v1, or a host list: cox node %[1]s 'gpu[1-8]' (cox nodes lists the nodes)", verb)
		}
		return nil
	}
}

func changeNodes(a *cli.App, ctx context.Context, c *client.Client, ch *api.NodeChange, f cli.Format) error {
	nodes, err := c.ChangeNodes(ctx, ch)
	if err != nil {
		return err
	}
	if f.IsData() {
		return a.WriteData(f, nodes)
	}
	_, err = fmt.Fprint(a.Out, printer.Drained(a.Page(a.Out), nodes.Nodes))
	return err
}

// waitDrained waits until the nodes are empty. Every change of a job may be the
// one that empties them; a look every few seconds is for the case of none.
func waitDrained(a *cli.App, ctx context.Context, c *client.Client, args []string) error {
	info, err := c.Info(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Watch(ctx, client.WatchOptions{After: info.Change}, func(api.Event) error {
			select {
			case changed <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	var running atomic.Int64
	stop := a.ShowSpinner(func() string { return "draining: " + printer.Count(int(running.Load()), "job") + " left" })
	defer stop()
	for {
		nodes, err := chosenNodes(ctx, c, &nodesFlags{}, args)
		if err != nil {
			return errors.Join(err, cli.StopWatch(cancel, ended))
		}
		left := 0
		for i := range nodes {
			left += len(nodes[i].Jobs)
		}
		running.Store(int64(left))
		if left == 0 {
			stop()
			fmt.Fprintf(a.Out, "%s empty\n", printer.Count(len(nodes), "node"))
			return cli.StopWatch(cancel, ended)
		}
		select {
		case err := <-ended:
			return err
		case <-changed:
		case <-time.After(5 * time.Second):
		}
	}
}
