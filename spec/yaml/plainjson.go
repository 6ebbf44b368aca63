package yaml

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// jsonReader reads JSON. Like plainReader it gives up at anything that is not exactly JSON.
type jsonReader struct {
	r      *plainReader
	s      string
	at     int
	line   int
	begins int // of the line, in s
}

// readJSON reads the object that a part of a text is, whose first line has a number.
func readJSON(src string, start, end, number, depth int) (*Node, bool) {
	j := &jsonReader{r: &plainReader{deep: depth}, s: src[:end], at: start, line: number, begins: start}
	if j.next() != '{' {
		return nil, false
	}
	n, ok := j.readValue()
	return n, ok && j.next() == 0 && j.at == len(j.s) // a NUL is not the end
}

func (j *jsonReader) place(from int) Place { return Place{j.line, from - j.begins + 1, 1} }

// next is the next character that is no white space, 0 at the end.
func (j *jsonReader) next() byte {
	for j.at < len(j.s) {
		switch c := j.s[j.at]; c {
		case '\n':
			j.line++
			j.begins = j.at + 1
		case ' ', '\t':
		default:
			return c
		}
		j.at++
	}
	return 0
}

func (j *jsonReader) readValue() (*Node, bool) {
	c := j.next()
	if c == '{' || c == '[' {
		if j.r.deep--; j.r.deep < 0 {
			return nil, false
		}
		defer func() { j.r.deep++ }()
		if c == '{' {
			return j.readFields()
		}
		return j.readEntries()
	}
	if j.r.deep == 0 {
		return nil, false
	}
	p := j.place(j.at)
	if c == '"' {
		text, length, ok := cutString(j.s[j.at:])
		if !ok {
			return nil, false
		}
		p.Len = length
		n := j.r.newNode(Scalar, p)
		n.Text, n.Quoted = text, true
		j.at += length
		return n, true
	}
	end := j.at
	for end < len(j.s) && strings.IndexByte(" \t\r\n,]}", j.s[end]) < 0 {
		end++
	}
	text := j.s[j.at:end]
	if p.Len = len(text); text != "true" && text != "false" && text != "null" && !isJSONNumber(text) {
		return nil, false
	}
	j.at = end
	return j.r.plainScalar(text, p), true
}

// isJSONNumber reports whether a text is a number of JSON.
func isJSONNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789+-.eE") == "" && json.Valid([]byte(s))
}

// cutString reads the string that s begins with.
func cutString(s string) (text string, length int, ok bool) {
	escaped := false
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			escaped = true
			i++
		case c < 0x20 || c == 0x7f:
			return "", 0, false
		case c == '"':
			if text = s[1:i]; !utf8.ValidString(text) {
				return "", 0, false
			}
			if escaped && json.Unmarshal([]byte(s[:i+1]), &text) != nil {
				return "", 0, false
			}
			return text, i + 1, true
		}
	}
	return "", 0, false
}

func (j *jsonReader) readEntries() (*Node, bool) {
	n := j.r.newNode(List, j.place(j.at))
	j.at++
	if j.next() == ']' {
		j.at++
		return n, true
	}
	for {
		item, ok := j.readValue()
		if !ok {
			return nil, false
		}
		n.Items = append(n.Items, item)
		switch j.next() {
		case ',':
			j.at++
		case ']':
			j.at++
			return n, true
		default:
			return nil, false
		}
	}
}

func (j *jsonReader) readFields() (*Node, bool) {
	n := j.r.newNode(Mapping, j.place(j.at))
	j.at++
	if j.next() == '}' {
		j.at++
		return n, true
	}
	for {
		if j.next() != '"' {
			return nil, false
		}
		p := j.place(j.at)
		name, length, ok := cutString(j.s[j.at:])
		if !ok || name == "<<" {
			return nil, false
		}
		p.Len = length
		if j.at += length; j.next() != ':' {
			return nil, false
		}
		j.at++
		value, ok := j.readValue()
		if !ok {
			return nil, false
		}
		n.Fields = append(n.Fields, Field{Name: name, Place: p, Value: value})
		switch j.next() {
		case ',':
			j.at++
		case '}':
			j.at++
			name, _, _ := doubledField(n.Fields)
			return n, name == ""
		default:
			return nil, false
		}
	}
}
