package nodes

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// moveFlags are those of cox node move.
type moveFlags struct {
	api.MachineMove
	deadline time.Duration
	abort    bool
	wait     bool
}

func nodeMoveCommand(a *cli.App) *cobra.Command {
	var m moveFlags
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "move [NODES] --to POOL",
		Short: "Hand machines over from one pool to another",
		Long: `A machine on which two pools have a node belongs to one of them. This hands it
over: nothing new starts there, what runs ends, the old engine's node is fenced and
proved to be empty, then the other pool owns the machine. Each step is kept over
restarts. docs/how-to/move-nodes.md says more. For administrators.

Without NODES, --count N takes the machines that are cheapest to free, and --rack R
all machines of a rack. --abort walks hand-overs back that are under way.`,
		Example: `  cox node move gpu7 --to k8s
  cox node move --count 4 --from slurm --to k8s --now --wait
  cox node move --rack rack3 --to slurm --dry-run
  cox node move --abort gpu7`,
		ValidArgsFunction: a.CompleteNodes,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if err := m.check(cmd, args); err != nil {
				return err
			}
			var out *api.MovedMachines
			var err error
			if m.abort {
				out, err = c.AbortMoves(cmd.Context(), args)
			} else {
				m.Nodes, m.Deadline = args, int64(m.deadline/time.Second)
				out, err = c.MoveMachines(cmd.Context(), &m.MachineMove)
			}
			if err != nil {
				return err
			}
			if f.IsData() {
				err = a.WriteData(f, out)
			} else {
				_, err = fmt.Fprint(a.Out, printer.Moved(out.Machines, m.DryRun, m.abort, m.wait))
			}
			if err == nil && m.wait {
				err = waitForMoves(cmd.Context(), a, c, out.Machines, f.IsData(), m.abort)
			}
			return errors.Join(err, refusedMoves(out))
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&m.To, "to", "", "the pool that gets the machines")
	flags.StringVar(&m.From, "from", "", "the pool that owns them (default: any other)")
	flags.IntVar(&m.Count, "count", 0, "move so many machines: idle ones first, then those that are free soonest")
	flags.StringVar(&m.Rack, "rack", "", "move the machines below this element of the topology")
	flags.BoolVar(&m.Now, "now", false, "requeue jobs that may be requeued, instead of waiting for their end")
	flags.DurationVar(&m.deadline, "deadline", 24*time.Hour, "walk a hand-over back that has not given the machine to its new pool by then")
	flags.StringVarP(&m.Reason, "reason", "r", "", "reason; cox machines shows it")
	flags.BoolVar(&m.DryRun, "dry-run", false, "say which machines would move, and why these; nothing moves")
	flags.BoolVarP(&m.wait, "wait", "W", false, "wait until the hand-overs have ended, and say each step")
	flags.BoolVar(&m.Force, "force", false, "take machines without a proof that their pool reports no more: you have seen that nothing of it runs there")
	flags.BoolVar(&m.abort, "abort", false, "walk back hand-overs that are under way")
	a.CompleteFlag(cmd, "to", a.PoolNames)
	a.CompleteFlag(cmd, "from", a.PoolNames)
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

// check refuses flags that say nothing, or too much.
func (m *moveFlags) check(cmd *cobra.Command, args []string) error {
	switch {
	case m.abort && (m.To != "" || m.From != "" || m.Count > 0 || m.Rack != "" || m.Now || m.DryRun || m.Force || cmd.Flags().Changed("deadline")):
		return fault.New(fault.Invalid, "--abort takes the names of machines and no other flag").Advise("cox node move --abort gpu7")
	case m.wait && m.DryRun:
		return fault.New(fault.Invalid, "--wait and --dry-run: nothing moves that could be waited for").Advise("leave out one of them")
	case m.abort && len(args) == 0:
		return fault.New(fault.Invalid, "cox node move --abort needs the names of machines").Advise("cox machines shows which move")
	case m.abort:
		return nil
	case m.To == "":
		return fault.New(fault.Invalid, "--to is required: the pool that gets the machines").Advise("cox pool list shows the pools")
	case len(args) == 0 && m.Count == 0 && m.Rack == "":
		return fault.New(fault.Invalid, "cox node move needs the names of nodes, --count or --rack").Advise("for example: cox node move gpu7 --to %s, or --count 4 (cox machines lists the machines)", m.To)
	case m.Force && (len(args) == 0 || m.Count > 0 || m.Rack != "" || m.Now):
		return fault.New(fault.Invalid, "--force takes the names of machines, and neither --count, --rack nor --now").Advise("for example: cox node move gpu7 --to %s --force", m.To)
	case m.deadline < time.Second:
		return fault.New(fault.Invalid, "--deadline %s: it counts from now on", m.deadline).Advise("for example: --deadline 1h")
	}
	return nil
}

// refusedMoves is the error of machines that are refused while others move.
func refusedMoves(out *api.MovedMachines) error {
	refused := 0
	for i := range out.Machines {
		if out.Machines[i].Error != nil {
			refused++
		}
	}
	if refused == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "%d of %d machines were refused", refused, len(out.Machines))
}
