package sbatch

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/input"
)

// MaxScript is the size that a batch script may have, in bytes; sbatch has the
// same limit.
const MaxScript = 4 << 20

const magic = "#SBATCH"

// Bounds of what a script may make of itself.
const (
	maxComponents = 128  // of a heterogeneous job, as in Slurm
	maxProblems   = 1000 // that are told apart in one component
	maxNearest    = 20   // for which the likely name is looked for
	maxWarnings   = 200  // that are shown
	maxForeign    = 8    // lines of other batch systems that are named
	maxKinds      = 256  // of generic resources or types of GPU in one option
)

// Script is a batch script as sbatch reads it. Values are not checked yet.
type Script struct {
	Name       string
	Shebang    string        // the first line
	Components [][]Directive // at least one; more for a heterogeneous job
	Problems   []Problem     // in order of appearance
	Warnings   []spec.Warning
	Lines      [2]int // first and last line with a directive, 0 if there is none

	foreign []foreignLine
}

// foreignLine is a directive for another scheduler.
type foreignLine struct {
	magic string
	line  int
	text  string
}

// Read applies sbatch's rules to a script. The error is for a text that is no
// batch script at all: empty, too large, binary, without "#!" on its first line,
// or with DOS line ends. Words that sbatch would not take are Problems.
func Read(src spec.Source) (*Script, error) {
	if err := checkText(src); err != nil {
		return nil, err
	}
	return readLines(src), nil
}

// checkText returns an error for what is no batch script.
func checkText(src spec.Source) error {
	fail := func(line int, remedy, message string, args ...any) error {
		return &spec.Error{File: src.Name, Line: line, Message: fmt.Sprintf(message, args...), Remedy: remedy}
	}
	data := src.Data
	lineOf := func(at int) int { return 1 + bytes.Count(data[:at], []byte("\n")) }
	switch {
	case len(data) > MaxScript:
		return fail(0, "keep data in files of their own and read them from the script",
			"a batch script may have %d MiB, this has %.1f", MaxScript>>20, float64(len(data))/(1<<20))
	case len(data) == 0:
		return fail(0, "a batch script begins with #!/bin/sh or the like", "the batch script is empty")
	case bytes.HasPrefix(data, []byte("\x7fELF")):
		return fail(0, "to run a program: cox run -- PROGRAM", "this is a program, not a batch script")
	case len(bytes.TrimSpace(data)) == 0:
		return fail(0, "a batch script begins with #!/bin/sh or the like", "the batch script has only white space")
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return fail(lineOf(i), "", "the batch script has a NUL character: it is a binary file")
	}
	first, _, _ := bytes.Cut(data, []byte("\n"))
	if !bytes.HasPrefix(first, []byte("#!")) {
		message := "this does not look like a batch script: the first line has to start with #! and the path of an interpreter"
		if bytes.HasPrefix(first, []byte("\xef\xbb\xbf#!")) {
			message = "an invisible byte order mark stands before the #! of the first line"
		}
		line := string(first[:min(len(first), 200)])
		return &spec.Error{
			File: src.Name, Line: 1, Col: 1, Len: min(len(line), 2), Text: line,
			Message: message, Remedy: "make the first line: #!/bin/sh",
		}
	}
	if i := bytes.Index(data, []byte("\r\n")); i >= 0 {
		n := bytes.Count(data, []byte("\r\n"))
		name := src.Name
		if name == "" || name == "-" {
			name = "FILE"
		}
		return fail(lineOf(i), fmt.Sprintf(`sed -i 's/\r$//' %s makes them UNIX line ends`, name),
			"the batch script has DOS line ends (\\r\\n) on %s", pluralOf(n, "line"))
	}
	return nil
}

func pluralOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// readLines collects the words of each component and reads them as options.
func readLines(src spec.Source) *Script {
	s := &Script{Name: src.Name}
	words := make([]word, 0, 32)
	finish := func() {
		found, problems := scanArguments(words)
		s.Components = append(s.Components, found)
		s.Problems = append(s.Problems, problems...)
		words = words[:0]
	}
	header, number := headerOf(src.Data), 0
	rest := string(src.Data[:header])
	var kept strings.Builder // values are parts of it: nothing else of the script stays in memory
	kept.Grow(sizeOfDirectives(rest))
	for rest != "" {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		number++
		if number == 1 {
			s.Shebang = line
		}
		if !strings.HasPrefix(line, magic) {
			s.lookAt(line, number)
			continue
		}
		if s.Lines[0] == 0 {
			s.Lines[0] = number
		}
		s.Lines[1] = number
		from := kept.Len()
		kept.WriteString(line)
		line = kept.String()[from:]
		var ended bool
		if words, ended = s.splitDirective(words, line, number); ended {
			finish()
		}
	}
	finish()
	if header < len(src.Data) {
		s.warnLate(src.Data[header:], number)
	}
	return s
}

// sizeOfDirectives is how many bytes the directives of a header have.
func sizeOfDirectives(header string) int {
	n := 0
	for header != "" {
		var line string
		line, header, _ = strings.Cut(header, "\n")
		if strings.HasPrefix(line, magic) {
			n += len(line)
		}
	}
	return n
}

// headerOf is how many bytes of a script stand before its first command, whole
// lines.
func headerOf(data []byte) int {
	at := 0
	for at < len(data) {
		end := bytes.IndexByte(data[at:], '\n') + 1
		if end == 0 {
			end = len(data) - at
		}
		if line := bytes.TrimLeft(data[at:at+end], " \t\n\v\f\r"); len(line) > 0 && line[0] != '#' {
			return at
		}
		at += end
	}
	return at
}

