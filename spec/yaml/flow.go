package yaml

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/spec"
)

// flow reads [a, b] or {a: b}, which may go over several lines.
func (r *reader) flow() (*Node, *spec.Error) {
	if err := r.deeper(); err != nil {
		return nil, err
	}
	defer func() { r.depth-- }()
	n := &Node{Kind: List, Place: r.place(1)}
	shut := byte(']')
	if r.peek() == '{' {
		n.Kind, shut = Mapping, '}'
	}
	seen := map[string]int{}
	for r.pos++; ; {
		if !r.flowNext() {
			return nil, r.doc.Error(n.Place, fmt.Sprintf("the %c that closes this is missing", shut), "")
		}
		if r.peek() == shut {
			r.pos++
			return n, nil
		}
		if err := r.flowItem(n, seen); err != nil {
			return nil, err
		}
		if !r.flowNext() {
			continue
		}
		switch r.peek() {
		case ',':
			r.pos++
		case shut:
		default:
			return nil, r.fail(r.pos, 1, fmt.Sprintf("a comma or %c is missing before this", shut), "put text with blanks, commas or brackets in quotes")
		}
	}
}

// flowNext moves to the next character that is neither blank nor comment, over line
// ends; false means that there is none.
func (r *reader) flowNext() bool {
	for {
		if !r.lineDone() {
			return true
		}
		if r.pos >= len(r.src) {
			return false
		}
		if r.newline(); r.marker() {
			return false
		}
	}
}

func (r *reader) flowItem(n *Node, seen map[string]int) *spec.Error {
	if r.peek() == ',' {
		return r.fail(r.pos, 1, "nothing stands before this comma", "")
	}
	from := r.place(0)
	item, err := r.flowValue()
	if err != nil {
		return err
	}
	if n.Kind == List {
		n.Items = append(n.Items, item)
		if r.peek() == ':' {
			return r.fail(r.pos, 1, "a field inside a list", "write {NAME: VALUE}")
		}
		return nil
	}
	r.blanks()
	if r.peek() != ':' || item.Kind != Scalar {
		return r.flowNoColon(from, item)
	}
	r.pos++
	f := Field{Name: item.Text, Place: item.Place}
	if err := r.once(f, seen); err != nil {
		return err
	}
	f.Value = &Node{Place: r.place(0)}
	if r.flowNext() && r.peek() != ',' && r.peek() != '}' {
		if f.Value, err = r.flowValue(); err != nil {
			return err
		}
	}
	n.Fields = append(n.Fields, f)
	return nil
}

func (r *reader) flowNoColon(from Place, item *Node) *spec.Error {
	remedy := "write {NAME: VALUE}"
	if name, value, ok := strings.Cut(item.Text, ":"); ok && !item.Quoted {
		remedy = fmt.Sprintf("a blank is missing behind the colon: %s: %s", name, value)
	}
	from.Len = max(item.Place.Len, 1)
	return r.doc.Error(from, "has no value", remedy)
}

// flowValue reads one value inside brackets or braces.
func (r *reader) flowValue() (*Node, *spec.Error) {
	if err := r.property(); err != nil {
		return nil, err
	}
	switch c := r.peek(); {
	case c == '[' || c == '{':
		return r.flow()
	case c == '"' || c == '\'':
		return r.quoted()
	case strings.IndexByte("]}|>", c) >= 0 || r.entry():
		return nil, r.fail(r.pos, 1, fmt.Sprintf("no plain text begins with %c", c), "put quotes around it")
	}
	n := &Node{Kind: Scalar, Place: r.place(0)}
	from := r.pos
	for c := r.peek(); c != '\n' && strings.IndexByte(",[]{}", c) < 0; c = r.peek() {
		if c == ':' && (r.blankAt(1) || strings.IndexByte(",[]{}", r.ahead(1)) >= 0) {
			break
		}
		if c == '#' && r.pos > from && (r.src[r.pos-1] == ' ' || r.src[r.pos-1] == '\t') {
			break
		}
		r.pos++
	}
	n.Text = strings.TrimRight(r.src[from:r.pos], " \t")
	n.Place.Len = len(n.Text)
	if n.Text == "" {
		return nil, r.fail(from, 1, "a value is missing here", "")
	}
	if n.Text == "~" || n.Text == "null" {
		n.Kind, n.Text = Null, ""
	}
	return n, nil
}
