package jobs

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// selectFlags choose jobs by what they are.
type selectFlags struct {
	users, accounts, partitions, qos, names, states, nodes []string
	me                                                     bool
}

func (s *selectFlags) add(a *cli.App, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVarP(&s.users, "user", "u", nil, "jobs of these users")
	fl.BoolVar(&s.me, "me", false, "my jobs")
	fl.StringSliceVarP(&s.accounts, "account", "A", nil, "jobs of these accounts")
	fl.StringSliceVarP(&s.partitions, "partition", "p", nil, "jobs in these partitions")
	fl.StringSliceVarP(&s.qos, "qos", "q", nil, "jobs with these qualities of service")
	fl.StringSliceVarP(&s.names, "name", "n", nil, "jobs with these names")
	fl.StringSliceVarP(&s.states, "state", "t", nil, "jobs in these states (PENDING, R, …)")
	fl.StringSliceVarP(&s.nodes, "node", "w", nil, "jobs on these nodes (host lists)")
	a.CompleteFlag(cmd, "user", a.UserNames)
	a.CompleteFlag(cmd, "partition", a.PartitionNames)
	a.CompleteFlag(cmd, "node", a.NodeNames)
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(cli.StateNames(), cobra.ShellCompDirectiveNoFileComp))
}

// isGiven reports whether a flag of the selection was given.
func (s *selectFlags) isGiven(fl *pflag.FlagSet) bool {
	for _, name := range []string{"user", "me", "account", "partition", "qos", "name", "state", "node"} {
		if fl.Changed(name) {
			return true
		}
	}
	return false
}

func (s *selectFlags) selectJobs(ids []string) api.Select {
	sel := api.Select{
		IDs: ids, Users: s.users, Accounts: s.accounts, Partitions: s.partitions, QOS: s.qos, Names: s.names,
		States: cli.LongStates(s.states), Nodes: s.nodes,
	}
	if s.me {
		sel.Users = append(sel.Users, cli.Caller().User)
	}
	return sel
}
