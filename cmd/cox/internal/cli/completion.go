package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/policy"
)

// CompleteWords asks a server for words, quickly and in silence.
func (a *App) CompleteWords(cmd *cobra.Command, ask func(ctx context.Context, c *client.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	const quiet = cobra.ShellCompDirectiveNoFileComp
	c, err := a.Client()
	if err != nil {
		return nil, quiet
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), QuickTimeout)
	defer cancel()
	words, err := ask(ctx, c)
	if err != nil {
		return nil, quiet
	}
	return words, quiet
}

// CompleteArgument completes the one argument of a command.
func (a *App) CompleteArgument(ask func(context.Context, *client.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.CompleteWords(cmd, ask)
	}
}

// maxCompletions is how many words are offered; more help nobody.
const maxCompletions = 500

// CompleteJobs offers the numbers of jobs that a command can act on, with name,
// owner and state.
func (a *App) CompleteJobs(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && !strings.Contains(cmd.Use, "JOB…") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if cmd.Name() == "signal" && len(args) == 0 {
		return []string{"TERM", "INT", "HUP", "USR1", "USR2", "KILL", "STOP", "CONT"}, cobra.ShellCompDirectiveNoFileComp
	}
	return a.CompleteWords(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
		q := client.Query{Select: api.Select{States: completable[cmd.Name()]}, Collapse: true, Limit: maxCompletions}
		var words []string
		err := EachJobRow(ctx, c, q, []string{"name", "job_name", "user", "state"}, func(f []string) error {
			if len(f) == 4 && len(words) < maxCompletions && !slices.Contains(args, f[0]) {
				words = append(words, f[0]+"\t"+printer.Clean(f[1]+" ("+f[2]+") "+f[3]))
			}
			return nil
		})
		return words, err
	})
}

// completable are the states of the jobs that a command can act on; all live ones
// for a command that is not listed.
var completable = map[string][]string{
	"why": {"PENDING"}, "hold": {"PENDING"}, "release": {"PENDING"},
	"exec": {"RUNNING"}, "suspend": {"RUNNING"}, "resume": {"SUSPENDED"}, "checkpoint-done": {"RUNNING"},
	"logs": {"all"}, "show": {"all"}, "requeue": {"all"},
}

// CompleteNodes offers the names of nodes.
func (a *App) CompleteNodes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.CompleteWords(cmd, a.NodeNames)
}

// CompleteFlag completes the value of a flag, the last of a list.
func (a *App) CompleteFlag(cmd *cobra.Command, flag string, ask func(context.Context, *client.Client) ([]string, error)) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		words, directive := a.CompleteWords(cmd, ask)
		if at := strings.LastIndexByte(typed, ','); at >= 0 {
			for i := range words {
				words[i] = typed[:at+1] + words[i]
			}
		}
		return words, directive
	})
}

// NodeNames lists the nodes with their states.
func (a *App) NodeNames(ctx context.Context, c *client.Client) ([]string, error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	var words []string
	for i := range nodes.Nodes {
		n := &nodes.Nodes[i]
		words = append(words, n.Name+"\t"+n.State)
	}
	return words, nil
}

// PartitionNames lists the partitions.
func (a *App) PartitionNames(ctx context.Context, c *client.Client) ([]string, error) {
	parts, err := c.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	var words []string
	for i := range parts.Partitions {
		words = append(words, parts.Partitions[i].Name)
	}
	return words, nil
}

// AccountNames lists the accounts of the site's rules.
func (a *App) AccountNames(ctx context.Context, c *client.Client) ([]string, error) {
	s, err := c.Shares(ctx)
	if err != nil {
		return nil, err
	}
	var words []string
	for i := range s.Shares {
		if name := s.Shares[i].Account; s.Shares[i].User == "" && !slices.Contains(words, name) {
			words = append(words, name)
		}
	}
	return words, nil
}

// QOSNames lists the QOS of the site's rules.
func (a *App) QOSNames(ctx context.Context, c *client.Client) ([]string, error) {
	p, err := c.Policy(ctx, 0)
	if err != nil {
		return nil, err
	}
	rules, err := policy.Parse(p.File, []byte(p.Text))
	if err != nil {
		return nil, err
	}
	var words []string
	for i := range rules.QOS {
		words = append(words, rules.QOS[i].Name)
	}
	return words, nil
}

// UserNames are the owners of live jobs.
func (a *App) UserNames(ctx context.Context, c *client.Client) ([]string, error) {
	var words []string
	err := EachJobRow(ctx, c, client.Query{Collapse: true}, []string{"user"}, func(f []string) error {
		if !slices.Contains(words, f[0]) {
			words = append(words, f[0])
		}
		return nil
	})
	return words, err
}

// PoolNames lists the pools with their engines and states.
func (a *App) PoolNames(ctx context.Context, c *client.Client) ([]string, error) {
	list, err := c.Pools(ctx)
	if err != nil {
		return nil, err
	}
	var words []string
	for i := range list.Pools {
		p := &list.Pools[i]
		words = append(words, p.Name+"\t"+printer.Clean(p.Engine+" "+p.State))
	}
	return words, nil
}
