// Package launcher writes the batch script of a native job that names a launcher: the program that
// starts the ranks of torchrun or MPI, or a cluster of Ray.
//
// The model. A launcher is no feature of an engine. The script reads Slurm's variables, chooses a
// port, and starts one launcher a node, or mpirun, by srun. So it does the same on this machine, in
// pods and on a Slurm cluster, cox show prints it, and cox convert --to sbatch takes it elsewhere.
// The package is pure: it makes text of text.
package launcher

import (
	_ "embed" // the scripts
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Kind names a launcher, as the field launcher has it.
type Kind string

// The launchers.
const (
	Torchrun Kind = "torchrun" // one torchrun on each node
	MPI      Kind = "mpi"      // mpirun, on the first node
	Ray      Kind = "ray"      // a Ray cluster of all nodes, and the driver on the first
)

// Kinds are the launchers, for messages.
func Kinds() []string { return []string{string(Torchrun), string(MPI), string(Ray)} }

// Plan is what a launcher starts.
type Plan struct {
	Kind         Kind
	Line         string   // the command as text; empty: Words
	Words        []string // the command as program and arguments
	RanksPerNode int      // of torchrun; 0: one for each GPU of the node, one without GPUs
	GPUsPerTask  int      // of MPI: each rank sees so many; 0: each sees those of its node
	KeepGoing    bool     // a rank that fails does not end the others
}

//go:embed common.sh
var common string

//go:embed torchrun.sh
var torchrun string

//go:embed mpi.sh
var mpi string

//go:embed ray.sh
var ray string

// Script is the batch script of a plan. It fails with fault.Invalid where the command is none that
// the launcher can start.
func Script(p Plan) (string, error) {
	words := quoteWords(p.Words)
	if p.Line != "" {
		words = strings.TrimSpace(p.Line)
		if mark := findOperator(words); mark != "" {
			return "", fault.New(fault.Invalid, "%s starts one program, and the command has %q", p.Kind, mark).
				Advise("write one program and its arguments, or leave launcher out and write script:")
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/bash\n# Made by Coxswain of launcher: %s (docs/how-to/launchers.md).\n", p.Kind)
	body := mpi
	switch p.Kind {
	case Torchrun:
		body = torchrun
		var err error
		if words, err = torchrunWords(words); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "ranks_per_node=%d # 0: one for each GPU\n", p.RanksPerNode)
	case MPI:
		if first := firstWord(words); first == "mpirun" || first == "mpiexec" {
			return "", startsItself(p.Kind, first)
		}
		fmt.Fprintf(&b, "gpus_per_rank=%d # 0: each rank sees those of its node\n", p.GPUsPerTask)
	case Ray:
		body = ray
		if first := firstWord(words); first == "ray" {
			return "", startsItself(p.Kind, first)
		}
	default:
		return "", fault.New(fault.Invalid, "%q is no launcher", p.Kind).Advise("write %s", strings.Join(Kinds(), " or "))
	}
	kill := 1
	if p.KeepGoing {
		kill = 0
	}
	fmt.Fprintf(&b, "kill_on_bad_exit=%d\ncommand=(%s \"$@\")\n\n%s\n%s", kill, words, common, body)
	return b.String(), nil
}

func startsItself(k Kind, first string) error {
	return fault.New(fault.Invalid, "launcher: %s starts %s itself", k, first).
		Advise("write only the program and its arguments, or leave launcher out")
}

// torchrunWords are torchrun's own arguments for a command: the interpreter is left out, since
// torchrun starts that of its own environment, and a program that is no Python gets --no_python.
func torchrunWords(words string) (string, error) {
	first, rest := cutWord(words)
	if first == "torchrun" {
		return "", startsItself(Torchrun, first)
	}
	if isPython(first) {
		for {
			next, after := cutWord(rest)
			if next != "-u" { // torchrun's ranks are unbuffered
				break
			}
			rest = after
		}
		if next, _ := cutWord(rest); next == "" || strings.HasPrefix(next, "-") && next != "-m" {
			return "", fault.New(fault.Invalid, "torchrun starts a Python file or -m MODULE, and the command is %q", words).
				Advise("write command: train.py ARGUMENTS")
		}
		return rest, nil
	}
	if first == "-m" || strings.HasSuffix(first, ".py") || strings.HasSuffix(first, ".py'") || strings.HasSuffix(first, `.py"`) {
		return words, nil
	}
	return "--no_python " + words, nil
}

func isPython(word string) bool {
	name := word[strings.LastIndexByte(word, '/')+1:]
	rest, ok := strings.CutPrefix(name, "python")
	return ok && strings.Trim(rest, "0123456789.") == ""
}

// cutWord is the first word of a line and the rest; quotes are part of words.
func cutWord(line string) (word, rest string) {
	line = strings.TrimLeft(line, " \t")
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		return line[:i], strings.TrimLeft(line[i:], " \t")
	}
	return line, ""
}

func firstWord(line string) string {
	word, _ := cutWord(line)
	return strings.Trim(word, `'"`)
}

// findOperator is the first character outside of quotes that ends a command in a shell; "" if there
// is none.
func findOperator(line string) string {
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '\n':
			return "a second line"
		case strings.IndexByte(";&|<>()`#", c) >= 0 && (c != '#' || i == 0 || line[i-1] == ' '):
			return string(c)
		}
	}
	if quote != 0 {
		return "an open quote " + string(quote)
	}
	return ""
}

// quoteWords writes words so that a shell reads them back.
func quoteWords(words []string) string {
	var out []string
	for _, w := range words {
		if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+%@") != "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}
