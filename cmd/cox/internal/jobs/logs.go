package jobs

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func logsCommand(a *cli.App) *cobra.Command {
	var o client.LogOptions
	var stderr bool
	cmd := &cobra.Command{
		Use:   "logs JOB[.RANK | .STEP.RANK]",
		Short: "Print the output of a job or of one rank",
		Long: `Prints what a job wrote: its output file, or with a rank the log of that rank (of the
last step, or of the step that is named). -f goes on until the job has ended, and says
why the job waits as long as it does.`,
		Example: `  cox logs 7
  cox logs -f last
  cox logs 7.5 --tail 40       # rank 5
  cox logs 7.0.5               # rank 5 of step 0
  cox logs --stderr 7_3`,
		Args:              cobra.MatchAll(cli.RequireJobs("logs"), cobra.ExactArgs(1)),
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			t, err := parseTarget(args[0])
			if err != nil {
				return err
			}
			if o.Tail < 0 {
				return fault.New(fault.Invalid, "--tail=%d: this is not a number of lines", o.Tail).Advise("write 0 or more")
			}
			o.Step, o.Rank = t.step, t.rank
			if stderr {
				o.Stream = "stderr"
			}
			return FollowLog(cmd.Context(), a, c, t.job, o)
		}),
	}
	fl := cmd.Flags()
	fl.BoolVarP(&o.Follow, "follow", "f", false, "go on until the job has ended")
	fl.IntVar(&o.Tail, "tail", 0, "only the last lines (0: all)")
	fl.BoolVar(&stderr, "stderr", false, "standard error, where it is a file of its own")
	return cmd
}

// target is what 7, 7_3.5 or 7.0.5 names.
type target struct {
	job        string
	step, rank *int
}

func parseTarget(s string) (target, error) {
	parts := strings.Split(s, ".")
	t := target{job: parts[0]}
	wrong := fault.New(fault.Invalid, "%q names no job, rank or step", s).Advise("7, 7.RANK, 7.STEP.RANK; 7_3 for a task of an array")
	if t.job == "" || len(parts) > 3 {
		return t, wrong
	}
	var numbers []*int
	for _, p := range parts[1:] {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return t, wrong
		}
		numbers = append(numbers, &n)
	}
	switch len(numbers) {
	case 1:
		t.rank = numbers[0]
	case 2:
		t.step, t.rank = numbers[0], numbers[1]
	}
	return t, nil
}
