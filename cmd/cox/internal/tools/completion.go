package tools

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/model/fault"
)

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that completes commands, jobs, nodes and users",
		Long: `Prints a completion script for a shell. It completes numbers of jobs, with their
names and states, from the server; if the server does not answer within a quarter of
a second, it completes none.`,
		Example: `  source <(cox completion bash)
  cox completion bash > ~/.local/share/bash-completion/completions/cox
  cox completion zsh > "${fpath[1]}/_cox"
  cox completion fish > ~/.config/fish/completions/cox.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains([]string{"bash", "zsh", "fish"}, args[0]) {
				return fault.New(fault.Invalid, "cox completion needs the name of a shell: bash, zsh or fish").Advise("for example: cox completion bash > /etc/bash_completion.d/cox")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			out, root := cmd.OutOrStdout(), cmd.Root()
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
