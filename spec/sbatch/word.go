package sbatch

import (
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/spec"
)

// word is one argument and where it stands. Words of the command line and of the
// environment have line 0.
type word struct {
	text     string
	file     string
	src      string // the whole line
	line     int    // from 1
	col, end int    // bytes of src that the word takes up, quotes included
	at       []int  // place in src of each byte of text; nil: text is src[col:end]
}

// sourcePlace returns where text[i] stands in src; i may be len(text).
func (w word) sourcePlace(i int) int {
	switch {
	case w.at == nil:
		return w.col + i
	case i < len(w.at):
		return w.at[i]
	}
	return w.end
}

// rawText is the word as written.
func (w word) rawText() string { return w.src[w.col:w.end] }

// errorAt blames text[from:to] of the word.
func (w word) errorAt(from, to int, message, remedy string) *spec.Error {
	col := w.sourcePlace(from)
	end := w.sourcePlace(to)
	if to > from && w.at != nil {
		end = w.at[to-1] + 1
	}
	return &spec.Error{
		File: w.file, Line: w.line, Col: col + 1, Len: max(end-col, 0), Text: w.src,
		Message: message, Remedy: remedy,
	}
}

// argumentWord is the word for one argument of a command line.
func argumentWord(text string) word {
	return word{text: text, file: commandLine, src: text, end: len(text)}
}

// ending says why the words of a line ended.
type ending uint8

const (
	lineEnd   ending = iota
	component        // the word hetjob or packjob, first on its line
	late             // the same word behind others, which only ends the line
	empty            // an empty argument
	badQuote         // a quote without its partner
	badColon         // a word that begins with a colon
)

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// splitter cuts one line into words.
type splitter struct {
	file, src string
	line      int
	pos       int

	text []byte // of the word that is read; used again
	at   []int
}

// splitWords adds the words of the line from pos on to a list and says why they ended.
// For an early end, pos stands at its cause.
func (s *splitter) splitWords(out []word) ([]word, ending) {
	before := len(out)
	for {
		for s.pos < len(s.src) && isSpace(s.src[s.pos]) {
			s.pos++
		}
		if s.pos == len(s.src) || s.src[s.pos] == '#' {
			return out, lineEnd
		}
		if s.src[s.pos] == ':' {
			return out, badColon
		}
		if s.atSeparator("hetjob") || s.atSeparator("packjob") {
			if len(out) > before {
				return out, late
			}
			return out, component
		}
		start := s.pos
		w, closed := s.readWord()
		switch {
		case !closed:
			s.pos = start
			return out, badQuote
		case w.text == "":
			if w.end == len(strings.TrimRight(s.src, " \t\n\v\f\r")) && !strings.ContainsAny(w.rawText(), `"'`) {
				return out, lineEnd // a backslash at the end of the line
			}
			s.pos = start
			return out, empty
		}
		out = append(out, w)
	}
}

// atSeparator reports whether the unquoted word stands at pos.
func (s *splitter) atSeparator(text string) bool {
	rest := s.src[s.pos:]
	if len(rest) < len(text) || !strings.EqualFold(rest[:len(text)], text) {
		return false
	}
	return len(rest) == len(text) || isSpace(rest[len(text)])
}

// readWord reads one word; closed is false if a quote in it is not.
func (s *splitter) readWord() (w word, closed bool) {
	w = word{file: s.file, src: s.src, line: s.line, col: s.pos}
	if end := plainEnd(s.src, s.pos); end > 0 {
		w.text, w.end, s.pos = s.src[s.pos:end], end, end
		return w, true
	}
	text, at := s.text[:0], s.at[:0]
	var quote byte
	literal := true
	for ; s.pos < len(s.src); s.pos++ {
		c := s.src[s.pos]
		switch {
		case c == '\\':
			literal = false
			if s.pos+1 == len(s.src) || quote == 0 && isSpace(s.src[s.pos+1]) {
				continue
			}
			s.pos++
			c = s.src[s.pos]
		case quote != 0 && c == quote:
			quote = 0
			continue
		case quote == 0 && (c == '"' || c == '\''):
			quote, literal = c, false
			continue
		case quote == 0 && (isSpace(c) || c == '#'):
			return s.finishWord(w, text, at, literal), true
		}
		text = append(text, c)
		at = append(at, s.pos)
	}
	return s.finishWord(w, text, at, literal), quote == 0
}

// plainEnd is where the word that begins at from ends, 0 if it has quotes or
// backslashes.
func plainEnd(src string, from int) int {
	for i := from; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\\' || c == '"' || c == '\'':
			return 0
		case c == '#' || isSpace(c):
			return i
		}
	}
	return len(src)
}

func (s *splitter) finishWord(w word, text []byte, at []int, literal bool) word {
	w.text, w.end = string(text), s.pos
	if !literal {
		w.at = slices.Clone(at)
	}
	s.text, s.at = text, at
	return w
}
