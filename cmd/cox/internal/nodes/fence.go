package nodes

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func nodeFenceCommand(a *cli.App) *cobra.Command {
	var reason string
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "fence NODES --reason TEXT",
		Short: "Close machines to the engines of pools that do not own them",
		Long: `A machine on which two pools have a node belongs to one of them. Until its first
hand-over nothing keeps the other pool's engine from starting work there. This
closes the other pool's node in its engine, to everybody, and keeps it closed.
What runs there goes on. cox doctor names the machines. For administrators.

NODES are machines, or nodes on them: POOL/NODE if several pools have the name.`,
		Example:           "  cox node fence gpu7 --reason \"Slurm has it\"\n  cox node fence 'gpu[1-8]' --reason \"Kubernetes gets them in May\"",
		Args:              needNodes("fence"),
		ValidArgsFunction: a.CompleteNodes,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return fault.New(fault.Invalid, "a reason is required: --reason \"Slurm has it\"").Advise("the engine that is closed shows it to everybody")
			}
			return fenceMachines(a, cmd, c, &api.MachineFence{Nodes: args, Reason: reason}, f)
		}),
	}
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "reason; the engine that is closed shows it")
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

func nodeUnfenceCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "unfence NODES",
		Short: "Open machines again that cox node fence has closed",
		Long: `Remove Coxswain's fence from the nodes of pools that do not own these machines.
Both engines could start work there then. After a hand-over this is refused as
long as the pool that had the machine before is there: its nodes stay closed.`,
		Example:           "  cox node unfence gpu7",
		Args:              needNodes("unfence"),
		ValidArgsFunction: a.CompleteNodes,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return fenceMachines(a, cmd, c, &api.MachineFence{Nodes: args, Remove: true}, f)
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

// fenceMachines closes or opens nodes of other pools, and says what becomes of each machine.
func fenceMachines(a *cli.App, cmd *cobra.Command, c *client.Client, m *api.MachineFence, f cli.Format) error {
	out, err := c.FenceMachines(cmd.Context(), m)
	if err != nil {
		return err
	}
	if f.IsData() {
		err = a.WriteData(f, out)
	} else {
		_, err = fmt.Fprint(a.Out, printer.Fenced(out.Machines, m.Remove))
	}
	refused := 0
	for i := range out.Machines {
		if out.Machines[i].Error != nil {
			refused++
		}
	}
	if refused > 0 {
		err = errors.Join(err, fault.New(fault.Conflict, "%d of %d machines were refused", refused, len(out.Machines)))
	}
	return err
}
