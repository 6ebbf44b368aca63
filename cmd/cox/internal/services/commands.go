package services

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Commands returns the commands of this package, each in its group of cox --help.
func Commands(a *cli.App) []*cobra.Command {
	return append(cli.InGroup(cli.GroupWork, serviceCommand(a)), cli.InGroup(cli.GroupServer, gatewayCommand(a))...)
}

func serviceCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "service",
		Aliases: []string{"services", "svc"},
		Short:   "Services: list, show, scale, update, stop",
		Long: `A service is kept alive, has an address, is updated without a gap and scaled by its
load. cox submit FILE with kind: service starts one, or begins its next revision;
each replica is a job named NAME.INDEX. docs/reference/native-services.md has the
fields of the file.`,
		Example: "  cox service list\n  cox service show chat\n  cox service scale chat 3\n  cox service rollout undo chat\n  cox service stop chat",
	}
	cmd.AddCommand(listCommand(a), showCommand(a), scaleCommand(a), rolloutCommand(a), stopCommand(a))
	return cli.Group(cmd)
}

// completeServices offers the names of services.
func completeServices(a *cli.App) cobra.CompletionFunc {
	return a.CompleteArgument(func(ctx context.Context, c *client.Client) ([]string, error) {
		all, err := c.Services(ctx)
		if err != nil {
			return nil, err
		}
		names := make([]string, len(all.Services))
		for i := range all.Services {
			names[i] = all.Services[i].Name
		}
		return names, nil
	})
}

func listCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the services", Args: cobra.NoArgs,
		Example: "  cox service list\n  cox service list -o json",
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			all, err := c.Services(cmd.Context())
			switch {
			case err != nil:
				return err
			case f.IsData():
				return a.WriteData(f, all.Services)
			case f == cli.AsName:
				var names []string
				for i := range all.Services {
					names = append(names, all.Services[i].Name)
				}
				return a.WriteNames(names)
			case len(all.Services) == 0:
				fmt.Fprintln(a.Err, "there are no services; cox submit FILE with kind: service starts one")
				return nil
			}
			return printer.Services(all.Services).Write(a.Out, a.Page(a.Out))
		}),
	}
	a.ListFlags(cmd, &f, false)
	return cmd
}

// printService writes a service as it is now.
func printService(a *cli.App, f cli.Format, s *api.Service) error {
	if f.IsData() {
		return a.WriteData(f, s)
	}
	_, err := fmt.Fprint(a.Out, printer.Service(a.Page(a.Out), s))
	return err
}

func showCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a service, its replicas and its revisions", Args: cobra.ExactArgs(1),
		Example:           "  cox service show chat\n  cox service show team/chat -o json",
		ValidArgsFunction: completeServices(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			s, err := c.Service(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printService(a, f, s)
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

func scaleCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "scale NAME N", Short: "Set the number of replicas", Args: cobra.ExactArgs(2),
		Long: `Sets the number of replicas, between min and max of the file. A service with scale
goes on from there by its load. A file that is submitted again sets its own number.`,
		Example:           "  cox service scale chat 3",
		ValidArgsFunction: completeServices(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 0 {
				return fault.New(fault.Invalid, "%.40q is no number of replicas", args[1]).Advise("cox service scale %s 3", args[0])
			}
			s, err := c.ScaleService(cmd.Context(), args[0], n)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "service %s: %s wanted, %d ready\n", s.Name, printer.Count(s.Replicas.Want, "replica"), s.Replicas.Ready)
			return err
		}),
	}
	return cmd
}

func rolloutCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollout", Short: "See, pause, resume or undo an update",
		Long: `An update begins when a file is submitted again. These commands look at it, hold it
where it is, let it go on, or go back to a revision that is kept.`,
		Example: "  cox service rollout status chat\n  cox service rollout undo chat --to 3",
	}
	cmd.AddCommand(
		statusCommand(a),
		actionCommand(a, "pause", "Hold an update where it is"),
		actionCommand(a, "resume", "Let a paused or halted update go on"),
		undoCommand(a),
	)
	return cli.Group(cmd)
}

func statusCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use: "status NAME", Short: "Show how far an update is", Args: cobra.ExactArgs(1),
		Example:           "  cox service rollout status chat",
		ValidArgsFunction: completeServices(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			s, err := c.Service(cmd.Context(), args[0])
			switch {
			case err != nil:
				return err
			case f.IsData():
				return a.WriteData(f, s.Rollout)
			}
			_, err = fmt.Fprintln(a.Out, printer.Rollout(a.Page(a.Out), s))
			return err
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

// changeRollout asks for a change of a rollout and says what came of it.
func changeRollout(a *cli.App, cmd *cobra.Command, c *client.Client, name string, r api.ServiceRollout) error {
	s, err := c.RolloutService(cmd.Context(), name, r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Out, printer.Rollout(a.Page(a.Out), s))
	return err
}

func actionCommand(a *cli.App, action, short string) *cobra.Command {
	return &cobra.Command{
		Use: action + " NAME", Short: short, Args: cobra.ExactArgs(1),
		Example:           "  cox service rollout " + action + " chat",
		ValidArgsFunction: completeServices(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return changeRollout(a, cmd, c, args[0], api.ServiceRollout{Action: action})
		}),
	}
}

func undoCommand(a *cli.App) *cobra.Command {
	var to uint32
	cmd := &cobra.Command{
		Use: "undo NAME", Short: "Go back to the revision before, or to another one", Args: cobra.ExactArgs(1),
		Example:           "  cox service rollout undo chat\n  cox service rollout undo chat --to 3",
		ValidArgsFunction: completeServices(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return changeRollout(a, cmd, c, args[0], api.ServiceRollout{Action: "undo", To: to})
		}),
	}
	cmd.Flags().Uint32Var(&to, "to", 0, "`REVISION` to go to (default: the one before)")
	return cmd
}

func stopCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "stop NAME", Aliases: []string{"delete", "rm"}, Short: "End a service", Args: cobra.ExactArgs(1),
		Long: `Ends a service: its replicas leave the gateway, have the time of drain for the
requests that they have begun, and end. Then the service is gone.`,
		Example:           "  cox service stop chat",
		ValidArgsFunction: completeServices(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			s, err := c.StopService(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "service %s is stopping: %s to end\n", s.Name, printer.Count(len(s.Parts), "replica"))
			return err
		}),
	}
}
