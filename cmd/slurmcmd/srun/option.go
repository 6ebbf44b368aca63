package srun

import (
	"os/exec"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// own are options that srun has and sbatch has not, by long name; arg says whether
// they take one.
var own = map[string]struct {
	short   byte
	arg     sbatch.Arg
	refused string // what to do instead; "": it has no effect here
}{
	"label":            {'l', sbatch.None, "put the prefix into the command, or use sbatch with srun inside"},
	"pty":              {0, sbatch.Optional, "cox exec JOB -- COMMAND opens a terminal beside a running job"},
	"multi-prog":       {0, sbatch.None, "sbatch with srun --multi-prog inside"},
	"jobid":            {0, sbatch.Required, "cox exec JOB -- COMMAND runs a command beside a running job"},
	"unbuffered":       {'u', sbatch.None, ""},
	"kill-on-bad-exit": {'K', sbatch.Optional, ""},
	"immediate":        {'I', sbatch.Optional, ""},
	"disable-status":   {'X', sbatch.None, ""},
	"wait":             {'W', sbatch.Required, ""},
	"threads":          {'T', sbatch.Required, ""},
	"mpi":              {0, sbatch.Required, ""},
	"cpu-bind":         {0, sbatch.Required, ""},
	"epilog":           {0, sbatch.Required, ""},
	"prolog":           {0, sbatch.Required, ""},
	"task-epilog":      {0, sbatch.Required, ""},
	"task-prolog":      {0, sbatch.Required, ""},
	"slurmd-debug":     {0, sbatch.Required, ""},
	"bcast":            {0, sbatch.Optional, ""},
	"preserve-env":     {'E', sbatch.None, ""},
	"overlap":          {0, sbatch.None, ""},
	"exact":            {0, sbatch.None, ""},
	"whole":            {0, sbatch.None, ""},
}

// line is srun's command line, taken apart.
type line struct {
	options        []string // those that sbatch has too
	command        []string
	quiet          bool
	help, version  bool
	output, errors bool // --output or --error was given
	input          bool
	spread         bool // an option was given that may make more than one task
}

// parse takes the command line apart: options up to the first word that is none.
func parse(args []string) (*line, error) {
	table := sbatch.Table()
	l := &line{}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			l.command = args[i+1:]
			return l, nil
		case a == ":":
			return nil, fault.New(fault.Unsupported, "several components (:) outside of a job are not built yet").Advise("sbatch with srun inside")
		case len(a) < 2 || a[0] != '-':
			l.command = args[i:]
			return l, nil
		}
		name, glued := nameOf(a, table)
		if o, ok := own[name]; ok {
			if o.refused != "" {
				return nil, fault.New(fault.Unsupported, "--%s outside of a job is not built yet", name).Advise("%s", o.refused)
			}
			if o.arg == sbatch.Required && !glued {
				i++
			}
			continue
		}
		l.note(name)
		l.options = append(l.options, a)
		if arg(name, table) == sbatch.Required && !glued && i+1 < len(args) {
			i++
			l.options = append(l.options, args[i])
		}
	}
	return l, nil
}

func (l *line) note(name string) {
	l.spread = l.spread || spreads(name)
	switch name {
	case "quiet":
		l.quiet = true
	case "help", "usage":
		l.help = true
	case "version":
		l.version = true
	case "output":
		l.output = true
	case "error":
		l.errors = true
	case "input":
		l.input = true
	}
}

// spreads reports whether an option may make more than one task, or give tasks what a
// batch script does not get.
func spreads(name string) bool {
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

// single reports whether the command is one task: it then runs as the batch script of
// its job, which starts sooner than a step would.
func (l *line) single() bool { return !l.spread }

// script is the batch script that runs the command in its own place, and a name.
func (l *line) script() (name, text string) {
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

// nameOf is the long name of an option as written, and whether its argument stands in
// the same word.
func nameOf(word string, table []sbatch.Option) (name string, glued bool) {
	if rest, ok := strings.CutPrefix(word, "--"); ok {
		name, _, glued = strings.Cut(rest, "=")
		return name, glued
	}
	for long, o := range own {
		if o.short != 0 && o.short == word[1] {
			return long, len(word) > 2
		}
	}
	for i := range table {
		if table[i].Short != 0 && table[i].Short == word[1] {
			return table[i].Name, len(word) > 2
		}
	}
	return word, false
}

func arg(name string, table []sbatch.Option) sbatch.Arg {
	for i := range table {
		if table[i].Name == name {
			return table[i].Arg
		}
	}
	return sbatch.None
}
