package fastclient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// Table is a list as text, read whole: one row per line, cells between tabs.
type Table struct {
	buf   []byte
	at    []uint32 // of every cell its first byte, width of them a row, and one behind the last
	width int
}

// Table reads a list as text whose rows have width cells each.
func (r *Response) Table(width int) (*Table, error) {
	if r.Media != api.TSV {
		return nil, fmt.Errorf("the server answered with %q instead of a table", r.Media)
	}
	b, err := r.All()
	switch {
	case err != nil:
		return nil, err
	case len(b) > 0 && b[len(b)-1] != '\n':
		return nil, io.ErrUnexpectedEOF
	case uint64(len(b)) >= 1<<32:
		return nil, errors.New("the server's table is larger than 4 GiB")
	}
	return NewTable(b, width)
}

// NewTable takes lines apart whose last one ends with a newline. The Table keeps b.
func NewTable(b []byte, width int) (*Table, error) {
	t := &Table{buf: b, width: width, at: make([]uint32, 0, len(b)/8+1)}
	for from := 0; from < len(b); {
		end := bytes.IndexByte(b[from:], '\n')
		if end < 0 {
			end = len(b) - from
		}
		line, n := b[from:from+end], 1
		t.at = append(t.at, uint32(from))
		for at := 0; ; n++ {
			tab := bytes.IndexByte(line[at:], '\t')
			if tab < 0 {
				break
			}
			at += tab + 1
			t.at = append(t.at, uint32(from+at))
		}
		if n != width {
			return nil, fmt.Errorf("a row of the server's table has %d cells instead of %d: is cox-slurm of the same version as the server?", n, width)
		}
		from += end + 1
	}
	t.at = append(t.at, uint32(len(b)))
	return t, nil
}

// Len is the number of rows.
func (t *Table) Len() int { return (len(t.at) - 1) / t.width }

// Cell returns a cell without its escapes. It must not be written to.
func (t *Table) Cell(row, col int) []byte {
	i := row*t.width + col
	cell := t.buf[t.at[i] : t.at[i+1]-1]
	if bytes.IndexByte(cell, '\\') < 0 {
		return cell
	}
	return unescapeCell(cell)
}

func unescapeCell(cell []byte) []byte {
	out := make([]byte, 0, len(cell))
	for i := 0; i < len(cell); i++ {
		c := cell[i]
		if c == '\\' && i+1 < len(cell) {
			i++
			switch c = cell[i]; c {
			case 't':
				c = '\t'
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			}
		}
		out = append(out, c)
	}
	return out
}

// Query makes a path with parameters; those with an empty value are left out.
func Query(path string, params ...string) string {
	var b strings.Builder
	b.WriteString(path)
	sep := byte('?')
	for i := 0; i+1 < len(params); i += 2 {
		if params[i+1] == "" {
			continue
		}
		b.WriteByte(sep)
		b.WriteString(params[i])
		b.WriteByte('=')
		escapeCell(&b, params[i+1])
		sep = '&'
	}
	return b.String()
}

// Segment escapes one part of a path.
func Segment(s string) string {
	var b strings.Builder
	escapeCell(&b, s)
	return b.String()
}

func escapeCell(b *strings.Builder, s string) {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == '~', c == ',':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte("0123456789ABCDEF"[c>>4])
			b.WriteByte("0123456789ABCDEF"[c&15])
		}
	}
}
