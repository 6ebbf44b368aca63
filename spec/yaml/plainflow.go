package yaml

import "strings"

// flowReader reads [a, b] and {a: b} that are on one line.
type flowReader struct {
	r         *plainReader
	s         string
	at        int
	line, col int // of s
}

func (f *flowReader) place(from, length int) Place { return Place{f.line, f.col + from, length} }

func (f *flowReader) skipBlanks() {
	for f.at < len(f.s) && f.s[f.at] == ' ' {
		f.at++
	}
}

// next is the next character, 0 at the end.
func (f *flowReader) next() byte {
	f.skipBlanks()
	if f.at == len(f.s) {
		return 0
	}
	return f.s[f.at]
}

func (f *flowReader) readValue() (*Node, bool) {
	switch f.next() {
	case '[':
		return f.readEntries()
	case '{':
		return f.readFields()
	case '"', '\'':
		text, length, ok := cutQuoted(f.s[f.at:])
		if !ok || f.r.deep == 0 {
			return nil, false
		}
		n := f.r.newNode(Scalar, f.place(f.at, length))
		n.Text, n.Quoted = text, true
		f.at += length
		return n, true
	}
	text, ok := f.plainText()
	if !ok || f.r.deep == 0 {
		return nil, false
	}
	n := f.r.plainScalar(text, f.place(f.at, len(text)))
	f.at += len(text)
	return n, true
}

// plainText is the plain value that begins here.
func (f *flowReader) plainText() (string, bool) {
	s := f.s[f.at:]
	if s == "" || strings.IndexByte("&*!|>%@`#,[]{}?:-\"'", s[0]) >= 0 && !(s[0] == '-' && len(s) > 1 && isKeyByte(s[1])) {
		return "", false
	}
	end := strings.IndexAny(s, ",[]{}\"'#")
	if end < 0 {
		return "", false
	}
	if s[end] != ',' && s[end] != ']' && s[end] != '}' {
		return "", false
	}
	s = strings.TrimRight(s[:end], " ")
	return s, strings.IndexByte(s, ':') < 0
}

func (f *flowReader) readEntries() (*Node, bool) {
	n := f.r.newNode(List, f.place(f.at, 1))
	if f.r.deep--; f.r.deep < 0 {
		return nil, false
	}
	defer func() { f.r.deep++ }()
	f.at++
	for f.next() != ']' {
		item, ok := f.readValue()
		if !ok {
			return nil, false
		}
		n.Items = append(n.Items, item)
		if c := f.next(); c == ',' {
			f.at++
		} else if c != ']' {
			return nil, false
		}
	}
	f.at++
	return n, true
}

func (f *flowReader) readFields() (*Node, bool) {
	n := f.r.newNode(Mapping, f.place(f.at, 1))
	if f.r.deep--; f.r.deep < 0 {
		return nil, false
	}
	defer func() { f.r.deep++ }()
	f.at++
	for f.next() != '}' {
		name, length, rest, ok := cutKey(f.s[f.at:])
		if !ok || name == "<<" || rest == "" {
			return nil, false
		}
		field := Field{Name: name, Place: f.place(f.at, length)}
		f.at = len(f.s) - len(rest)
		if field.Value, ok = f.readValue(); !ok {
			return nil, false
		}
		n.Fields = append(n.Fields, field)
		if c := f.next(); c == ',' {
			f.at++
		} else if c != '}' {
			return nil, false
		}
	}
	f.at++
	name, _, _ := doubledField(n.Fields)
	return n, name == ""
}
