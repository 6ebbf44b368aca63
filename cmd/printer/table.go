package printer

import (
	"io"
	"slices"
)

// gap is the number of blanks between two columns.
const gap = 2

// Column is a column of a Table.
type Column struct {
	Title string
	Right bool // numbers stand at the right
	Least int  // on a narrow terminal it may be cut down to so many columns; 0: never cut
	Want  int  // so many columns of it are worth more than the columns that can be spared
	Spare int  // on a narrow terminal it is left out, the smallest number first; 0: never
}

// Cell is one entry of a row.
type Cell struct {
	Text string
	Tone Tone
}

// Table is rows under a header. Rows have as many cells as there are columns.
type Table struct {
	Columns []Column
	Rows    [][]Cell
}

// textCell makes a plain cell.
func textCell(s string) Cell { return Cell{Text: s} }

// Write prints the header and the rows. Without a terminal every cell is whole;
// on one, columns that may be cut are, and no line is longer than the terminal.
func (t *Table) Write(w io.Writer, p Page) error {
	if err := t.arrangeRows(p); err != nil {
		return err
	}
	t.spareColumns(p)
	widths := t.columnWidths(p)
	b := make([]byte, 0, 64<<10)
	if !p.NoHeaders {
		b = t.appendHeader(b, p, widths)
	}
	for _, row := range t.Rows {
		b = t.appendLine(b, p, widths, row)
		if len(b) > 60<<10 {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	_, err := w.Write(b)
	return err
}

// Header prints the header alone for rows that follow one by one; Line prints one
// of them. The columns have the widths of the rows that the table has.
func (t *Table) Header(p Page) string { return string(t.appendHeader(nil, p, t.columnWidths(p))) }

func (t *Table) appendHeader(b []byte, p Page, widths []int) []byte {
	cells := make([]Cell, len(t.Columns))
	for i, c := range t.Columns {
		cells[i] = Cell{Text: c.Title, Tone: Strong}
	}
	return t.appendLine(b, p, widths, cells)
}

func (t *Table) columnWidths(p Page) []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = Width(c.Title)
	}
	for _, row := range t.Rows {
		for i := range row {
			row[i].Text = Clean(row[i].Text)
			if row[i].Text == "" {
				row[i].Text = "-"
				row[i].Tone = Dim
			}
			widths[i] = max(widths[i], Width(row[i].Text))
		}
	}
	if p.Width > 0 {
		t.fitWidths(widths, p.Width)
	}
	return widths
}

// spareColumns leaves out columns that can be spared, one after the other, while the terminal is too
// narrow for what the others want.
func (t *Table) spareColumns(p Page) {
	for p.Width > 0 {
		widths := t.columnWidths(Page{})
		need, least := gap*(len(widths)-1), -1
		for i, c := range t.Columns {
			switch {
			case c.Want > 0:
				need += min(widths[i], max(c.Want, Width(c.Title)))
			case c.Least > 0:
				need += min(widths[i], max(c.Least, Width(c.Title)))
			default:
				need += widths[i]
			}
			if c.Spare > 0 && (least < 0 || c.Spare < t.Columns[least].Spare) {
				least = i
			}
		}
		if need <= p.Width || least < 0 {
			return
		}
		t.Columns = slices.Delete(slices.Clone(t.Columns), least, least+1)
		rows := make([][]Cell, len(t.Rows))
		for i, row := range t.Rows {
			rows[i] = slices.Delete(slices.Clone(row), least, least+1)
		}
		t.Rows = rows
	}
}

// fitWidths takes columns from those that may be cut, the widest first, until the table
// fits or nothing more can be taken.
func (t *Table) fitWidths(widths []int, room int) {
	need := gap * (len(widths) - 1)
	for _, w := range widths {
		need += w
	}
	for ; need > room; need-- {
		widest := t.widestOf(widths, func(c Column) int { return max(c.Least, c.Want) })
		if widest < 0 {
			widest = t.widestOf(widths, func(c Column) int { return c.Least })
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// widestOf is the widest column that may be cut and is wider than it has to be, -1 if there is none.
func (t *Table) widestOf(widths []int, least func(Column) int) int {
	widest := -1
	for i, c := range t.Columns {
		if c.Least > 0 && widths[i] > max(least(c), Width(c.Title)) && (widest < 0 || widths[i] > widths[widest]) {
			widest = i
		}
	}
	return widest
}

// appendLine appends one line. The last column is not padded; what is beyond the edge
// of a terminal is cut, because a wrapped line makes a table unreadable.
func (t *Table) appendLine(b []byte, p Page, widths []int, row []Cell) []byte {
	at := 0
	for i, c := range row {
		room := widths[i]
		if p.Width > 0 {
			room = min(room, p.Width-at)
		}
		if room <= 0 {
			break
		}
		s := Cut(c.Text, room)
		blank := room - Width(s)
		if t.Columns[i].Right {
			b = padWidth(b, blank)
		}
		b = append(b, p.Paint(c.Tone, s)...)
		at += widths[i] + gap
		if i == len(row)-1 || p.Width > 0 && at >= p.Width {
			break
		}
		if !t.Columns[i].Right {
			b = padWidth(b, blank)
		}
		b = padWidth(b, gap)
	}
	return append(b, '\n')
}
