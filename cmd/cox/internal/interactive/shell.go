package interactive

import (
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/jobs"
)

// startShell starts the shell of the submission, or one that the job's image has.
const startShell = `for s in "$SHELL" bash sh; do command -v "$s" >/dev/null 2>&1 && exec "$s"; done; echo "no shell is installed here" >&2; exit 127`

func shellCommand(a *cli.App) *cobra.Command {
	var env []string
	cmd := &cobra.Command{
		Use:   "shell JOB[.RANK | .NODE]",
		Short: "Open a shell inside a running job",
		Long: `Opens a shell beside the tasks of a running job: with its devices, environment and
limits, on its first node, or the node of a rank, or a node by name. The shell ends
with the connection, and with the job. To come back to a shell, start tmux in the
job's script or in an allocation, and run "tmux attach" here.`,
		Example: `  cox shell 7
  cox shell last
  cox shell 7.v2               # on node v2
  cox shell 7.5                # where rank 5 runs, in its environment`,
		Args:              cobra.MatchAll(cli.RequireJobs("shell"), cobra.ExactArgs(1)),
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			p, err := parsePlace(args[0])
			if err != nil {
				return err
			}
			e := p.command("/bin/sh", "-c", startShell)
			e.Env = env
			return jobs.ExecInJob(a, cmd.Context(), c, p.job, e, false)
		}),
	}
	cmd.Flags().StringArrayVarP(&env, "env", "e", nil, "NAME=VALUE, added to the environment")
	return cmd
}
