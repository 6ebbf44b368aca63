package fastclient

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Value is a value of JSON as it was read: text, number, true, false, list or
// object. The zero value stands for null and for what is not there; every method
// may be called on every Value.
type Value struct {
	kind  byte // 0, 's' text, 'n' number or word, 'a' list, 'o' object
	text  string
	items []Value
	names []string // of an object
}

// maxDepth bounds how deep lists and objects may stand in each other.
const maxDepth = 200

// Parse reads one value and nothing behind it.
func Parse(b []byte) (Value, error) {
	p := parser{src: string(b)}
	v, err := p.parseValue(0)
	if err != nil {
		return Value{}, err
	}
	p.skipSpace()
	if p.at != len(p.src) {
		return Value{}, p.syntaxError("more than one value")
	}
	return v, nil
}

// Get returns a field of an object.
func (v Value) Get(name string) Value {
	for i, n := range v.names {
		if n == name {
			return v.items[i]
		}
	}
	return Value{}
}

// Has reports whether the field is there and not null.
func (v Value) Has(name string) bool { return v.Get(name).kind != 0 }

// Items are the members of a list, or the values of an object.
func (v Value) Items() []Value { return v.items }

// Names are the fields of an object, in the order of Items.
func (v Value) Names() []string { return v.names }

// Text is the text; of a number its digits; else "".
func (v Value) Text() string { return v.text }

// Texts are the texts of a list.
func (v Value) Texts() []string {
	out := make([]string, len(v.items))
	for i, e := range v.items {
		out[i] = e.text
	}
	return out
}

// Int is a number without its fraction, or 0.
func (v Value) Int() int64 {
	if n, err := strconv.ParseInt(v.text, 10, 64); err == nil && v.kind == 'n' {
		return n
	}
	return int64(v.Float())
}

// Float is a number, or 0.
func (v Value) Float() float64 {
	if v.kind != 'n' {
		return 0
	}
	f, _ := strconv.ParseFloat(v.text, 64)
	return f
}

// Bool reports true.
func (v Value) Bool() bool { return v.kind == 'n' && v.text == "true" }

// Time is a time in RFC 3339, or the zero time.
func (v Value) Time() time.Time {
	t, err := time.Parse(time.RFC3339Nano, v.text)
	if err != nil {
		return time.Time{}
	}
	return t
}

type parser struct {
	src string
	at  int
}

func (p *parser) syntaxError(what string) error { return fmt.Errorf("at byte %d: %s", p.at, what) }

func (p *parser) skipSpace() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) parseValue(depth int) (Value, error) {
	p.skipSpace()
	if p.at == len(p.src) {
		return Value{}, p.syntaxError("it ends early")
	}
	if depth > maxDepth {
		return Value{}, p.syntaxError("too deep")
	}
	switch c := p.src[p.at]; {
	case c == '"':
		s, err := p.parseText()
		return Value{kind: 's', text: s}, err
	case c == '{':
		return p.parseList('}', depth)
	case c == '[':
		return p.parseList(']', depth)
	case c == '-' || c >= '0' && c <= '9':
		return p.parseNumber()
	}
	for _, w := range []string{"true", "false", "null"} {
		if len(p.src)-p.at >= len(w) && p.src[p.at:p.at+len(w)] == w {
			p.at += len(w)
			if w == "null" {
				return Value{}, nil
			}
			return Value{kind: 'n', text: w}, nil
		}
	}
	return Value{}, p.syntaxError("no value begins so")
}

func (p *parser) parseNumber() (Value, error) {
	from := p.at
	for p.at < len(p.src) {
		switch c := p.src[p.at]; {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
			p.at++
			continue
		}
		break
	}
	text := p.src[from:p.at]
	if _, err := strconv.ParseFloat(text, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
		return Value{}, p.syntaxError("not a number")
	}
	return Value{kind: 'n', text: text}, nil
}

// parseList reads a list, or an object, up to its closing bracket.
func (p *parser) parseList(end byte, depth int) (Value, error) {
	v := Value{kind: 'a'}
	if end == '}' {
		v.kind = 'o'
	}
	p.at++
	for first := true; ; first = false {
		p.skipSpace()
		if p.at < len(p.src) && p.src[p.at] == end && first {
			p.at++
			return v, nil
		}
		if end == '}' {
			name, err := p.parseName()
			if err != nil {
				return v, err
			}
			v.names = append(v.names, name)
		}
		item, err := p.parseValue(depth + 1)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
		p.skipSpace()
		switch {
		case p.at == len(p.src):
			return v, p.syntaxError("it ends early")
		case p.src[p.at] == end:
			p.at++
			return v, nil
		case p.src[p.at] != ',':
			return v, p.syntaxError("a comma is missing")
		}
		p.at++
	}
}

func (p *parser) parseName() (string, error) {
	if p.at == len(p.src) || p.src[p.at] != '"' {
		return "", p.syntaxError("a name is missing")
	}
	s, err := p.parseText()
	if err != nil {
		return "", err
	}
	p.skipSpace()
	if p.at == len(p.src) || p.src[p.at] != ':' {
		return "", p.syntaxError("a colon is missing")
	}
	p.at++
	return s, nil
}

func (p *parser) parseText() (string, error) {
	from := p.at + 1
	for i := from; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == '"':
			p.at = i + 1
			return p.src[from:i], nil
		case c == '\\':
			return p.parseEscaped(from, i)
		case c < ' ':
			p.at = i
			return "", p.syntaxError("a control character in a text")
		}
	}
	return "", p.syntaxError("a text without end")
}

// parseEscaped reads on from the first backslash of a text.
func (p *parser) parseEscaped(from, i int) (string, error) {
	b := append([]byte(nil), p.src[from:i]...)
	for i < len(p.src) {
		c := p.src[i]
		i++
		switch {
		case c == '"':
			p.at = i
			return string(b), nil
		case c != '\\':
			b = append(b, c)
			continue
		case i == len(p.src):
			return "", p.syntaxError("a text without end")
		}
		c = p.src[i]
		i++
		switch c {
		case '"', '\\', '/':
			b = append(b, c)
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, n := parseHexRune(p.src[i:])
			if n == 0 {
				return "", p.syntaxError("a wrong \\u in a text")
			}
			i += n
			b = utf8.AppendRune(b, r)
		default:
			return "", p.syntaxError("a wrong escape in a text")
		}
	}
	return "", p.syntaxError("a text without end")
}

// parseHexRune reads what stands behind \u, with the second half of a pair where there is one.
func parseHexRune(s string) (rune, int) {
	one := func(s string) (rune, bool) {
		if len(s) < 4 {
			return 0, false
		}
		n, err := strconv.ParseUint(s[:4], 16, 16)
		return rune(n), err == nil
	}
	r, ok := one(s)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) && len(s) >= 10 && s[4] == '\\' && s[5] == 'u' {
		if low, ok := one(s[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 10
			}
		}
	}
	return r, 4
}
