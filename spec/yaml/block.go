package yaml

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/spec"
)

// block reads the value that begins at pos, the first character of its line or what
// follows "- ", and belongs to something at indentation parent.
func (r *reader) block(parent int) (*Node, *spec.Error) {
	switch {
	case r.entry():
		return r.list(r.col())
	case r.isKey():
		return r.mapping(r.col())
	case parent < 0 && strings.IndexByte("[{]},\"'|>", r.peek()) < 0: // a document of one word
		return nil, r.notKey()
	}
	return r.value(parent)
}

// entry reports whether a list entry begins at pos.
func (r *reader) entry() bool { return r.peek() == '-' && r.blankAt(1) }

// list reads the entries at one indentation.
func (r *reader) list(indent int) (*Node, *spec.Error) {
	if err := r.deeper(); err != nil {
		return nil, err
	}
	defer func() { r.depth-- }()
	n := &Node{Kind: List, Place: r.place(1)}
	for {
		r.pos++ // the dash
		r.blanks()
		if r.peek() != '\n' && r.src[r.pos-1] == '\t' && (r.entry() || r.isKey()) {
			return nil, r.fail(r.pos-1, 1, "a tab in the indentation", "indent with blanks")
		}
		item, err := r.below(indent, false)
		if err != nil {
			return nil, err
		}
		n.Items = append(n.Items, item)
		more, err := r.same(indent)
		switch {
		case err != nil:
			return nil, err
		case !more || !r.entry():
			return n, nil
		}
	}
}

// same moves to the next line and reports whether it continues what stands at that
// indentation. A line that is indented deeper belongs to nothing.
func (r *reader) same(indent int) (bool, *spec.Error) {
	if err := r.next(); err != nil {
		return false, err
	}
	if r.done() || r.marker() || r.col() < indent {
		return false, nil
	}
	if r.col() > indent {
		return false, r.outside()
	}
	return true, nil
}

// below reads the value of a field or entry at indentation indent: pos stands
// behind its colon or dash.
func (r *reader) below(indent int, field bool) (*Node, *spec.Error) {
	r.blanks()
	here := r.place(0)
	if !r.lineDone() {
		if !field {
			return r.block(indent)
		}
		if r.entry() {
			return nil, r.fail(r.pos, 1, "a list begins on a line of its own", "or write [a, b]")
		}
		return r.value(indent)
	}
	if err := r.next(); err != nil {
		return nil, err
	}
	if r.done() || r.marker() || r.col() < indent || r.col() == indent && !(field && r.entry()) {
		return &Node{Place: here}, nil
	}
	return r.block(indent)
}

// mapping reads the fields at one indentation.
func (r *reader) mapping(indent int) (*Node, *spec.Error) {
	if err := r.deeper(); err != nil {
		return nil, err
	}
	defer func() { r.depth-- }()
	n := &Node{Kind: Mapping, Place: r.place(1)}
	seen := map[string]int{}
	for {
		f, err := r.key(seen)
		if err != nil {
			return nil, err
		}
		if f.Value, err = r.below(indent, true); err != nil {
			return nil, err
		}
		n.Fields = append(n.Fields, f)
		more, err := r.same(indent)
		switch {
		case err != nil:
			return nil, err
		case !more:
			return n, nil
		case r.entry():
			return nil, r.fail(r.pos, 1, "a list entry among fields", "put the name of a field above it, or take out the dash")
		case !r.isKey():
			return nil, r.notKey()
		}
	}
}

// notKey explains a line where a field was to begin.
func (r *reader) notKey() *spec.Error {
	if err := r.property(); err != nil {
		return err
	}
	line := r.doc.Line(r.line)[r.col():]
	if i := strings.IndexByte(line, ':'); i > 0 && !strings.ContainsAny(line[:i], " \t\"'") {
		return r.fail(r.pos+i, 1, "a blank is missing behind the colon", "write "+line[:i]+": "+line[i+1:])
	}
	return r.fail(r.pos, len(strings.TrimRight(line, " ")), "is no field", "write NAME: VALUE")
}

