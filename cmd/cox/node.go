package main

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
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func (a *app) nodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Show a node, drain it, take it back",
		RunE: func(cmd *cobra.Command, args []string) error {
			return fault.New(fault.Invalid, "show, drain or resume?").Advise("cox node show v1, cox node drain v1 --reason fan; cox nodes lists them all")
		},
	}
	cmd.AddCommand(a.nodeShowCommand(), a.nodeDrainCommand(), a.nodeResumeCommand())
	return cmd
}

func (a *app) nodeShowCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use:               "show NODES",
		Short:             "Show a node, its devices and who holds them",
		Example:           "  cox node show v1\n  cox node show 'gpu[1-2]' -o json",
		Args:              needNodes("show"),
		ValidArgsFunction: a.completeNodes,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, args []string) error {
			names, err := expand(args)
			if err != nil {
				return err
			}
			var nodes []*api.Node
			err = each(names, func(name string) error {
				n, err := c.Node(cmd.Context(), name)
				if err == nil {
					nodes = append(nodes, n)
				}
				return err
			})
			if f.machine() {
				return errors.Join(writeSome(a.out, f, nodes), err)
			}
			for i, n := range nodes {
				if i > 0 {
					fmt.Fprintln(a.out)
				}
				fmt.Fprint(a.out, printer.Node(a.page(a.out), n))
			}
			return err
		}),
	}
	formatFlag(cmd, &f, asJSON, asYAML)
	return cmd
}

func (a *app) nodeDrainCommand() *cobra.Command {
	var reason string
	var wait bool
	var f format
	cmd := &cobra.Command{
		Use:   "drain NODES --reason TEXT",
		Short: "Let nothing new start on nodes; what runs there goes on",
		Example: `  cox node drain v1 --reason "fan makes noise"
  cox node drain 'gpu[49-56]' --reason "moved to rack 8" --wait`,
		Args:              needNodes("drain"),
		ValidArgsFunction: a.completeNodes,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return fault.New(fault.Invalid, "why?").Advise("say it for those who find the nodes drained: --reason \"fan makes noise\"")
			}
			if err := a.changeNodes(cmd.Context(), c, &api.NodeChange{Nodes: args, Verb: "drain", Reason: reason}, f); err != nil || !wait {
				return err
			}
			return a.waitDrained(cmd.Context(), c, args)
		}),
	}
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "why; it is shown to everybody who asks")
	cmd.Flags().BoolVarP(&wait, "wait", "W", false, "stay until no job is left on them")
	formatFlag(cmd, &f, asJSON, asYAML)
	return cmd
}

func (a *app) nodeResumeCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use:               "resume NODES",
		Short:             "Let jobs start on drained nodes again",
		Example:           "  cox node resume v1\n  cox node resume 'gpu[49-56]'",
		Args:              needNodes("resume"),
		ValidArgsFunction: a.completeNodes,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return a.changeNodes(cmd.Context(), c, &api.NodeChange{Nodes: args, Verb: "resume"}, f)
		}),
	}
	formatFlag(cmd, &f, asJSON, asYAML)
	return cmd
}

func needNodes(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fault.New(fault.Invalid, "which nodes?").Advise("cox node %s v1, or a host list 'gpu[1-8]'   (cox nodes lists them)", verb)
		}
		return nil
	}
}

func (a *app) changeNodes(ctx context.Context, c *client.Client, ch *api.NodeChange, f format) error {
	nodes, err := c.ChangeNodes(ctx, ch)
	if err != nil {
		return err
	}
	if f.machine() {
		return f.write(a.out, nodes)
	}
	_, err = fmt.Fprint(a.out, printer.Drained(a.page(a.out), nodes.Nodes))
	return err
}

// waitDrained waits until the nodes are empty. Every change of a job may be the
// one that empties them; a look every few seconds is for the case of none.
func (a *app) waitDrained(ctx context.Context, c *client.Client, args []string) error {
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
	stop := a.spin(func() string { return "draining: " + printer.Count(int(running.Load()), "job") + " left" })
	defer stop()
	for {
		nodes, err := chosenNodes(ctx, c, &nodesFlags{}, args)
		if err != nil {
			return errors.Join(err, stopped(cancel, ended))
		}
		left := 0
		for i := range nodes {
			left += len(nodes[i].Jobs)
		}
		running.Store(int64(left))
		if left == 0 {
			stop()
			fmt.Fprintf(a.out, "%s empty\n", printer.Count(len(nodes), "node"))
			return stopped(cancel, ended)
		}
		select {
		case err := <-ended:
			return err
		case <-changed:
		case <-time.After(5 * time.Second):
		}
	}
}
