package srun

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// line is srun's command line with its environment, taken apart.
type line struct {
	options        []string // those that the server reads
	step           []string // those of the step
	command        []string
	job            string // --jobid: of the job in which the step is to run; empty: a new one
	unused         []*srunopt.Option
	given          map[string]bool // main names of options on the command line
	quiet, verbose bool
	help, version  bool
	testOnly       bool
	terminal       bool          // --pty
	clusters       *string       // value of --clusters, if it was given
	killBad        bool          // --kill-on-bad-exit
	immediate      time.Duration // --immediate; 0: not given
}

// parseLine takes the command line apart: options up to the first word that is none. Variables
// of the environment stand for options that are not on it.
func parseLine(args, environ []string) (*line, error) {
	l := &line{given: make(map[string]bool)}
	if l.job = srunopt.JobOf(args, environ); l.job != "" {
		return l, nil // the step's code reads the options
	}
	if err := l.readOptions(args); err != nil {
		return nil, err
	}
	for _, set := range srunopt.Settings(environ, false) {
		if l.given[set.Option.Name()] || isMemory(set.Option.Name()) && slices.ContainsFunc(memoryOptions, func(o string) bool { return l.given[o] }) {
			continue
		}
		word := "--" + set.Option.Long
		if set.HasValue {
			word += "=" + set.Value
		}
		if err := l.takeOption(set.Option, set.Value, []string{word}); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// memoryOptions exclude each other: one on the command line outranks another's variable.
var memoryOptions = []string{"mem", "mem-per-cpu", "mem-per-gpu"}

func isMemory(option string) bool { return slices.Contains(memoryOptions, option) }

// readOptions reads the words of the command line.
func (l *line) readOptions(args []string) error {
	if slices.Contains(args, ":") {
		return fault.New(fault.Unsupported, "several components (:) outside of a job are not built yet").Advise("sbatch with srun inside")
	}
	scan := getopt.New(srunopt.Table{}, args)
	for {
		it := scan.Next()
		switch it.Kind {
		case getopt.End:
			return nil
		case getopt.Terminator:
			l.command = args[it.Next:]
			return nil
		case getopt.Plain:
			l.command = args[it.Word:]
			return nil
		case getopt.Found:
			opt := &srunopt.All()[it.Index]
			l.given[opt.Name()] = true
			if err := l.takeOption(opt, it.Value, wordsOf(opt, &it)); err != nil {
				return err
			}
		default:
			return &slurmcmd.UsageError{Text: it.Err().Error(), Near: srunopt.NearestTo(&it)}
		}
	}
}

// takeOption enters an option, as the table says. words are how it was written.
func (l *line) takeOption(opt *srunopt.Option, value string, words []string) (err error) {
	name := opt.Name()
	switch opt.Job {
	case srunopt.Refused:
		return fault.New(fault.Unsupported, "--%s outside of a job is not built yet", name).Advise("%s", opt.JobWhy)
	case srunopt.StepOnly:
		return slurmcmd.Textf("--%s option invalid for job allocation request", name)
	case srunopt.Ignored:
		l.unused = append(l.unused, opt)
	}
	if opt.GoesToServer() {
		l.options = append(l.options, words...)
	}
	if opt.GoesToStep() {
		l.step = append(l.step, words...)
	}
	switch name {
	case "quiet":
		l.quiet = true
	case "verbose":
		l.verbose = true
	case "help", "usage":
		l.help = true
	case "pty":
		l.terminal = true
	case "version":
		l.version = true
	case "test-only":
		l.testOnly = true
	case "clusters":
		l.clusters = &value
	case "kill-on-bad-exit":
		l.killBad = value != "0"
	case "immediate":
		l.immediate, err = slurmcmd.ImmediateTime(value)
	}
	return err
}

// wordsOf writes an option anew: its name in full, and its value where it was.
func wordsOf(opt *srunopt.Option, it *getopt.Item) []string {
	word := "--" + opt.Long
	if it.Letter {
		word = "-" + it.Name
	}
	switch {
	case !it.HasValue:
		return []string{word}
	case !it.Glued():
		return []string{word, it.Value}
	case it.Letter:
		return []string{word + it.Value}
	}
	return []string{word + "=" + it.Value}
}
