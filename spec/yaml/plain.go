package yaml

import (
	"strings"
	"unicode/utf8"
)

// The library is exact and slow: a megabyte takes it a tenth of a second. Most text is plain: fields
// and lists by indentation, one value on a line, texts after |. plainReader reads that form alone, several
// times as fast. At anything else it gives up, and the library reads the document: it never says what
// is wrong with a text, and what it reads is what the library would have read (TestPlainIsTheLibrary).
type plainReader struct {
	src   string
	lines []plainLine // without blank ones and comments
	at    int         // the next line
	deep  int         // levels that may still be opened
	slab  []Node
}

// plainLine is a line that has something.
type plainLine struct {
	number     int // from 1 in the whole text
	start, end int // in src, without blanks and line end
	indent     int
}

// readPlain reads the document in a part of a text, whose first line has a number. false: it is not
// plain.
func readPlain(src string, start, end, number, depth int) (*Node, bool) {
	r := &plainReader{src: src, deep: depth}
	if !r.splitLines(start, end, number) {
		return nil, false
	}
	if r.at == len(r.lines) {
		return &Node{Place: Place{Line: number, Col: 1}}, true
	}
	n, ok := r.readBlock(r.lines[r.at].indent)
	return n, ok && r.at == len(r.lines)
}

// splitLines finds the lines. A text with characters that YAML treats by themselves is not plain.
func (r *plainReader) splitLines(start, end, number int) bool {
	r.lines = make([]plainLine, 0, (end-start)/24+1)
	for start < end {
		next := strings.IndexByte(r.src[start:end], '\n')
		if next < 0 {
			next = end - start
		}
		line := r.src[start : start+next]
		indent := 0
		for indent < len(line) && line[indent] == ' ' {
			indent++
		}
		if !isPlainText(line) {
			return false
		}
		if indent < len(line) {
			r.lines = append(r.lines, plainLine{number, start + indent, start + len(line), indent})
		} else {
			r.lines = append(r.lines, plainLine{number, start + indent, start + indent, -1}) // blank: a block of text needs it
		}
		start += next + 1
		number++
	}
	r.skipEmpty()
	return true
}

// isPlainText reports whether a line has only characters that stand for themselves.
func isPlainText(line string) bool {
	for i := 0; i < len(line); i++ {
		if c := line[i]; c < 0x20 || c == 0x7f {
			return false
		} else if c < utf8.RuneSelf {
			continue
		}
		c, size := utf8.DecodeRuneInString(line[i:])
		if c == utf8.RuneError || c < 0xa0 || c == '\u2028' || c == '\u2029' || c == '\ufeff' || c == '\ufffe' || c == '\uffff' {
			return false
		}
		i += size - 1
	}
	return true
}

// skipEmpty goes on to the next line that is neither blank nor a comment.
func (r *plainReader) skipEmpty() {
	for r.at < len(r.lines) && (r.lines[r.at].indent < 0 || r.src[r.lines[r.at].start] == '#') {
		r.at++
	}
}

func (r *plainReader) newNode(kind Kind, p Place) *Node {
	if len(r.slab) == 0 {
		r.slab = make([]Node, 128)
	}
	n := &r.slab[0]
	r.slab = r.slab[1:]
	n.Kind, n.Place = kind, p
	return n
}

// text is what is left of the next line.
func (r *plainReader) text() string { l := &r.lines[r.at]; return r.src[l.start:l.end] }

func (r *plainReader) place(length int) Place {
	l := &r.lines[r.at]
	return Place{Line: l.number, Col: l.indent + 1, Len: length}
}

// isEntry reports whether a text begins an entry of a list.
func isEntry(s string) bool { return s == "-" || strings.HasPrefix(s, "- ") }

// readBlock reads the list or the fields that the next line begins, at its indentation.
func (r *plainReader) readBlock(indent int) (*Node, bool) {
	if r.deep--; r.deep < 0 {
		return nil, false
	}
	defer func() { r.deep++ }()
	if isEntry(r.text()) {
		return r.readEntries(indent)
	}
	return r.readFields(indent)
}

