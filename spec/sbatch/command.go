package sbatch

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/spec"
)

// CommandOptions are what is asked of the sbatch command and not of the job.
type CommandOptions struct {
	Parsable bool // print the job's number alone
	TestOnly bool // check the job and say when it could start, submit nothing
	Wait     bool // stay until the job has ended, and end with its exit code
	Quiet    bool // print errors alone
	Verbose  int  // how often -v was given
	Clusters []string

	Help, Usage, Version bool

	Wrapped bool   // --wrap was given
	Wrap    string // the command of --wrap
}

// CommandLine is sbatch's own command line, taken apart.
type CommandLine struct {
	Options []string // for Options.Args
	Script  []string // the script's name and its arguments; empty: the script is standard input
	CommandOptions
}

// Command takes sbatch's command line apart: its options up to the first word that
// is none, and the script's name and arguments. environ is looked through for the
// SBATCH_* variables that concern the command. What the script's lines ask of the
// command is known when the script is read: Result.Command has all of it.
//
// Unknown options are left to Parse to report. The error is for what is wrong with
// the command line itself.
func Command(args, environ []string) (CommandLine, error) {
	var c CommandLine
	n := countOptions(args)
	c.Options, c.Script = args[:n], args[n:]
	if n > 0 && args[n-1] == "--" {
		c.Options = args[:n-1]
	}
	env, _ := fromEnvironment(environ)
	for i := range env {
		c.noteOption(&env[i])
	}
	components, _ := fromArgs(c.Options)
	for _, list := range components {
		for i := range list {
			c.noteOption(&list[i])
		}
	}
	if c.Wrapped && len(c.Script) > 0 {
		return c, &spec.Error{
			File: commandLine, Message: "--wrap and a script exclude each other: " + c.Script[0],
			Remedy: "put the script into the command, --wrap='sh " + c.Script[0] + "', or leave --wrap out",
		}
	}
	return c, nil
}

// countOptions is how many of the arguments belong to sbatch: those before the first
// word that is neither an option nor an option's argument nor the ":" between
// components. "--" counts.
func countOptions(args []string) int {
	scan := getopt.New(options{}, args)
	for {
		it := scan.Next()
		switch it.Kind {
		case getopt.End, getopt.Terminator:
			return it.Next
		case getopt.Plain:
			if args[it.Word] != ":" {
				return it.Word
			}
		}
	}
}

// noteOption notes an option that concerns the command. Only --parsable, --test-only and
// --wait also count in a script, as in sbatch.
func (c *CommandOptions) noteOption(d *Directive) {
	if d.Plugin || !d.opt.Command {
		return
	}
	switch d.Option {
	case "parsable":
		c.Parsable = true
	case "test-only":
		c.TestOnly = true
	case "wait":
		c.Wait = true
	case "clusters":
		c.Clusters = strings.FieldsFunc(d.Value, func(r rune) bool { return r == ',' })
	}
	if d.Line > 0 {
		return
	}
	switch d.Option {
	case "quiet":
		c.Quiet = true
	case "verbose":
		c.Verbose++
	case "help":
		c.Help = true
	case "usage":
		c.Usage = true
	case "version":
		c.Version = true
	case "wrap":
		c.Wrapped, c.Wrap = true, d.Value
	}
}
