package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Source is a text and the name by which its user knows it; "-" is standard
// input.
type Source struct {
	Name string
	Data []byte
}

// Warning is something that was read and will not have the effect that its
// writer may expect. Line and Col count from 1; 0 means the text as a whole, or
// that File is not a file ("command line").
type Warning struct {
	File      string
	Line, Col int
	Option    string // as written, such as "--mail-user" or "-k"; may be empty
	Message   string // completes a sentence that begins with Option
}

// String prints "train.sbatch:7: --mail-user has no effect".
func (w Warning) String() string {
	return placeText(w.File, w.Line) + strings.TrimSpace(w.Option+" "+w.Message)
}

// Error is a text that cannot be taken. It prints in up to four lines: place and
// message, the line itself, a caret below the part that is wrong, the remedy.
type Error struct {
	File      string
	Line, Col int    // from 1; 0 means the text as a whole
	Text      string // the line as written; empty if there is none to show
	Len       int    // bytes of Text from Col that are wrong
	ShowCol   bool   // print the column with the place, for texts in which it matters
	Message   string // one line, without place
	Remedy    string // what would be right; may be empty
	Others    []*Error
}

// FaultKind is fault.Invalid.
func (e *Error) FaultKind() fault.Kind { return fault.Invalid }

// Error prints this error and the others of the same text after it.
func (e *Error) Error() string {
	var b strings.Builder
	e.writeText(&b)
	for _, o := range e.Others {
		b.WriteByte('\n')
		o.writeText(&b)
	}
	return b.String()
}

func (e *Error) writeText(b *strings.Builder) {
	place := placeText(e.File, e.Line)
	if e.ShowCol && e.File != "" && e.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Col)
	}
	b.WriteString(place + e.Message)
	if e.Text != "" {
		line, from, to := excerptLine(e.Text, e.Col-1, e.Len)
		b.WriteString("\n      " + line)
		if e.Col > 0 {
			b.WriteString("\n      " + strings.Repeat(" ", from) + strings.Repeat("^", max(to-from, 1)))
		}
	}
	if e.Remedy != "" {
		b.WriteString("\n  " + e.Remedy)
	}
}

func placeText(file string, line int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return file + ": "
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

// excerptLine makes a line printable, shortens it around the marked bytes, and
// returns where the mark stands in it, in columns.
func excerptLine(text string, at, length int) (line string, from, to int) {
	const width, far = 100, 1000 // bytes further than that from the mark are not shown anyway
	at = min(max(at, 0), len(text))
	end := min(at+min(length, far), len(text))
	if cut := at - far; cut > 0 {
		text, at, end = text[cut:], at-cut, end-cut
	}
	text = text[:min(len(text), end+far)]
	var cells []string
	for i, r := range text {
		cell := string(r)
		switch {
		case r == '\t':
			cell = " "
		case r == utf8.RuneError || !unicode.IsPrint(r):
			cell = fmt.Sprintf("<%04X>", r)
		}
		if i < at {
			from++
		}
		if i < end {
			to++
		}
		cells = append(cells, cell)
	}
	first, last := 0, len(cells)
	if len(cells) > width {
		first = min(max(from-width/3, 0), len(cells)-width)
		last = first + width
		to = min(to, last)
	}
	before, marked := columnCount(cells[first:from]), columnCount(cells[from:to])
	line = strings.TrimRight(strings.Join(cells[first:last], ""), " ")
	if first > 0 {
		line, before = "…"+line, before+1
	}
	if last < len(cells) {
		line += "…"
	}
	return line, before, before + marked
}

// columnCount is the number of characters in the cells.
func columnCount(cells []string) int {
	n := 0
	for _, c := range cells {
		n += utf8.RuneCountInString(c)
	}
	return n
}

// Join returns the errors as one, ordered by line, or nil if there are none. At
// most ten are shown.
func Join(errs []*Error) error {
	if len(errs) == 0 {
		return nil
	}
	sorted := slices.Clone(errs)
	slices.SortStableFunc(sorted, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	first := *sorted[0]
	rest := sorted[1:]
	if n := len(rest) - 9; n > 0 {
		rest = append(rest[:9:9], &Error{File: first.File, Message: fmt.Sprintf("%d more errors", n)})
	}
	first.Others = rest
	return &first
}
