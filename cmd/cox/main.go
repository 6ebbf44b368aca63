// Command cox is Coxswain: one control plane for GPU work. This package is wiring
// only, one file per subcommand; what the commands do stands in packages of its
// own: show makes the text, api/client asks the server.
//
// The binary answers to several names. As srun or scontrol it is the command that
// a job's script calls; with a hidden first argument it is the supervisor of a node
// or a held task. These paths touch nothing that costs start-up time.
//
// The commands that ask a server build on every system that Go knows; what runs or
// serves work needs Linux (names_linux.go, names_other.go).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec"
)

func main() { os.Exit(dispatch(os.Args)) }

// dispatch chooses by the name under which the binary was called.
func dispatch(argv []string) int {
	if code, ok := byName(argv); ok {
		return code
	}
	a := newApp()
	return a.execute(context.Background(), argv[1:])
}

// execute runs one command and returns its exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	if err := root.ExecuteContext(ctx); err != nil {
		return a.complain(err)
	}
	return a.code
}

// The groups of cox --help, in its order.
const (
	groupWork   = "work"
	groupAsk    = "ask"
	groupChange = "change"
	groupNodes  = "nodes"
	groupServer = "server"
	groupFiles  = "files"
)

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "cox",
		Short: "One control plane for GPU work: the whole crew starts, or nobody",
		Long: `Coxswain takes the file that you have (an sbatch script, native YAML or JSON), starts
its whole gang or nobody, and says at any moment why something waits.

cox run needs nothing else. All other commands talk to a server: the one of this
machine (cox up), or the one that COX_SERVER names.

Exit codes: 0 success; a job's own code from run, wait, exec and submit --wait; 2 a
request that is wrong; 3 no such thing; 4 a conflict; 75 no answer; 77 no permission;
70 a defect. All of them: docs/exit-codes.md.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fault.New(fault.Invalid, "%w", err).Advise("%s --help lists what there is", cmd.CommandPath())
	})
	root.PersistentFlags().StringVar(&a.server, "server", "", "the server: unix:///path, http://host:port (default: COX_SERVER, then this machine's)")
	root.PersistentFlags().BoolVar(&a.noColour, "no-color", false, "no colours on a terminal (also: NO_COLOR)")
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Work:"}, &cobra.Group{ID: groupAsk, Title: "Ask:"},
		&cobra.Group{ID: groupChange, Title: "Change:"}, &cobra.Group{ID: groupNodes, Title: "Nodes:"},
		&cobra.Group{ID: groupServer, Title: "Server:"}, &cobra.Group{ID: groupFiles, Title: "Files and tools:"},
	)
	root.SetHelpCommandGroupID(groupFiles)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupWork, a.runCommand(), a.submitCommand(), a.waitCommand(), a.execCommand(), a.logsCommand())
	add(groupAsk, a.queueCommand(), a.showCommand(), a.whyCommand(), a.priorityCommand(), a.sharesCommand(), a.quotaCommand(), a.whatIfCommand(), a.watchCommand(), a.historyCommand(), a.topCommand())
	add(groupChange, a.cancelCommand(), a.holdCommand(), a.releaseCommand(), a.requeueCommand(), a.suspendCommand(), a.resumeCommand(), a.savedCommand(), a.signalCommand(), a.updateCommand())
	add(groupNodes, a.nodesCommand(), a.nodeCommand(), a.poolCommand(), a.verifyCommand(), a.partitionsCommand(), a.licensesCommand(), a.defragCommand())
	add(groupServer, a.upCommand(), downCommand(), configCommand(), a.backupCommand(), a.restoreCommand(), a.snapshotCommand(), replayCommand(), a.infoCommand(), a.pingCommand(), a.tokenCommand(), a.auditCommand(), a.applyCommand(), a.policyCommand(), a.importCommand(), a.reserveCommand())
	add(groupFiles, a.adviseCommand(), a.convertCommand(), a.simulateCommand(), a.installNamesCommand(), completionCommand(root), a.versionCommand())
	return root
}

// complain prints an error as people want to read it and returns the exit code. Of
// several errors each is printed, and the first decides the code.
func (a *app) complain(err error) int {
	what := ""
	var u *undone
	if errors.As(err, &u) {
		what, err = u.what, u.error
	}
	all := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok && fault.KindOf(err) != fault.Internal {
		all = several.Unwrap()
	}
	remedy, code := "", 0
	for i, e := range all {
		kind := a.complainOf(e, &remedy)
		if i == 0 {
			code = kind.ExitCode()
		}
		var located *spec.Error
		if what == "" && errors.As(e, &located) {
			what = "not submitted"
		}
		if what != "" && i == len(all)-1 {
			fmt.Fprintf(a.err, "%-60s exit %d (%s)\n", what, code, kind)
		}
	}
	return code
}

// complainOf prints one error, and its remedy unless it was printed just before.
func (a *app) complainOf(err error, before *string) fault.Kind {
	kind := fault.KindOf(err)
	if kind == fault.Internal && isUsage(err) {
		kind = fault.Invalid
	}
	var located *spec.Error
	var answer *api.Error
	switch {
	case errors.As(err, &located):
		fmt.Fprintf(a.err, "%v\n", located)
		return kind
	case errors.As(err, &answer) && len(answer.Errors) > 0:
		io.WriteString(a.err, printer.Problem(a.page(a.err), answer))
		return kind
	}
	fmt.Fprintf(a.err, "cox: %s\n", printer.CleanLines(err.Error()))
	if remedy := a.remedy(err, kind); remedy != "" && remedy != *before {
		fmt.Fprintf(a.err, "  %s\n", printer.CleanLines(remedy))
		*before = remedy
	}
	return kind
}

func (a *app) remedy(err error, kind fault.Kind) string {
	remedy := fault.Remedy(err)
	if remedy == "" && kind == fault.Exhausted {
		remedy = "make room there, or set TMPDIR or --state-dir to a folder on another disk"
	}
	return remedy
}

// undone marks an error after which what was asked for has not happened.
type undone struct {
	error
	what string // "not submitted"
}

func (e *undone) Unwrap() error { return e.error }

// isUsage recognises cobra's own complaints about arguments, which have no type.
func isUsage(err error) bool {
	for _, text := range []string{"unknown command", "accepts ", "requires at least", "unknown flag", "required flag"} {
		if strings.HasPrefix(err.Error(), text) {
			return true
		}
	}
	return false
}
