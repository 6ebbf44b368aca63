package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Group makes a command do nothing but name the commands below it: one of them is required.
func Group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fault.New(fault.Invalid, "%s needs a command: %s", cmd.CommandPath(), joinOr(commandNames(cmd))).Advise("%s", firstExample(cmd))
		}
		return unknownCommand(cmd, args[0])
	}
	return cmd
}

// missingCommand is the error about a first word that is no command of cox; nil: it is one.
func missingCommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	if len(args) == 0 || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, cobra.ShellCompRequestCmd) }) {
		return nil
	}
	if _, _, err := root.Find(args); err == nil {
		return nil
	}
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "--")
		if !isFlag && !strings.HasPrefix(args[i], "-") {
			return unknownCommand(root, args[i])
		}
		if f := root.PersistentFlags().Lookup(name); f != nil && f.NoOptDefVal == "" {
			i++ // its value
		}
	}
	return nil
}

// commandNames are the names of the commands below one.
func commandNames(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// otherNames are words by which people look for a command of cox, as other systems call it.
var otherNames = map[string]string{
	"ls": "queue", "list": "queue", "ps": "queue", "jobs": "queue", "squeue": "queue", "get": "queue", "stat": "queue", "status": "queue",
	"describe": "show", "inspect": "show", "scontrol": "show", "sinfo": "nodes", "sacct": "history", "log": "logs", "tail": "logs",
	"kill": "cancel", "stop": "cancel", "rm": "cancel", "delete": "cancel", "del": "cancel", "scancel": "cancel",
	"sbatch": "submit", "launch": "submit", "start": "submit", "create": "submit", "qsub": "submit", "srun": "run",
	"attach": "shell", "ssh": "shell", "port-forward": "forward", "tunnel": "forward", "notebook": "jupyter", "login": "token", "restart": "requeue", "retry": "requeue", "explain": "why",
	"server": "up", "serve": "up", "stats": "top", "monitor": "top", "sprio": "priority", "sshare": "shares", "cordon": "node drain", "drain": "node drain", "uncordon": "node resume",
}

// unknownCommand is the error about a command that is not there, with the one that is meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	e := fault.New(fault.Invalid, "%s has no command %q", cmd.CommandPath(), name)
	list := cmd.CommandPath() + " --help lists its commands"
	if near := nearCommand(cmd, name); near != "" {
		return e.Advise("did you mean %s %s? %s", cmd.CommandPath(), near, list)
	}
	if cmd.HasParent() {
		return e.Advise("it has %s", joinAnd(commandNames(cmd)))
	}
	return e.Advise("%s", list)
}

// nearCommand is the command that a word stands for, or whose name it nearly is.
func nearCommand(cmd *cobra.Command, name string) string {
	if near := otherNames[strings.ToLower(name)]; near != "" && !cmd.HasParent() {
		return near
	}
	if len(name) < 3 {
		return ""
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return near[0]
	}
	return ""
}

// argumentHint is the annotation of a command with what to type instead of an argument.
const argumentHint = "cox/hint"

// HintArgument has a command that takes no arguments say what to type instead of one; %s is the argument.
func HintArgument(cmd *cobra.Command, hint string) {
	annotate(cmd, argumentHint)
	cmd.Annotations[argumentHint] = hint
}

// explainArguments has the errors of cobra about arguments say what the command takes, for all commands below one.
func explainArguments(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		explainArguments(sub)
	}
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil || fault.KindOf(err) != fault.Internal {
			return err
		}
		return wrongArguments(cmd, args)
	}
}

// wrongArguments is the error about too many or too few arguments.
func wrongArguments(cmd *cobra.Command, args []string) error {
	_, takes, _ := strings.Cut(cmd.Use, " ")
	path := cmd.CommandPath()
	switch {
	case len(args) == 0:
		return fault.New(fault.Invalid, "%s needs %s", path, takes).Advise("%s", firstExample(cmd))
	case takes == "" || strings.HasPrefix(takes, "-") || strings.HasPrefix(takes, ">"):
		hint := path + " --help lists its options"
		if takes != "" {
			hint = firstExample(cmd)
		}
		if h := cmd.Annotations[argumentHint]; h != "" {
			hint = fmt.Sprintf(h, args[0])
		}
		if cmd.HasSubCommands() {
			return fault.New(fault.Invalid, "%s has no command %q", path, args[0]).Advise("%s", hint)
		}
		return fault.New(fault.Invalid, "%s takes no argument, but got %q", path, args[0]).Advise("%s", hint)
	}
	return fault.New(fault.Invalid, "%s takes %s and nothing more, but got %q too", path, takes, args[len(args)-1]).Advise("%s", firstExample(cmd))
}

// firstExample is the first line of a command's examples, or how its help is called.
func firstExample(cmd *cobra.Command) string {
	line, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	line, _, _ = strings.Cut(line, "   ") // what follows is a comment
	if line == "" {
		return cmd.CommandPath() + " --help says how it is called"
	}
	return "for example: " + line
}

// flagMessage says what is wrong with an option, in words for people.
func flagMessage(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var wrong *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		dashes := "--"
		if unknown.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		return fmt.Sprintf("%s has no option %s%s", cmd.CommandPath(), dashes, unknown.GetSpecifiedName())
	case errors.As(err, &empty):
		return fmt.Sprintf("--%s needs a value", empty.GetFlag().Name)
	case errors.As(err, &wrong):
		colon := ":"
		if wrong.GetFlag().Value.Type() == (*durationValue)(nil).Type() { // its error goes on with the sentence
			colon = ""
		}
		return fmt.Sprintf("--%s=%s%s %s", wrong.GetFlag().Name, wrong.GetValue(), colon, valueMessage(wrong))
	}
	return err.Error()
}

// valueMessage says what the value of an option has to be.
func valueMessage(wrong *pflag.InvalidValueError) string {
	switch kind := wrong.GetFlag().Value.Type(); {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"), kind == "count":
		return "this is not a whole number"
	case strings.HasPrefix(kind, "float"):
		return "this is not a number"
	case kind == "bool":
		return "this is neither true nor false"
	case kind == "duration":
		return "this is not a length of time such as 30s, 10m or 4h"
	}
	return wrong.Unwrap().Error()
}

// joinOr lists words: "a, b or c".
func joinOr(words []string) string { return joinWith(words, " or ") }

// joinAnd lists words: "a, b and c".
func joinAnd(words []string) string { return joinWith(words, " and ") }

func joinWith(words []string, last string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + last + words[n-1]
	}
	return strings.Join(words, "")
}
