package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec"
)

// Execute runs one command of cox and returns its exit code.
func (a *App) Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	explainArguments(root)
	if err := missingCommand(root, args); err != nil {
		return a.printErrors(err)
	}
	if err := root.ExecuteContext(ctx); err != nil {
		return a.printErrors(err)
	}
	return a.Code
}

// printErrors prints an error as people want to read it and returns the exit code. Of
// several errors each is printed, and the first decides the code.
func (a *App) printErrors(err error) int {
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
		kind := a.printError(e, &remedy)
		if i == 0 {
			code = kind.ExitCode()
		}
		var located *spec.Error
		if what == "" && errors.As(e, &located) {
			what = "not submitted"
		}
		if what != "" && i == len(all)-1 {
			fmt.Fprintf(a.Err, "%-60s exit %d (%s)\n", what, code, kind)
		}
	}
	return code
}

// printError prints one error, and its remedy unless it was printed just before.
func (a *App) printError(err error, before *string) fault.Kind {
	kind := fault.KindOf(err)
	if kind == fault.Internal && isUsageError(err) {
		kind = fault.Invalid
	}
	var located *spec.Error
	var answer *api.Error
	switch {
	case errors.As(err, &located):
		fmt.Fprintf(a.Err, "%v\n", located)
		return kind
	case errors.As(err, &answer) && len(answer.Errors) > 0:
		io.WriteString(a.Err, printer.Problem(a.Page(a.Err), answer))
		return kind
	}
	text := printer.CleanLines(err.Error())
	if !strings.HasPrefix(text, "cox ") { // it begins with the command already
		text = "cox: " + text
	}
	fmt.Fprintf(a.Err, "%s\n", text)
	if remedy := a.remedyOf(err, kind); remedy != "" && remedy != *before {
		fmt.Fprintf(a.Err, "  %s\n", printer.CleanLines(remedy))
		*before = remedy
	}
	return kind
}

func (a *App) remedyOf(err error, kind fault.Kind) string {
	remedy := fault.Remedy(err)
	if remedy == "" && kind == fault.Exhausted {
		remedy = "make room there, or set TMPDIR or --state-dir to a folder on another disk"
	}
	return remedy
}

// undone is an error with what has not happened because of it.
type undone struct {
	error
	what string // "not submitted"
}

func (e *undone) Unwrap() error { return e.error }

// isUsageError recognises cobra's own complaints about arguments, which have no type.
func isUsageError(err error) bool {
	for _, text := range []string{"unknown command", "accepts ", "requires at least", "unknown flag", "required flag"} {
		if strings.HasPrefix(err.Error(), text) {
			return true
		}
	}
	return false
}

// NotDone adds to an error what has not happened because of it: "not submitted".
func NotDone(err error, what string) error { return &undone{err, what} }
