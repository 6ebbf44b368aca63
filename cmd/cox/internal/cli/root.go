package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// The groups of cox --help, in its order.
const (
	GroupWork   = "work"
	GroupAsk    = "ask"
	GroupChange = "change"
	GroupNodes  = "nodes"
	GroupServer = "server"
	GroupFiles  = "files"
)

// Root is the command cox with the options that every command has, and without commands.
func (a *App) Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "cox",
		Short: "One control plane for GPU work: the whole crew starts, or nobody",
		Long: `Coxswain takes the file that you have (an sbatch script, native YAML or JSON), starts
its whole gang or nobody, and says at any moment why something waits.

cox run needs nothing else; if this machine has a server (cox up), it uses that
server's queue. All other commands talk to a server: the one of this machine, or the
one that COX_SERVER names.

Exit codes: 0 success; a job's own code from run, wait, exec and submit --wait; 2 a
request that is wrong; 3 no such thing; 4 a conflict; 75 no answer; 77 no permission;
70 a defect. All of them: docs/reference/exit-codes.md.`,
		Version:           Version(),
		PersistentPreRunE: checkWords,

		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fault.New(fault.Invalid, "%s", flagMessage(cmd, err)).Advise("%s", flagRemedy(cmd, err))
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		writeUsage(cmd.OutOrStderr(), cmd)
		return nil
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { writeHelp(cmd.OutOrStdout(), cmd) })
	root.PersistentFlags().StringVar(&a.Server, "server", "", "`ADDRESS` server to ask: the name of a context, ssh://host, unix:///path, http://host:port (default: COX_SERVER, then the current context, then this machine's)")
	root.PersistentFlags().BoolVar(&a.NoColour, "no-color", false, "no colours on a terminal (also: NO_COLOR)")
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddGroup(
		&cobra.Group{ID: GroupWork, Title: "Work:"}, &cobra.Group{ID: GroupAsk, Title: "Ask:"},
		&cobra.Group{ID: GroupChange, Title: "Change:"}, &cobra.Group{ID: GroupNodes, Title: "Nodes:"},
		&cobra.Group{ID: GroupServer, Title: "Server:"}, &cobra.Group{ID: GroupFiles, Title: "Files and tools:"},
	)
	root.SetHelpCommandGroupID(GroupFiles)
	return root
}

// flagRemedy says what to write instead of a flag that a command does not have, or did not take.
func flagRemedy(cmd *cobra.Command, err error) string {
	list := cmd.CommandPath() + " --help lists what there is"
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return list
	}
	var names []getopt.Option
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, getopt.Option{Long: f.Name}) })
	if near := srunopt.Meant(unknown.GetSpecifiedName(), len(names), func(i int) getopt.Option { return names[i] }); near != "" {
		return "did you mean --" + near + "? " + list
	}
	return list
}

// InGroup puts commands into a group of cox --help.
func InGroup(group string, cmds ...*cobra.Command) []*cobra.Command {
	for _, c := range cmds {
		c.GroupID = group
	}
	return cmds
}
