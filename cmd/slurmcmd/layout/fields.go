package layout

import (
	"strconv"
	"strings"
)

// Field is a column of the tables that Slurm's commands about accounting print: a name
// and a line below it, values cut to a width.
type Field struct {
	Name  string
	Width int  // negative: values stand left
	Whole bool // values are never cut
}

// widest bounds what somebody may ask a column to be.
const widest = 1 << 16

// Fields reads the form of -o of these commands: names with a width behind a percent
// sign. find returns the field of a name; all that it does not know is an *Error.
func Fields(spec string, find func(name string) (int, bool), width func(field int) int) (fields, widths []int, err error) {
	for _, part := range strings.Split(spec, ",") {
		if part == "" {
			continue
		}
		name, size, sized := strings.Cut(part, "%")
		i, ok := find(name)
		if !ok {
			return nil, nil, &Error{name}
		}
		w := width(i)
		if sized {
			if n, err := strconv.Atoi(size); err == nil && n != 0 {
				w = max(-widest, min(n, widest))
			}
		}
		fields, widths = append(fields, i), append(widths, w)
	}
	return fields, widths, nil
}

// Table is how fields are printed.
type Table struct {
	Fields    []Field
	Delimiter string // between values, which are not cut then; "": they stand in columns
	Last      bool   // the delimiter stands behind the last one too
	NoHeader  bool
}

// Head appends the names of the columns, with a line below them.
func (t *Table) Head(b []byte) []byte {
	if t.NoHeader {
		return b
	}
	f := t.makeFormat(false)
	b = f.Append(b, func(b []byte, i int) []byte { return append(b, t.Fields[i].Name...) })
	if t.Delimiter == "" {
		b = f.Append(b, func(b []byte, i int) []byte { return append(b, strings.Repeat("-", f[i].Width)...) })
	}
	return b
}

// Row appends a line of values.
func (t *Table) Row(b []byte, value func(field int) string) []byte {
	return t.makeFormat(true).Append(b, func(b []byte, i int) []byte { return append(b, value(i)...) })
}

func (t *Table) makeFormat(mark bool) Format {
	f := make(Format, len(t.Fields))
	for i, x := range t.Fields {
		f[i] = Column{Field: i, Width: max(x.Width, -x.Width), Right: x.Width >= 0, Mark: mark, Whole: x.Whole && mark, After: " "}
		if t.Delimiter == "" {
			continue
		}
		f[i] = Column{Field: i, After: t.Delimiter}
		if i == len(t.Fields)-1 && !t.Last {
			f[i].After = ""
		}
	}
	return f
}