// splitDirective cuts a directive into words; ended is true if it closes the component.
func (s *Script) splitDirective(words []word, line string, number int) (all []word, ended bool) {
	sp := splitter{file: s.Name, src: line, line: number, pos: len(magic)}
	words, why := sp.splitWords(words)
	if why == lineEnd {
		return words, false
	}
	here := word{file: s.Name, src: line, line: number, col: sp.pos, end: max(sp.pos, len(strings.TrimRight(line, " \t")))}
	here.text = line[sp.pos:here.end]
	problem := func(kind ProblemKind) {
		s.Problems = append(s.Problems, Problem{Kind: kind, Text: here.text, Line: number, Col: sp.pos + 1, word: here})
	}
	switch why {
	case component:
		return words, true
	case badQuote:
		problem(UnmatchedQuote)
	case badColon:
		problem(UnexpectedColon)
	case late:
		s.addWarning(number, "", "a component ends only where its word is the first of a line, and behind others it ends the line, as it does for sbatch: not read: "+here.text)
	case empty:
		s.addWarning(number, "", "an empty argument ends the line, as it does for sbatch: not read: "+here.text)
	}
	return words, false
}

func (s *Script) addWarning(line int, option, message string) {
	s.Warnings = append(s.Warnings, spec.Warning{File: s.Name, Line: line, Option: option, Message: message})
}

// lookAt notes comments that look like directives and are none.
func (s *Script) lookAt(line string, number int) {
	if m := input.ForeignDirective(line); m != "" {
		s.foreign = append(s.foreign, foreignLine{m, number, line})
		return
	}
	trimmed := strings.TrimLeft(line, " \t")
	if len(trimmed) <= len(magic) || !strings.EqualFold(trimmed[:len(magic)], magic) || !isSpace(trimmed[len(magic)]) && trimmed[len(magic)] != '-' {
		return
	}
	if strings.HasPrefix(trimmed, magic) {
		s.addWarning(number, "", "not read: a directive starts at the first column, without blanks before #SBATCH")
	} else {
		s.addWarning(number, "", "not read: "+trimmed[:len(magic)]+" is not #SBATCH (capitals matter)")
	}
}

// judgeForeign says that the lines of other batch systems were not read. Where a script has no
// others and --ignore-pbs does not ask for it, the job is refused: it would run without anything
// that its lines ask for.
func (p *parser) judgeForeign(ignored bool) {
	s := p.script
	if len(s.foreign) == 0 || ignored {
		return
	}
	if s.Lines[0] == 0 {
		first := s.foreign[0]
		var numbers []string
		for _, f := range s.foreign {
			numbers = append(numbers, strconv.Itoa(f.line))
		}
		plural := "lines"
		if len(numbers) == 1 {
			plural = "line"
		}
		if n := len(numbers); n > maxForeign {
			numbers = append(numbers[:maxForeign], fmt.Sprintf("%d more", n-maxForeign))
		}
		p.errs = append(p.errs, &spec.Error{
			File: s.Name, Line: first.line, Col: 1, Len: len(first.magic), Text: first.text,
			Message: fmt.Sprintf("the only directives of this script are %s's (%s), which are not read: %s %s", systemOf(first.magic), first.magic, plural, strings.Join(numbers, ", ")),
			Remedy:  "say it with #SBATCH lines (docs/reference/sbatch.md), or run it with none of them: --ignore-pbs",
		})
		return
	}
	for _, f := range input.Foreign {
		n, first := 0, 0
		for _, l := range s.foreign {
			if l.magic == f.Magic {
				if n++; n == 1 {
					first = l.line
				}
			}
		}
		if n > 0 {
			p.warnings = append(p.warnings, spec.Warning{
				File: s.Name, Line: first, Option: f.Magic, Message: fmt.Sprintf("lines are not read (%s): say it with #SBATCH", pluralOf(n, "line")),
			})
		}
	}
}

// systemOf is the batch system whose directives begin so.
func systemOf(magic string) string {
	for _, f := range input.Foreign {
		if f.Magic == magic {
			return f.System
		}
	}
	return magic
}

// warnLate looks for directives behind the header, outside here-documents; before is
// how many lines the header has.
func (s *Script) warnLate(body []byte, before int) {
	if !bytes.Contains(body, []byte("\n"+magic)) {
		return
	}
	number, until, n, first := before, "", 0, 0
	for line := range strings.SplitSeq(string(body), "\n") {
		number++
		switch {
		case until != "":
			if strings.TrimLeft(line, "\t") == until {
				until = ""
			}
		case strings.HasPrefix(line, magic+" ") || strings.HasPrefix(line, magic+"-") || strings.HasPrefix(line, magic+"\t"):
			if n++; n == 1 {
				first = number
			}
		default:
			until = hereDocument(line)
		}
	}
	if n > 0 {
		s.addWarning(first, magic, fmt.Sprintf("is not read here (%s): reading ends at the first command, line %d", pluralOf(n, "line"), before+1))
	}
}

// hereDocument returns the word that ends the here-document which a line opens.
func hereDocument(line string) string {
	_, after, ok := strings.Cut(line, "<<")
	if !ok || strings.HasPrefix(after, "<") {
		return ""
	}
	after = strings.TrimLeft(strings.TrimPrefix(after, "-"), " \t")
	end := strings.IndexAny(after, " \t;|&>)")
	if end < 0 {
		end = len(after)
	}
	return strings.Trim(after[:end], `"'\`)
}