func (r *plainReader) readEntries(indent int) (*Node, bool) {
	n := r.newNode(List, r.place(1))
	for r.at < len(r.lines) && r.lines[r.at].indent == indent && isEntry(r.text()) {
		l := &r.lines[r.at]
		rest := strings.TrimLeft(r.text()[1:], " ")
		if rest == "" || rest[0] == '#' {
			item, ok := r.readNested(indent, indent+1, 2)
			if !ok {
				return nil, false
			}
			n.Items = append(n.Items, item)
			continue
		}
		start := l.end - len(rest)
		l.indent += start - l.start
		l.start = start
		var item *Node
		var ok bool
		if _, _, _, isField := cutKey(rest); isField || isEntry(rest) {
			item, ok = r.readBlock(l.indent)
		} else if r.deep > 0 {
			item, ok = r.readValue(rest, indent)
		}
		if !ok {
			return nil, false
		}
		n.Items = append(n.Items, item)
	}
	return n, r.at == len(r.lines) || r.lines[r.at].indent < indent || r.lines[r.at].indent == indent && !isEntry(r.text())
}

// readNested reads what is below a line that has no value itself: at an indentation of at least least,
// or nothing. at is where the nothing is.
func (r *plainReader) readNested(_, least, at int) (*Node, bool) {
	empty := r.place(1)
	empty.Col += at - 1
	r.at++
	r.skipEmpty()
	if r.at < len(r.lines) && r.lines[r.at].indent >= least {
		if s := r.text(); !isEntry(s) {
			if _, _, _, ok := cutKey(s); !ok {
				return nil, false // a value on a line of its own
			}
		}
		return r.readBlock(r.lines[r.at].indent)
	}
	return r.newNode(Null, empty), r.deep > 0
}

func (r *plainReader) readFields(indent int) (*Node, bool) {
	n := r.newNode(Mapping, r.place(1))
	for r.at < len(r.lines) && r.lines[r.at].indent == indent {
		s := r.text()
		name, length, rest, ok := cutKey(s)
		if !ok || name == "<<" {
			return nil, false
		}
		f := Field{Name: name, Place: r.place(length)}
		if rest == "" || rest[0] == '#' {
			least := indent + 1
			if next := r.peekEntry(indent); next {
				least = indent
			}
			f.Value, ok = r.readNested(indent, least, len(s)-len(rest)+1)
		} else {
			l := &r.lines[r.at]
			start := l.end - len(rest)
			l.indent += start - l.start
			l.start = start
			if r.deep > 0 {
				f.Value, ok = r.readValue(rest, indent)
			} else {
				ok = false
			}
		}
		if !ok {
			return nil, false
		}
		n.Fields = append(n.Fields, f)
	}
	name, _, _ := doubledField(n.Fields)
	return n, name == "" && (r.at == len(r.lines) || r.lines[r.at].indent < indent)
}

// peekEntry reports whether the line after the next is an entry of a list at an indentation.
func (r *plainReader) peekEntry(indent int) bool {
	for i := r.at + 1; i < len(r.lines); i++ {
		l := &r.lines[i]
		if s := r.src[l.start:l.end]; l.indent >= 0 && s[0] != '#' {
			return l.indent == indent && isEntry(s)
		}
	}
	return false
}

// cutKey takes the name of a field off a text: how long it is, and what stands behind the colon.
func cutKey(s string) (name string, length int, rest string, ok bool) {
	if s == "" {
		return "", 0, "", false
	}
	end := 0
	if s[0] == '"' || s[0] == '\'' {
		if name, end, ok = cutQuoted(s); !ok {
			return "", 0, "", false
		}
	} else {
		for end < len(s) && isKeyByte(s[end]) {
			end++
		}
		if name = s[:end]; name == "" || name[0] == '-' {
			return "", 0, "", false
		}
	}
	if end == len(s) || s[end] != ':' || end+1 < len(s) && s[end+1] != ' ' || end > 128 {
		return "", 0, "", false
	}
	return name, end, strings.TrimLeft(s[end+1:], " "), true
}

func isKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c == '/'
}

