package jobs

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/internal/joboutput"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func logsCommand(a *cli.App) *cobra.Command {
	var o client.LogOptions
	var stderr bool
	cmd := &cobra.Command{
		Use:   "logs JOB[.RANK | .STEP.RANK]",
		Short: "Print the output of a job or of one rank",
		Long: `Prints the output of a job: its output file, or with a rank the log of that rank (of
the last step, or of a given step). -f continues until the job has ended, and says
why the job waits while it does. Of a service it is the output of all replicas, with
the replica before each line; -f then takes in replicas that come later.`,
		Example: `  cox logs 7
  cox logs -f last
  cox logs 7.5 --tail 40       # rank 5
  cox logs -f chat             # all replicas of a service
  cox logs 7.0.5               # rank 5 of step 0
  cox logs --stderr 7_3`,
		Args:              cobra.MatchAll(cli.RequireJobs("logs"), cobra.ExactArgs(1)),
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if o.Tail < 0 {
				return fault.New(fault.Invalid, "--tail=%d: this is not a number of lines", o.Tail).Advise("write 0 or more")
			}
			if stderr {
				o.Stream = "stderr"
			}
			if !cli.IsJob(args[0]) {
				return FollowService(cmd.Context(), a, c, args[0], o, func(err error) {
					printRemark(a, fmt.Sprintf("… %s; going on when it answers", printer.Clean(err.Error())))
				})
			}
			t, err := joboutput.ParseTarget(args[0])
			if err != nil {
				return err
			}
			o.Step, o.Rank = t.Step, t.Rank
			return FollowLog(cmd.Context(), a, c, t.Job, o)
		}),
	}
	fl := cmd.Flags()
	fl.BoolVarP(&o.Follow, "follow", "f", false, "continue until the job has ended")
	fl.IntVar(&o.Tail, "tail", 0, "print only the last lines (0: all)")
	fl.BoolVar(&stderr, "stderr", false, "print standard error, if it is a file of its own")
	return cli.TakeServices(cmd)
}
