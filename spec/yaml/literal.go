package yaml

import (
	"strings"

	"github.com/coxswain-sched/coxswain/spec"
)

// header is what stands behind | or >.
type header struct {
	folded bool
	indent int  // columns beyond the parent; 0: as the first line has it
	chomp  byte // '-' no line end at the end, '+' all of them, 0 one
}

func (r *reader) header() (header, *spec.Error) {
	h := header{folded: r.peek() == '>'}
	from := r.pos
	for r.pos++; !r.blankAt(0); r.pos++ {
		switch c := r.peek(); {
		case (c == '-' || c == '+') && h.chomp == 0:
			h.chomp = c
		case c >= '1' && c <= '9' && h.indent == 0:
			h.indent = int(c - '0')
		default:
			return h, r.fail(r.pos, 1, "does not belong behind "+r.src[from:from+1], "forms: |, |-, |+, |2; the text begins on the next line")
		}
	}
	if !r.lineDone() {
		return h, r.behindHeader(from)
	}
	return h, nil
}

func (r *reader) behindHeader(from int) *spec.Error {
	rest := strings.TrimRight(r.doc.Line(r.line)[r.col():], " ")
	return r.fail(r.pos, len(rest), "stands behind "+r.src[from:from+1], "begin the text on the next line")
}

// literal reads a block of text, | or >, that belongs to something at indentation
// parent.
func (r *reader) literal(parent int) (*Node, *spec.Error) {
	n := &Node{Kind: Scalar, Quoted: true, Place: r.place(1)}
	h, err := r.header()
	if err != nil {
		return nil, err
	}
	indent := 0
	if h.indent > 0 {
		indent = max(parent, 0) + h.indent
	}
	var lines []string
	for r.pos+1 < len(r.src) {
		line := r.src[r.pos+1:]
		line = line[:strings.IndexByte(line, '\n')]
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		if strings.TrimLeft(line[spaces:], "\t ") != "" { // else it is empty, whatever its indentation
			if indent == 0 && spaces > max(parent, 0) {
				indent = spaces
			}
			if indent == 0 || spaces < indent {
				break
			}
		}
		r.newline()
		r.pos += len(line)
		lines = append(lines, line)
	}
	for i, line := range lines {
		if indent > 0 && len(line) > indent && strings.TrimLeft(line[:indent], " ") == "" {
			lines[i] = line[indent:]
		} else {
			lines[i] = ""
		}
	}
	n.Text = h.join(lines)
	return n, nil
}

// join makes one text of lines.
func (h header) join(lines []string) string {
	end := len(lines)
	for end > 0 && lines[end-1] == "" {
		end--
	}
	var b strings.Builder
	if h.folded {
		fold(&b, lines[:end])
	} else {
		b.WriteString(strings.Join(lines[:end], "\n"))
	}
	switch {
	case h.chomp == '+':
		if end > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.Repeat("\n", len(lines)-end))
	case h.chomp == 0 && end > 0:
		b.WriteByte('\n')
	}
	return b.String()
}

// fold joins lines by blanks. Empty lines are line breaks, and lines that begin with
// a blank keep theirs.
func fold(b *strings.Builder, lines []string) {
	empty, first, indented := 0, true, false
	for _, line := range lines {
		if line == "" {
			empty++
			continue
		}
		deeper := line[0] == ' ' || line[0] == '\t'
		switch {
		case first:
			b.WriteString(strings.Repeat("\n", empty))
		case deeper || indented:
			b.WriteString(strings.Repeat("\n", empty+1))
		case empty > 0:
			b.WriteString(strings.Repeat("\n", empty))
		default:
			b.WriteByte(' ')
		}
		b.WriteString(line)
		empty, first, indented = 0, false, deeper
	}
}
