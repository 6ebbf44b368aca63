package yaml

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/spec"
)

// Parse reads a document. The error is a *spec.Error.
func Parse(src spec.Source) (*Document, error) {
	d := &Document{name: src.Name}
	if len(src.Data) > MaxSize {
		return nil, &spec.Error{
			File: src.Name, Message: fmt.Sprintf("is larger than %d KiB", MaxSize>>10),
			Remedy: "keep what is large in a file of its own and name it",
		}
	}
	d.src = normal(string(src.Data))
	d.at = []int{0}
	for i := range len(d.src) - 1 {
		if d.src[i] == '\n' {
			d.at = append(d.at, i+1)
		}
	}
	r := &reader{doc: d, src: d.src, line: 1}
	if err := r.characters(); err != nil {
		return nil, err
	}
	root, err := r.document()
	if err != nil {
		return nil, err
	}
	d.Root = root
	return d, nil
}

// normal drops a byte order mark, makes every line end one newline, and ends the
// last line.
func normal(s string) string {
	s = strings.TrimPrefix(s, "\ufeff")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if s == "" || s[len(s)-1] != '\n' {
		s += "\n"
	}
	return s
}

// reader is a place in a text. It only moves forward, and looks ahead no further
// than the end of its line.
type reader struct {
	doc   *Document
	src   string
	pos   int
	line  int // of pos
	start int // of the line
	depth int
}

// characters refuses bytes that no document may hold.
func (r *reader) characters() *spec.Error {
	line, start := 1, 0
	for i := 0; i < len(r.src); {
		c := r.src[i]
		size := 1
		switch {
		case c == '\n':
			line, start = line+1, i+1
		case c == '\t' || c >= 0x20 && c < 0x7f:
		case c < 0x20 || c == 0x7f:
			return r.doc.Error(Place{line, i - start + 1, 1}, fmt.Sprintf("a control character (U+%04X)", c), `write it as "\xNN" in double quotes`)
		default:
			var ch rune
			ch, size = utf8.DecodeRuneInString(r.src[i:])
			if ch == utf8.RuneError && size == 1 {
				return r.doc.Error(Place{line, i - start + 1, 1}, "is not UTF-8 text here", "")
			}
		}
		i += size
	}
	return nil
}

// col is the indentation at which pos stands.
func (r *reader) col() int { return r.pos - r.start }

// peek is the byte at pos, 0 at the end.
func (r *reader) peek() byte { return r.ahead(0) }

func (r *reader) ahead(n int) byte {
	if r.pos+n < len(r.src) {
		return r.src[r.pos+n]
	}
	return 0
}

// blankAt reports whether n bytes ahead stands a blank or the end of the line.
func (r *reader) blankAt(n int) bool {
	c := r.ahead(n)
	return c == ' ' || c == '\t' || c == '\n' || c == 0
}

// newline moves behind the end of the line at pos.
func (r *reader) newline() {
	r.pos++
	r.line++
	r.start = r.pos
}

// toEnd moves to the end of the line.
func (r *reader) toEnd() {
	if i := strings.IndexByte(r.src[r.pos:], '\n'); i >= 0 {
		r.pos += i
		return
	}
	r.pos = len(r.src)
}

// blanks moves over blanks and tabs.
func (r *reader) blanks() {
	for c := r.peek(); c == ' ' || c == '\t'; c = r.peek() {
		r.pos++
	}
}

// lineDone moves to the end of the line, over blanks and a comment, and reports
// whether nothing else stood there.
func (r *reader) lineDone() bool {
	from := r.pos
	r.blanks()
	if r.peek() == '#' && (r.pos > from || r.col() == 0 || r.src[r.pos-1] == ' ') {
		r.toEnd()
	}
	return r.peek() == '\n' || r.peek() == 0
}

// next moves to the first character of the next line that holds anything, if pos
// does not stand before one in its line.
func (r *reader) next() *spec.Error {
	for r.pos < len(r.src) {
		fresh := r.col() == 0
		for r.peek() == ' ' {
			r.pos++
		}
		tab := r.pos
		if !r.lineDone() {
			if fresh && r.src[tab] == '\t' {
				return r.fail(tab, 1, "a tab in the indentation", "indent with blanks")
			}
			return nil
		}
		if r.pos < len(r.src) {
			r.newline()
		}
	}
	return nil
}

// done reports whether the text has ended; pos must be where next left it.
func (r *reader) done() bool { return r.pos >= len(r.src) }

// fail is an error about n bytes of the present line from offset at.
func (r *reader) fail(at, n int, message, remedy string) *spec.Error {
	return r.doc.Error(Place{r.line, at - r.start + 1, n}, message, remedy)
}

// place is n bytes at pos.
func (r *reader) place(n int) Place { return Place{r.line, r.col() + 1, n} }

// deeper counts a level; the caller must undo it by r.depth--.
func (r *reader) deeper() *spec.Error {
	if r.depth++; r.depth > MaxDepth {
		return r.fail(r.pos, 1, fmt.Sprintf("is nested more than %d levels deep", MaxDepth), "")
	}
	return nil
}

// marker reports whether a document marker, --- or ..., stands at pos.
func (r *reader) marker() bool {
	if r.col() != 0 || r.pos+3 > len(r.src) {
		return false
	}
	m := r.src[r.pos : r.pos+3]
	return (m == "---" || m == "...") && r.blankAt(3)
}

func (r *reader) document() (*Node, *spec.Error) {
	if err := r.next(); err != nil {
		return nil, err
	}
	if r.peek() == '%' && r.col() == 0 {
		return nil, r.fail(r.pos, 1, "directives (%) are not read", "leave the line out")
	}
	if r.marker() && r.peek() == '-' {
		r.pos += 3
		if !r.lineDone() {
			return nil, r.fail(r.pos, 1, "something stands behind ---", "begin a new line")
		}
		if err := r.next(); err != nil {
			return nil, err
		}
	}
	root := &Node{Place: r.place(1)}
	if !r.done() && !r.marker() {
		var err *spec.Error
		if root, err = r.block(-1); err != nil {
			return nil, err
		}
		if err = r.next(); err != nil {
			return nil, err
		}
	}
	if r.marker() {
		if rest := strings.TrimSpace(strings.TrimLeft(r.src[r.pos+3:], "\n")); rest != "" || r.peek() == '-' {
			return nil, r.fail(r.pos, 3, "a second document begins here: one file holds one", "put it into a file of its own")
		}
		return root, nil
	}
	if !r.done() {
		return nil, r.outside()
	}
	return root, nil
}

// outside explains a line that belongs to nothing.
func (r *reader) outside() *spec.Error {
	n := len(strings.TrimRight(r.doc.Line(r.line)[r.col():], " "))
	return r.fail(r.pos, n, "the indentation fits nothing above", "give the fields of one group the same indentation")
}
