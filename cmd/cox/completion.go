package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func completionCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that completes commands, jobs, nodes and users",
		Long: `Prints a completion script for a shell. Numbers of jobs come with their names and
states, from the server; where none answers within a quarter of a second there are none.`,
		Example: `  source <(cox completion bash)
  cox completion bash > ~/.local/share/bash-completion/completions/cox
  cox completion zsh > "${fpath[1]}/_cox"
  cox completion fish > ~/.config/fish/completions/cox.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains([]string{"bash", "zsh", "fish"}, args[0]) {
				return fault.New(fault.Invalid, "for which shell?").Advise("cox completion bash, zsh or fish")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			}
			return root.GenFishCompletion(out, true)
		},
	}
}

// complete asks a server for words, quickly and in silence.
func (a *app) complete(cmd *cobra.Command, ask func(ctx context.Context, c *client.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	const quiet = cobra.ShellCompDirectiveNoFileComp
	c, err := a.client()
	if err != nil {
		return nil, quiet
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), quick)
	defer cancel()
	words, err := ask(ctx, c)
	if err != nil {
		return nil, quiet
	}
	return words, quiet
}

// most is how many words are offered; more help nobody.
const most = 500

// completeJobs offers the numbers of jobs that a command can act on, with name,
// owner and state.
func (a *app) completeJobs(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && !strings.Contains(cmd.Use, "JOB…") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if cmd.Name() == "signal" && len(args) == 0 {
		return []string{"TERM", "INT", "HUP", "USR1", "USR2", "KILL", "STOP", "CONT"}, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
		q := client.Query{Select: api.Select{States: completable[cmd.Name()]}, Collapse: true, Limit: most}
		var words []string
		err := eachLine(ctx, c, q, []string{"name", "job_name", "user", "state"}, func(f []string) error {
			if len(f) == 4 && len(words) < most && !slices.Contains(args, f[0]) {
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

func (a *app) completeNodes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.complete(cmd, a.nodeNames)
}

func (a *app) completeTokens(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.complete(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
		t, err := c.Tokens(ctx)
		if err != nil {
			return nil, err
		}
		var words []string
		for i := range t.Tokens {
			words = append(words, t.Tokens[i].ID+"\t"+printer.Clean(t.Tokens[i].Name+" "+t.Tokens[i].Comment))
		}
		return words, nil
	})
}

// completeFlag completes the value of a flag, the last of a list.
func (a *app) completeFlag(cmd *cobra.Command, flag string, ask func(context.Context, *client.Client) ([]string, error)) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		words, directive := a.complete(cmd, ask)
		if at := strings.LastIndexByte(typed, ','); at >= 0 {
			for i := range words {
				words[i] = typed[:at+1] + words[i]
			}
		}
		return words, directive
	})
}

func (a *app) completeShape(cmd *cobra.Command) {
	a.completeFlag(cmd, "partition", a.partitionNames)
}

func (a *app) nodeNames(ctx context.Context, c *client.Client) ([]string, error) {
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

func (a *app) partitionNames(ctx context.Context, c *client.Client) ([]string, error) {
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

// userNames are the owners of live jobs.
func (a *app) userNames(ctx context.Context, c *client.Client) ([]string, error) {
	var words []string
	err := eachLine(ctx, c, client.Query{Collapse: true}, []string{"user"}, func(f []string) error {
		if !slices.Contains(words, f[0]) {
			words = append(words, f[0])
		}
		return nil
	})
	return words, err
}
