package yaml

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/spec"
)

// value reads a scalar or a flow value that begins at pos and belongs to something
// at indentation parent.
func (r *reader) value(parent int) (*Node, *spec.Error) {
	if err := r.property(); err != nil {
		return nil, err
	}
	var n *Node
	var err *spec.Error
	switch r.peek() {
	case '|', '>':
		return r.literal(parent)
	case '[', '{':
		n, err = r.flow()
	case '"', '\'':
		n, err = r.quoted()
	case ']', '}', ',':
		return nil, r.fail(r.pos, 1, fmt.Sprintf("a %c without its beginning", r.peek()), "put quotes around text that begins so")
	default:
		return r.plain(parent)
	}
	if err == nil && !r.lineDone() {
		err = r.behind()
	}
	return n, err
}

// behind explains what stands where a line should end.
func (r *reader) behind() *spec.Error {
	rest := strings.TrimRight(r.doc.Line(r.line)[r.col():], " ")
	return r.fail(r.pos, len(rest), "stands behind the end of the value", "put the whole value in quotes, or begin a comment with a blank and #")
}

// plainLine is the plain text at pos up to a comment or the end of the line, and
// the offset of a colon in it that would make it a field, or -1.
func (r *reader) plainLine() (text string, colon int, comment bool) {
	line := r.src[r.pos:]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	colon = -1
	for i := 0; i < len(line); i++ {
		blank := i > 0 && (line[i-1] == ' ' || line[i-1] == '\t')
		if line[i] == '#' && blank {
			line, comment = line[:i], true
			break
		}
		if line[i] == ':' && (i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t') && colon < 0 {
			colon = i
		}
	}
	return strings.TrimRight(line, " \t"), colon, comment
}

// plain reads text without quotes. It goes on in lines that are indented deeper than
// what it belongs to; an empty line between them is a line break.
func (r *reader) plain(parent int) (*Node, *spec.Error) {
	n := &Node{Kind: Scalar, Place: r.place(0)}
	var b strings.Builder
	breaks := 0
	for first := true; ; first = false {
		text, colon, comment := r.plainLine()
		if colon >= 0 {
			return nil, r.fail(r.pos+colon, 1, "a colon and a blank inside plain text", "put the text in quotes, or begin a new line for a new field")
		}
		switch {
		case first:
			n.Place.Len = len(text)
		case breaks > 0:
			b.WriteString(strings.Repeat("\n", breaks))
		default:
			b.WriteByte(' ')
		}
		b.WriteString(text)
		r.toEnd()
		if comment || !r.goesOn(parent, &breaks) {
			break
		}
		if r.entry() {
			return nil, r.fail(r.pos, 1, "a list entry that continues plain text", "take away the text before it, or put the text in quotes")
		}
	}
	n.Text = b.String()
	if n.Text == "~" || n.Text == "null" || n.Text == "Null" || n.Text == "NULL" {
		n.Kind, n.Text = Null, ""
	}
	return n, nil
}

// goesOn moves to the next line if plain text goes on there, and counts the empty
// lines between; else it stays.
func (r *reader) goesOn(parent int, breaks *int) bool {
	back := *r
	*breaks = 0
	for r.pos < len(r.src) {
		r.newline()
		for r.peek() == ' ' {
			r.pos++
		}
		switch {
		case r.pos >= len(r.src):
		case r.peek() == '\n':
			*breaks++
			continue
		case r.peek() != '#' && r.peek() != '\t' && r.col() > parent && !r.marker():
			return true
		}
		break
	}
	*r = back
	return false
}

// quoted reads text in single or double quotes.
func (r *reader) quoted() (*Node, *spec.Error) {
	n := &Node{Kind: Scalar, Quoted: true, Place: r.place(1)}
	quote, open := r.peek(), r.pos
	r.pos++
	var b strings.Builder
	for {
		switch c := r.peek(); {
		case c == 0:
			return nil, r.doc.Error(n.Place, fmt.Sprintf("the quote %c is not closed", quote), "")
		case c == '\n':
			r.fold(&b)
			if r.marker() {
				return nil, r.doc.Error(n.Place, fmt.Sprintf("the quote %c is not closed", quote), "")
			}
		case c == quote && quote == '\'' && r.ahead(1) == quote:
			b.WriteByte(quote)
			r.pos += 2
		case c == quote:
			r.pos++
			n.Text = b.String()
			if r.line == n.Place.Line {
				n.Place.Len = r.pos - open
			}
			return n, nil
		case c == '\\' && quote == '"':
			if err := r.escape(&b); err != nil {
				return nil, err
			}
		default:
			if c == ' ' || c == '\t' { // blanks before the end of a line go
				from := r.pos
				if r.blanks(); r.peek() == '\n' {
					continue
				}
				b.WriteString(r.src[from:r.pos])
				continue
			}
			b.WriteByte(c)
			r.pos++
		}
	}
}

// fold moves over a line's end inside quotes: it is a blank, and every empty line
// after it a line break.
func (r *reader) fold(b *strings.Builder) {
	empty := 0
	for r.peek() == '\n' {
		r.newline()
		if r.blanks(); r.peek() == '\n' {
			empty++
		}
	}
	if empty == 0 {
		b.WriteByte(' ')
	}
	for range empty {
		b.WriteByte('\n')
	}
}

// escapes are the characters that one letter behind a backslash stands for.
var escapes = map[byte]string{
	'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f", 'r': "\r", 'e': "\x1b",
	' ': " ", '"': `"`, '/': "/", '\\': `\`, 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029",
}

// escape reads a backslash and what follows it.
func (r *reader) escape(b *strings.Builder) *spec.Error {
	at := r.pos
	c := r.ahead(1)
	if s, ok := escapes[c]; ok {
		b.WriteString(s)
		r.pos += 2
		return nil
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	switch {
	case c == '\n':
		r.pos++
		r.newline()
		for r.blanks(); r.peek() == '\n'; r.blanks() {
			b.WriteByte('\n')
			r.newline()
		}
		return nil
	case digits == 0:
		return r.fail(at, 2, fmt.Sprintf("\\%c is no escape", c), `write \\ for a backslash, or use single quotes`)
	}
	var code rune
	for i := range digits {
		d := strings.IndexByte("0123456789abcdef", r.ahead(2+i)|0x20)
		if d < 0 || r.ahead(2+i) < '0' {
			return r.fail(at, 2+i, fmt.Sprintf("\\%c needs %d hexadecimal digits", c, digits), "")
		}
		code = code<<4 | rune(d)
	}
	if c != 'x' && !utf8.ValidRune(code) {
		return r.fail(at, 2+digits, "is no character", "")
	}
	b.WriteRune(code)
	r.pos += 2 + digits
	return nil
}
