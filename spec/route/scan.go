package route

import (
	"regexp"
	"strings"
	"sync"
)

// Bounds of what is looked at and kept.
const (
	maxLine  = 4096 // bytes of a line
	maxFound = 100  // lines that start something
)

// scanner walks over the lines of a shell script.
type scanner struct {
	facts *Facts
	file  string

	until   string // the line that ends a here document; empty: none
	tabs    bool   // which may be indented by tabs
	program bool   // the document is a program
	printed bool   // the line before is printed text that goes on
}

// scanScript looks through a script whose first line is line number first of the file.
func scanScript(f *Facts, file, script string, first int) {
	s := &scanner{facts: f, file: file}
	n := first
	for line := range strings.SplitSeq(script, "\n") {
		s.scanLine(strings.TrimSuffix(line, "\r"), n)
		n++
	}
}

func (s *scanner) scanLine(text string, n int) {
	if len(text) > maxLine {
		text = text[:maxLine]
	}
	if s.until != "" {
		end := text
		if s.tabs {
			end = strings.TrimLeft(end, "\t")
		}
		if end == s.until {
			s.until = ""
			return
		}
		if s.program {
			s.matchPatterns(withoutComment(text), text, n, true)
		}
		return
	}
	command := withoutComment(text)
	if strings.TrimSpace(command) == "" {
		return
	}
	if printed := s.printed || onlyPrints(command); !printed {
		s.matchPatterns(command, text, n, false)
	}
	s.printed = (s.printed || onlyPrints(command)) && strings.HasSuffix(strings.TrimRight(command, " "), `\`)
	s.noteHereDocument(command)
}

var documentStart = lazyRegexp(`(?:^|[^<])<<(-?)\s*\\?(?:'([^']+)'|"([^"]+)"|([A-Za-z_][A-Za-z0-9_]*))`)

// interpreters run the here document that they are given.
var interpreters = lazyRegexp(word + `(?:python[0-9.]*|bash|sh|zsh|torchrun|ipython)` + `(?:\s|$)`)

// noteHereDocument notes that a here document follows.
func (s *scanner) noteHereDocument(command string) {
	if !strings.Contains(command, "<<") {
		return
	}
	m := documentStart().FindStringSubmatch(command)
	if m == nil {
		return
	}
	s.until, s.tabs = m[2]+m[3]+m[4], m[1] == "-"
	s.program = interpreters().MatchString(command)
}

// onlyPrints reports whether a line only prints text.
func onlyPrints(command string) bool {
	c := strings.TrimSpace(command)
	for _, name := range []string{"echo ", "printf ", "logger ", "print("} {
		if strings.HasPrefix(c, name) && !strings.ContainsAny(c, "|;&`") && !strings.Contains(c, "$(") {
			return true
		}
	}
	return false
}

// withoutComment is a line up to a comment: # at its beginning or behind a blank,
// outside of quotes.
func withoutComment(line string) string {
	if !strings.Contains(line, "#") {
		return line
	}
	var quote byte
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t' || line[i-1] == ';'):
			return line[:i]
		}
	}
	return line
}

// steps recognises srun over more than one task.
var steps, single = lazyRegexp(word + `srun` + end), lazyRegexp(`\s(?:-N\s?1|--nodes[= ]1|-n\s?1|--ntasks[= ]1)(?:\s|$)`)

func lazyRegexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// matchPatterns states what a line shows. Inside of a document only code counts.
func (s *scanner) matchPatterns(command, text string, n int, document bool) {
	if !document && len(s.facts.steps) < maxFound && strings.Contains(command, "srun") && steps().MatchString(command) && !single().MatchString(command) {
		s.facts.steps = append(s.facts.steps, Evidence{File: s.file, Line: n, Text: strings.TrimSpace(text), Says: "tasks of a step start together"})
	}
	for i, re := range compiled() {
		p := patterns[i]
		if document && !p.code && !s.program || s.hasEnough(&p) || !containsAny(command, p.has) || !re.MatchString(command) {
			continue
		}
		e := Evidence{File: s.file, Line: n, Text: strings.TrimSpace(text), Says: p.says}
		for _, k := range p.facts {
			s.facts.Set(k, 1, File, e)
		}
		if p.runs != Plain && len(s.facts.launchers) < maxFound {
			s.facts.launchers = append(s.facts.launchers, launcher{p.runs, e})
		}
	}
}

// hasEnough reports whether enough lines are known that show what the pattern shows.
func (s *scanner) hasEnough(p *pattern) bool {
	for _, k := range p.facts {
		if f := s.facts.m[k]; f.Origin <= File && len(f.Evidence) < maxEvidence {
			return false
		}
	}
	return p.runs == Plain || s.facts.startsRuntime(p.runs)
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
