// Package layout reads the two ways in which Slurm's commands are told what to print,
// and prints rows so.
//
//	-o "%.18i %9P%j"          a letter per column: dot for right-aligned, width, letter, then text
//	-O "jobid:10,name:.20|"   a name per column; behind a colon a dot, a width and a suffix
//
// A value longer than its width is cut. It knows no columns: the caller finds them by
// letter or name.
package layout

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Column is one column of a format. Field is the caller's index.
type Column struct {
	Field  int
	Width  int // 0: as wide as the value
	Right  bool
	Mark   bool   // a + stands where a value was cut, as sacct has it
	Whole  bool   // never cut, as Slurm has it for lists of nodes
	Before string // text in front
	After  string // text behind
}

// Format is what one row looks like.
type Format []Column

// Letters reads the form of -o. find returns the field of a letter; a letter without
// a field, with its text behind it, stays as it is written, and is reported once.
func Letters(spec string, find func(letter byte) (field int, ok bool), unknown func(text string)) Format {
	var f Format
	text, rest, _ := strings.Cut(spec, "%")
	before := text
	if rest == "" && !strings.Contains(spec, "%") {
		unknown(spec)
		return Format{{Field: -1, Before: spec}}
	}
	for rest != "" {
		part := rest
		if i := strings.IndexByte(rest, '%'); i >= 0 {
			part, rest = rest[:i], rest[i+1:]
		} else {
			rest = ""
		}
		c := Column{Before: before}
		before = ""
		if part == "" && rest != "" { // %% is a percent sign
			part, rest, _ = strings.Cut(rest, "%")
			f = append(f, Column{Field: -1, Before: c.Before, After: "%" + part})
			continue
		}
		whole := "%" + part
		if strings.HasPrefix(part, ".") {
			c.Right, part = true, part[1:]
		}
		n := 0
		for n < len(part) && part[n] >= '0' && part[n] <= '9' {
			n++
		}
		c.Width, _ = strconv.Atoi(part[:min(n, 6)])
		part = part[n:]
		field, ok := -1, false
		if part != "" {
			field, ok = find(part[0])
		}
		if !ok {
			unknown(part)
			f = append(f, Column{Field: -1, Before: c.Before, After: whole})
			continue
		}
		c.Field, c.After = field, part[1:]
		f = append(f, c)
	}
	return f
}

// Error is a wrong format, in Slurm's words.
type Error struct{ Text string }

// Error is the text.
func (e *Error) Error() string { return e.Text }

// Names reads the form of -O. Its error is an *Error. width is that of a column without a
// colon. What follows the digits behind the colon is the column's suffix; without digits the
// column is as wide as its value, as in Slurm.
func Names(spec string, width int, find func(name string) (field int, ok bool)) (Format, error) {
	var f Format
	for _, part := range strings.Split(spec, ",") {
		name, size, sized := strings.Cut(part, ":")
		field, ok := find(strings.ToLower(strings.TrimSpace(name)))
		if !ok {
			return nil, &Error{"Invalid job format specification: " + name}
		}
		c := Column{Field: field, Width: width}
		if sized {
			size, c.Right = strings.CutPrefix(size, ".")
			digits := 0
			for digits < len(size) && size[digits] >= '0' && size[digits] <= '9' {
				digits++
			}
			c.Width, _ = strconv.Atoi(size[:min(digits, 6)])
			c.After = size[digits:]
		}
		f = append(f, c)
	}
	return f, nil
}

// Append appends one row, a newline behind it. value appends the value of a field.
func (f Format) Append(b []byte, value func(b []byte, field int) []byte) []byte {
	for i := range f {
		c := &f[i]
		b = append(b, c.Before...)
		if c.Field >= 0 {
			from := len(b)
			b = c.fitWidth(value(b, c.Field), from)
		}
		b = append(b, c.After...)
	}
	return append(b, '\n')
}

// Keep marks the columns of some fields as never cut.
func (f Format) Keep(whole func(field int) bool) {
	for i := range f {
		f[i].Whole = f[i].Field >= 0 && whole(f[i].Field)
	}
}

// fitWidth makes what stands behind from as wide as the column.
func (c *Column) fitWidth(b []byte, from int) []byte {
	if c.Width == 0 {
		return b
	}
	n := len(b) - from
	for _, x := range b[from:] {
		if x&0xC0 == 0x80 {
			n-- // bytes behind the first of a letter take no room
		}
	}
	if n > c.Width && c.Whole {
		return b
	}
	if n > c.Width {
		at := from
		keep := c.Width
		if c.Mark {
			keep--
		}
		for range keep {
			_, size := utf8.DecodeRune(b[at:])
			at += size
		}
		if b = b[:at]; c.Mark {
			b = append(b, '+')
		}
		return b
	}
	pad := c.Width - n
	for range pad {
		b = append(b, ' ')
	}
	if c.Right && pad > 0 {
		copy(b[from+pad:], b[from:len(b)-pad])
		for i := range pad {
			b[from+i] = ' '
		}
	}
	return b
}