// isKey reports whether the line at pos begins a field: a name, a colon, and a blank
// or the end of the line.
func (r *reader) isKey() bool {
	line := r.src[r.pos:]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	end := 0
	switch c := r.peek(); {
	case c == '"' || c == '\'':
		if end = closing(line); end == 0 {
			return false
		}
		end += len(line[end:]) - len(strings.TrimLeft(line[end:], " \t"))
		return end < len(line) && line[end] == ':'
	case strings.IndexByte("[]{},#|>", c) >= 0:
		return false
	}
	for ; end < len(line); end++ {
		switch c := line[end]; {
		case c == ':' && (end+1 == len(line) || line[end+1] == ' ' || line[end+1] == '\t'):
			return true
		case c == '#' && end > 0 && (line[end-1] == ' ' || line[end-1] == '\t'):
			return false
		}
	}
	return false
}

// closing is the offset behind the quote that closes the text at the beginning of
// the line, 0 if it does not close there.
func closing(line string) int {
	quote := line[0]
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] == '\\' && quote == '"':
			i++
		case line[i] == quote && quote == '\'' && i+1 < len(line) && line[i+1] == quote:
			i++
		case line[i] == quote:
			return i + 1
		}
	}
	return 0
}

// key reads a field's name and its colon.
func (r *reader) key(seen map[string]int) (Field, *spec.Error) {
	if err := r.property(); err != nil {
		return Field{}, err
	}
	f := Field{Place: r.place(0)}
	from := r.pos
	if c := r.peek(); c == '"' || c == '\'' {
		n, err := r.quoted()
		if err != nil {
			return f, err
		}
		f.Name, f.Place.Len = n.Text, r.pos-from
		r.blanks()
	} else {
		for r.peek() != ':' || !r.blankAt(1) {
			r.pos++
		}
		f.Name = strings.TrimRight(r.src[from:r.pos], " \t")
		f.Place.Len = len(f.Name)
	}
	r.pos++ // the colon
	return f, r.once(f, seen)
}

// once refuses a name that stood before, and the merge key.
func (r *reader) once(f Field, seen map[string]int) *spec.Error {
	if f.Name == "<<" {
		return r.doc.Error(f.Place, "merge keys (<<) are not read", "write the fields out")
	}
	if line, twice := seen[f.Name]; twice {
		return r.doc.Error(f.Place, fmt.Sprintf("%s is given twice, first in line %d", show(f.Name), line), "leave one of them out")
	}
	seen[f.Name] = f.Place.Line
	return nil
}

// show quotes a name in a message where it needs to be.
func show(name string) string {
	if name == "" || len(name) > 60 || strings.ContainsAny(name, " \t\n\"'") {
		return fmt.Sprintf("%.60q", name)
	}
	return name
}

// property refuses what stands before a value in YAML and is not read here.
func (r *reader) property() *spec.Error {
	switch r.peek() {
	case '&':
		return r.fail(r.pos, r.word(), "anchors (&) are not read", `write the value out where it is used, or put quotes around text that begins with &`)
	case '*':
		return r.fail(r.pos, r.word(), "aliases (*) are not read", `write the value out, or put quotes around text that begins with *`)
	case '!':
		return r.fail(r.pos, r.word(), "tags (!) are not read", `leave it out, or put quotes around text that begins with !`)
	case '@', '`', '%':
		return r.fail(r.pos, 1, fmt.Sprintf("no plain text begins with %c", r.peek()), "put quotes around it")
	case '?':
		if r.blankAt(1) {
			return r.fail(r.pos, 1, "complex keys (?) are not read", "write NAME: VALUE")
		}
	}
	return nil
}

// word is the length of what stands at pos up to a blank, comma or bracket.
func (r *reader) word() int {
	n := strings.IndexAny(r.src[r.pos:], " \t\n,]}")
	return max(n, 1)
}
