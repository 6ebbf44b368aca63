package srun

import (
	"os/exec"
	"strings"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// line is srun's command line, taken apart.
type line struct {
	options        []string // those that the server reads
	command        []string
	unused         []*srunopt.Option
	quiet          bool
	help, version  bool
	testOnly       bool
	output, errors bool // --output or --error was given
	input          bool
	clusters       *string // value of --clusters, if it was given
	spread         bool    // an option was given that may make more than one task
}

// parseLine takes the command line apart: options up to the first word that is none.
func parseLine(args []string) (*line, error) {
	l := &line{}
	scan := getopt.New(srunopt.Table{}, args)
	for {
		it := scan.Next()
		switch it.Kind {
		case getopt.End:
			return l, nil
		case getopt.Terminator:
			l.command = args[it.Next:]
			return l, nil
		case getopt.Plain:
			if args[it.Word] == ":" {
				return nil, fault.New(fault.Unsupported, "several components (:) outside of a job are not built yet").Advise("sbatch with srun inside")
			}
			l.command = args[it.Word:]
			return l, nil
		case getopt.Found:
			if err := l.takeOption(&srunopt.All()[it.Index], &it); err != nil {
				return nil, err
			}
		default:
			return nil, &slurmcmd.UsageError{Text: it.Err().Error(), Near: srunopt.NearestTo(&it)}
		}
	}
}

// takeOption enters an option, as the table says.
func (l *line) takeOption(opt *srunopt.Option, it *getopt.Item) error {
	name := opt.Name()
	switch opt.Job {
	case srunopt.Refused:
		return fault.New(fault.Unsupported, "--%s outside of a job is not built yet", name).Advise("%s", opt.JobWhy)
	case srunopt.StepOnly:
		return slurmcmd.Textf("--%s option invalid for job allocation request", name)
	case srunopt.Ignored:
		l.unused = append(l.unused, opt)
	case srunopt.Submitted:
		l.options = append(l.options, wordsOf(opt, it)...)
		l.spread = l.spread || mayMakeTasks(name)
	}
	switch name {
	case "quiet":
		l.quiet = true
	case "help", "usage":
		l.help = true
	case "version":
		l.version = true
	case "test-only":
		l.testOnly = true
	case "output":
		l.output = true
	case "error":
		l.errors = true
	case "input":
		l.input = true
	case "clusters":
		l.clusters = &it.Value
	}
	return nil
}

// wordsOf writes an option for the server, which reads it as one of sbatch's: its name
// in full, and its value where it was.
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

// mayMakeTasks reports whether an option may make more than one task, or give tasks what a
// batch script does not get.
func mayMakeTasks(name string) bool {
	switch name {
	case "cpus-per-task", "mem-per-cpu", "cpus-per-gpu", "mem-per-gpu":
		return false
	}
	for _, part := range []string{"node", "task", "per-", "distribution", "overcommit", "bind", "switches", "hint", "contiguous"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// isSingleTask reports whether the command is one task: it then runs as the batch script of
// its job, which starts sooner than a step would.
func (l *line) isSingleTask() bool { return !l.spread }

// batchScript is the batch script that runs the command in its own place, and a name.
func (l *line) batchScript() (name, text string) {
	name = l.command[0]
	if at, err := exec.LookPath(name); err == nil {
		name = at
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\nexec")
	for _, w := range l.command {
		b.WriteString(" '" + strings.ReplaceAll(w, "'", `'\''`) + "'")
	}
	b.WriteByte('\n')
	return name, b.String()
}
