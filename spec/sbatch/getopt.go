package sbatch

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
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
	scan := getopt.NewFunc(options{}, len(words), func(i int) string { return words[i].text })
	for {
		it := scan.Next()
		switch it.Kind {
		case getopt.End:
			return s.found, s.problems
		case getopt.Plain:
			s.addProblem(StrayWord, words[it.Word].text, it.Word, "")
		case getopt.Terminator:
			for i := it.Next; i < len(words); i++ {
				s.addProblem(StrayWord, words[i].text, i, "")
			}
			return s.found, s.problems
		default:
			s.takeOption(&it)
		}
	}
}

type scanner struct {
	words    []word
	found    []Directive
	problems []Problem
}

func (s *scanner) addProblem(kind ProblemKind, text string, at int, detail string) {
	if len(s.problems) == maxProblems {
		return
	}
	w := s.words[at]
	s.problems = append(s.problems, Problem{
		Kind: kind, Text: text, Line: w.line, Col: w.col + 1, Detail: detail, word: w, index: at,
	})
}

func (s *scanner) addDirective(d Directive) {
	d.Raw, d.Line = d.name.rawText(), d.name.line
	if d.value.src != "" && d.value.col != d.name.col {
		d.Raw += " " + d.value.rawText()
	}
	s.found = append(s.found, d)
}

// takeOption enters an option, or the problem with it.
func (s *scanner) takeOption(it *getopt.Item) {
	switch it.Kind {
	case getopt.Unknown:
		if it.Letter {
			s.addProblem(UnknownOption, "-"+it.Name, it.Word, "")
			return
		}
		detail := ""
		if len(s.problems) < maxNearest {
			detail = nearestOption(it.Name)
		}
		s.addProblem(UnknownOption, "--"+it.Name, it.Word, detail)
		return
	case getopt.Ambiguous:
		s.addProblem(AmbiguousOption, "--"+it.Name, it.Word, "--"+strings.Join(it.Possible, ", --"))
		return
	case getopt.Missing:
		s.addProblem(MissingArgument, "--"+it.Option.Canonical(), it.Word, "")
		return
	}
	d := Directive{Option: it.Option.Canonical(), name: s.words[it.Word]}
	if it.Index < len(table) {
		d.opt = &table[it.Index]
	} else {
		d.Plugin = true
	}
	switch {
	case it.Kind == getopt.Unwanted:
		s.addProblem(UnwantedArgument, d.name.text, it.Word, "")
	case it.HasValue:
		d.Value, d.HasValue, d.value, d.valueAt = it.Value, true, s.words[it.Next-1], it.ValueAt
	}
	s.addDirective(d)
}

// nearestOption returns a hint for a name that is no option: the option that was
// probably meant, as "did you mean --nodes?".
func nearestOption(name string) string {
	if near := srunopt.Meant(name, len(table), options{}.Option); near != "" {
		return "did you mean --" + near + "?"
	}
	return ""
}
