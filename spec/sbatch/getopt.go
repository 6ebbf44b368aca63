package sbatch

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/spec"
)

// Directive is one option as given, in a script, an environment variable or on
// the command line.
type Directive struct {
	Option   string // long name; "ntasks-per-node" also for --tasks-per-node
	Value    string
	HasValue bool
	Plugin   bool   // an option of a known site plugin, not of sbatch
	Raw      string // as written: "-N2", "--nodes 2"
	Line     int    // from 1; 0: not from a script

	opt         *Option // nil for a plugin's
	name, value word    // equal if the value is glued
	valueAt     int     // where Value begins in value.text
}

// Problem is a word that sbatch does not take as an option.
type Problem struct {
	Kind      ProblemKind
	Text      string // the option or word; with =VALUE for UnwantedArgument
	Line, Col int    // from 1
	Detail    string // possibilities of an ambiguous option, or a likely name

	word  word
	index int // of the word in its component
}

// ProblemKind classifies a Problem.
type ProblemKind string

// The kinds of problem.
const (
	UnknownOption    ProblemKind = "unknown option"
	AmbiguousOption  ProblemKind = "ambiguous option"
	MissingArgument  ProblemKind = "missing argument"
	UnwantedArgument ProblemKind = "unwanted argument"
	StrayWord        ProblemKind = "stray word"
	UnmatchedQuote   ProblemKind = "unmatched quote"
	UnexpectedColon  ProblemKind = "unexpected colon"
)

// scanArguments reads an argument list as getopt_long does, except that it goes on after
// problems.
func scanArguments(words []word) (found []Directive, problems []Problem) {
	s := &scanner{words: words, found: make([]Directive, 0, len(words))}
	for s.next = 0; s.next < len(words); {
		w := words[s.next]
		s.at = s.next
		s.next++
		switch {
		case w.text == "--":
			for _, rest := range words[s.next:] {
				s.at++
				s.addProblem(StrayWord, rest.text, rest, "")
			}
			return s.found, s.problems
		case strings.HasPrefix(w.text, "--"):
			s.scanLong(w)
		case len(w.text) > 1 && w.text[0] == '-':
			s.scanShort(w)
		default:
			s.addProblem(StrayWord, w.text, w, "")
		}
	}
	return s.found, s.problems
}

type scanner struct {
	words    []word
	at, next int // the word that is read, the one after it
	found    []Directive
	problems []Problem
}

func (s *scanner) addProblem(kind ProblemKind, text string, w word, detail string) {
	if len(s.problems) == maxProblems {
		return
	}
	s.problems = append(s.problems, Problem{
		Kind: kind, Text: text, Line: w.line, Col: w.col + 1, Detail: detail, word: w, index: s.at,
	})
}

func (s *scanner) addDirective(d Directive) {
	d.Raw, d.Line = d.name.rawText(), d.name.line
	if d.value.src != "" && d.value.col != d.name.col {
		d.Raw += " " + d.value.rawText()
	}
	s.found = append(s.found, d)
}

func (s *scanner) scanLong(w word) {
	name, value, hasValue := strings.Cut(w.text[2:], "=")
	d := Directive{Value: value, HasValue: hasValue, name: w}
	if hasValue {
		d.value, d.valueAt = w, len("--=")+len(name)
	}
	opt, possible := optionByName(name)
	if opt == nil {
		if p := pluginByName(name); p != nil && p.known {
			d.Option, d.Plugin = name, true
			s.takeArgument(d, p.arg)
			return
		}
		kind, detail := UnknownOption, ""
		if len(possible) == 0 && len(s.problems) < maxNearest {
			detail = nearestOption(name)
		}
		if len(possible) > 0 {
			kind, detail = AmbiguousOption, "--"+strings.Join(possible, ", --")
		}
		s.addProblem(kind, "--"+name, w, detail)
		return
	}
	d.Option, d.opt = opt.canonicalName(), opt
	s.takeArgument(d, opt.Arg)
}

// takeArgument takes the argument from the next word where it is due.
func (s *scanner) takeArgument(d Directive, arg Arg) {
	switch {
	case arg == None && d.HasValue:
		s.addProblem(UnwantedArgument, d.name.text, d.name, "")
		d.Value, d.HasValue, d.value = "", false, word{}
	case arg == Required && !d.HasValue:
		if s.next == len(s.words) {
			s.addProblem(MissingArgument, "--"+d.Option, d.name, "")
			return
		}
		d.value = s.words[s.next]
		d.Value, d.HasValue = d.value.text, true
		s.next++
	}
	s.addDirective(d)
}

func (s *scanner) scanShort(w word) {
	for i := 1; i < len(w.text); i++ {
		opt := optionByLetter(w.text[i])
		if opt == nil {
			s.addProblem(UnknownOption, "-"+w.text[i:i+1], w, "")
			continue
		}
		d := Directive{Option: opt.canonicalName(), opt: opt, name: w}
		if opt.Arg != None && i+1 < len(w.text) {
			d.Value, d.HasValue, d.value, d.valueAt = w.text[i+1:], true, w, i+1
			s.addDirective(d)
			return
		}
		s.takeArgument(d, opt.Arg)
	}
}

// nearestOption returns a hint for a name that is no option: the option that was
// probably meant, as "did you mean --nodes?".
func nearestOption(name string) string {
	best, cost := "", 3
	if len(name) < 6 {
		cost = 2
	}
	for i := range table {
		if d := spec.Distance(name, table[i].Name); d < cost {
			best, cost = table[i].Name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean --%s?", best)
}
