package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/tunnel"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func contextCommand(a *cli.App) *cobra.Command {
	list := contextListCommand(a)
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Give servers names, and choose the one that commands ask",
		Long: `A context is a server with a name. Every command asks the current one, unless
--server or COX_SERVER names another; both take a context or an address.
cox context alone lists them.

ssh://HOST is the server of another machine. cox makes the tunnel itself, with this
machine's ssh, its configuration and its keys. There you are the user that you log
in as.

Contexts are stored in ~/.config/coxswain/contexts, which only you can read.`,
		Example: `  cox context add lab ssh://login1
  cox context use lab
  cox queue                       # of lab
  cox queue --server prod         # of another context
  cox context`,
		Args: cobra.NoArgs,
		RunE: list.RunE,
	}
	cmd.AddCommand(list, contextAddCommand(a), contextUseCommand(a), contextRemoveCommand(a))
	return cli.Local(cmd)
}

// contextEnvironment is where contexts are kept.
func contextEnvironment(a *cli.App) address.Env {
	e := address.System()
	e.Getenv = a.Getenv
	return e
}

func contextListCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use: "list", Short: "List the servers with names; a star marks the current one", Args: cobra.NoArgs,
		Example: "  cox context list\n  cox context list -o json",
		RunE: func(*cobra.Command, []string) error {
			list, err := contextEnvironment(a).Contexts()
			if err != nil {
				return err
			}
			var names []string
			for _, c := range list {
				names = append(names, c.Name)
			}
			switch {
			case f.IsData():
				return a.WriteData(f, list)
			case f == cli.AsName:
				return a.WriteNames(names)
			case len(list) == 0:
				fmt.Fprintln(a.Err, "no contexts          cox context add NAME SERVER makes one")
				return nil
			}
			t := &printer.Table{Columns: []printer.Column{{Title: "NAME"}, {Title: "SERVER"}}}
			for _, c := range list {
				name := c.Name
				if c.Current {
					name += "*"
				}
				t.Rows = append(t.Rows, []printer.Cell{{Text: name, Tone: printer.Accent}, {Text: c.Server}})
			}
			return t.Write(a.Out, a.Page(a.Out))
		},
	}
	a.ListFlags(cmd, &f, false)
	return cmd
}

func contextAddCommand(a *cli.App) *cobra.Command {
	var token string
	var use bool
	cmd := &cobra.Command{
		Use: "add NAME SERVER", Short: "Name a server",
		Long: `Names a server, or changes the server of a name. SERVER is
ssh://[USER@]HOST[:PORT], unix:///path, http://host:port or https://host.
The first context becomes the current one.`,
		Example: `  cox context add lab ssh://login1
  cox context add lab ssh://anna@login1:2222/srv/cox/cox.sock
  cox context add prod https://cox.example.org --token "$TOKEN" --use`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fault.New(fault.Invalid, "a context has a name and a server").Advise("cox context add lab ssh://login1")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			name, server := args[0], args[1]
			if !address.ValidContextName(name) {
				return fault.New(fault.Invalid, "%q is no name of a context", name).Advise("use letters, digits, - and _, as in lab-2")
			}
			if strings.ContainsAny(server+token, "\t\n") {
				return fault.New(fault.Invalid, "a tab or the end of a line is in the server or the token").Advise("write each without")
			}
			at, err := address.Parse(server)
			if err == nil && at.SSH != "" {
				_, err = tunnel.Parse(server)
			}
			if err != nil {
				return err
			}
			e := contextEnvironment(a)
			list, err := e.Contexts()
			if err != nil {
				return err
			}
			c := address.Context{Name: name, Server: server, Token: token, Current: use || len(list) == 0}
			if i := indexOfContext(list, name); i >= 0 {
				c.Current = c.Current || list[i].Current
				list = slices.Delete(list, i, i+1)
			}
			if c.Current {
				clearCurrent(list)
			}
			if err := e.SaveContexts(append(list, c)); err != nil {
				return err
			}
			said := ""
			if c.Current {
				said = ", which commands ask now"
			}
			_, err = fmt.Fprintf(a.Out, "%s is %s%s\n", name, server, said)
			return err
		},
	}
	cmd.Flags().StringVar(&token, "token", "", "`TOKEN` for a server over HTTP (cox token create, there)")
	cmd.Flags().BoolVar(&use, "use", false, "make it the current one")
	return cmd
}

func contextUseCommand(a *cli.App) *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use: "use NAME", Short: "Choose the server that commands ask",
		Long: `Makes a context the current one. With --none commands ask this machine's own
server again.`,
		Example:           "  cox context use lab\n  cox context use --none",
		ValidArgsFunction: completeContexts(a),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && !none || none && len(args) > 0 {
				return fault.New(fault.Invalid, "which context?").Advise("cox context use NAME, or --none; cox context lists them")
			}
			e := contextEnvironment(a)
			list, err := e.Contexts()
			if err != nil {
				return err
			}
			clearCurrent(list)
			said := "commands ask this machine's own server"
			if !none {
				i := indexOfContext(list, args[0])
				if i < 0 {
					return refuseContext(args[0])
				}
				list[i].Current = true
				said = fmt.Sprintf("commands ask %s, %s", list[i].Name, list[i].Server)
			}
			if err := e.SaveContexts(list); err != nil {
				return err
			}
			if given := a.Getenv("COX_SERVER"); given != "" {
				said += ", but here COX_SERVER says " + given
			}
			_, err = fmt.Fprintln(a.Out, said)
			return err
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "no context: this machine's own server")
	return cmd
}

func contextRemoveCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Forget the name of a server",
		Example:           "  cox context remove lab",
		ValidArgsFunction: completeContexts(a),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fault.New(fault.Invalid, "which context?").Advise("cox context lists them")
			}
			e := contextEnvironment(a)
			list, err := e.Contexts()
			if err != nil {
				return err
			}
			i := indexOfContext(list, args[0])
			if i < 0 {
				return refuseContext(args[0])
			}
			if err := e.SaveContexts(slices.Delete(list, i, i+1)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "removed %s\n", args[0])
			return err
		},
	}
}

func refuseContext(name string) error {
	return fault.New(fault.NotFound, "there is no context %s", name).Advise("cox context lists them; cox context add %s SERVER makes it", name)
}

func indexOfContext(list []address.Context, name string) int {
	return slices.IndexFunc(list, func(c address.Context) bool { return c.Name == name })
}

func clearCurrent(list []address.Context) {
	for i := range list {
		list[i].Current = false
	}
}

func completeContexts(a *cli.App) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var words []string
		if list, err := contextEnvironment(a).Contexts(); err == nil && len(args) == 0 {
			for _, c := range list {
				words = append(words, c.Name+"\t"+c.Server)
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
