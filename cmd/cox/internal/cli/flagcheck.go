package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Annotations of commands that checkWords reads.
const (
	localCommand  = "cox/local"   // asks no server
	programsWords = "cox/program" // its words are those of a program, where empty ones have a meaning
)

// Local marks a command, and those below it, that asks no server: --server is refused there.
func Local(cmd *cobra.Command) *cobra.Command {
	for _, sub := range cmd.Commands() {
		Local(sub)
	}
	return annotate(cmd, localCommand)
}

// IsLocal reports whether a command asks no server.
func IsLocal(cmd *cobra.Command) bool { return cmd.Annotations[localCommand] != "" }

// TakesProgram marks a command whose arguments are the words of a program.
func TakesProgram(cmd *cobra.Command) *cobra.Command { return annotate(cmd, programsWords) }

func annotate(cmd *cobra.Command, name string) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[name] = "true"
	return cmd
}

// emptyAllowed marks flags whose empty value has a meaning.
const emptyAllowed = "cox/empty"

// AllowEmpty marks flags of a command whose empty value has a meaning: a text for people, or
// a field that it clears.
func AllowEmpty(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = cmd.Flags().SetAnnotation(name, emptyAllowed, nil)
	}
}

// AllowsEmpty reports whether a flag's empty value has a meaning.
func AllowsEmpty(f *pflag.Flag) bool {
	_, ok := f.Annotations[emptyAllowed]
	return ok || f.NoOptDefVal != "" && f.NoOptDefVal != WithoutValue
}

// WithoutValue stands for the value of a flag that may go without one and whose empty value is
// refused all the same: pflag.Flag.NoOptDefVal.
const WithoutValue = "\x00"

// checkWords refuses, before any command runs, an empty value where something is named: it
// is nearly always a variable that is not set, and must not count as a flag that was left
// out. It refuses --server where no server is asked.
func checkWords(cmd *cobra.Command, args []string) error {
	if cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd {
		return nil
	}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && isEmptyValue(f) {
			err = fault.New(fault.Invalid, "--%s is empty", f.Name).Advise("give it a value, or leave it out; is a variable not set?")
		}
	})
	switch {
	case err != nil:
		return err
	case IsLocal(cmd) && cmd.Flags().Changed("server"):
		return fault.New(fault.Invalid, "%s asks no server: --server has no meaning here", cmd.CommandPath()).Advise("leave --server out")
	case cmd.Annotations[programsWords] != "":
		return nil
	}
	for i, a := range args {
		if strings.Trim(a, ",") == "" {
			return fault.New(fault.Invalid, "argument %d of %s is empty", i+1, cmd.CommandPath()).Advise("give it a value, or leave it out; is a variable not set?")
		}
	}
	return nil
}

// isEmptyValue reports whether a flag that was given names nothing, or one of the entries of
// its list does.
func isEmptyValue(f *pflag.Flag) bool {
	if AllowsEmpty(f) {
		return false
	}
	list, isList := f.Value.(pflag.SliceValue)
	if !isList {
		return f.Value.Type() == "string" && f.Value.String() == ""
	}
	entries := list.GetSlice()
	for _, e := range entries {
		if e == "" {
			return true
		}
	}
	return len(entries) == 0
}