// cutQuoted reads the text in quotes that s begins with. One with escapes is not plain.
func cutQuoted(s string) (text string, length int, ok bool) {
	end := strings.IndexByte(s[1:], s[0]) + 1
	if end == 0 || s[0] == '"' && strings.IndexByte(s[1:end], '\\') >= 0 || s[0] == '\'' && end+1 < len(s) && s[end+1] == '\'' {
		return "", 0, false
	}
	return s[1:end], end + 1, true
}

// readValue reads a value on the line of its field or entry, whose indentation is that of above.
func (r *plainReader) readValue(s string, indent int) (*Node, bool) {
	var n *Node
	ok := true
	switch s[0] {
	case '|':
		return r.readText(s, indent)
	case '"', '\'':
		text, length, quoted := cutQuoted(s)
		if !quoted || !isOver(s[length:]) {
			return nil, false
		}
		n = r.newNode(Scalar, r.place(length))
		n.Text, n.Quoted = text, true
	case '[', '{':
		f := flowReader{r: r, s: s, line: r.lines[r.at].number, col: r.lines[r.at].indent + 1}
		if n, ok = f.readValue(); !ok || !isOver(s[f.at:]) {
			return nil, false
		}
	case '&', '*', '!', '>', '%', '@', '`', '#', ',', ']', '}', '?', ':', '-':
		if s[0] != '-' || isEntry(s) || s == "---" {
			return nil, false
		}
		fallthrough
	default:
		text := s
		if i := strings.Index(text, " #"); i >= 0 {
			text = text[:i]
		}
		text = strings.TrimRight(text, " ")
		if strings.Contains(text, ": ") || text[len(text)-1] == ':' {
			return nil, false
		}
		n = r.plainScalar(text, r.place(len(text)))
	}
	r.at++
	r.skipEmpty()
	return n, r.at == len(r.lines) || r.lines[r.at].indent <= indent // a deeper line goes on with the value
}

func (r *plainReader) plainScalar(text string, p Place) *Node {
	if isNull(text) {
		return r.newNode(Null, p)
	}
	n := r.newNode(Scalar, p)
	n.Text = text
	return n
}

// isOver reports whether nothing follows on a line but a comment.
func isOver(rest string) bool {
	trimmed := strings.TrimLeft(rest, " ")
	return trimmed == "" || trimmed[0] == '#' && len(trimmed) < len(rest)
}

// readText reads a block of text after |.
func (r *plainReader) readText(s string, indent int) (*Node, bool) {
	if s != "|" && s != "|-" && s != "|+" {
		return nil, false
	}
	n := r.newNode(Scalar, r.place(1))
	n.Quoted = true
	first := r.at + 1
	for first < len(r.lines) && r.lines[first].indent < 0 {
		first++
	}
	if first == len(r.lines) || r.lines[first].indent <= indent || first > r.at+1 {
		return nil, false // empty, or with blank lines in front
	}
	block, end := r.lines[first].indent, first
	for end < len(r.lines) && (r.lines[end].indent < 0 || r.lines[end].indent >= block) {
		end++
	}
	if end < len(r.lines) && r.lines[end].indent > indent || end == len(r.lines) && r.at+1 == end {
		return nil, false
	}
	last := end // without the blank lines behind
	for last > first && r.lines[last-1].indent < 0 {
		if last--; r.blanks(last) > block {
			return nil, false
		}
	}
	var b strings.Builder
	for i := first; i < last; i++ {
		if l := &r.lines[i]; l.indent >= 0 {
			b.WriteString(r.src[l.start-l.indent+block : l.end])
		} else if l.end > l.start {
			return nil, false
		} else if blanks := r.blanks(i); blanks > block {
			b.WriteString(strings.Repeat(" ", blanks-block))
		}
		b.WriteByte('\n')
	}
	n.Text = b.String()
	switch s {
	case "|-":
		n.Text = strings.TrimSuffix(n.Text, "\n")
	case "|+":
		return nil, false
	}
	r.at = end
	r.skipEmpty()
	return n, true
}

// blanks is how many blanks a blank line has.
func (r *plainReader) blanks(i int) int {
	at := r.lines[i].start
	n := 0
	for at-n > 0 && r.src[at-n-1] == ' ' {
		n++
	}
	return n
}
