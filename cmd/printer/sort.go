package printer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// arrangeRows sorts the rows and leaves out what the page does not want. The error names the columns.
func (t *Table) arrangeRows(p Page) error {
	if p.SortBy != "" {
		at := slices.IndexFunc(t.Columns, func(c Column) bool { return strings.EqualFold(c.Title, p.SortBy) })
		if at < 0 {
			var titles []string
			for _, c := range t.Columns {
				titles = append(titles, strings.ToLower(c.Title))
			}
			return fault.New(fault.Invalid, "--sort-by %s: the table has no such column", p.SortBy).Advise("columns: %s; a field such as .submitted sorts -o json and yaml", strings.Join(titles, ", "))
		}
		slices.SortStableFunc(t.Rows, func(a, b []Cell) int { return CompareTexts(a[at].Text, b[at].Text) })
	}
	if p.Limit > 0 && len(t.Rows) > p.Limit {
		t.Rows = t.Rows[:p.Limit]
	}
	return nil
}

// CompareTexts orders texts as people do: numbers by their size, lengths of time and moments by
// time, runs of digits inside of words by size too. What is not said comes first.
func CompareTexts(a, b string) int {
	if a == "-" {
		a = ""
	}
	if b == "-" {
		b = ""
	}
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil && !strings.Contains(a+b, "_") { // 7_2 is a task of an array
		return cmp.Compare(x, y)
	}
	if s, ok := parseMoment(a); ok {
		if t, ok := parseMoment(b); ok {
			return s.Compare(t)
		}
	}
	if d, err := slurmfmt.ParseSpan(a); err == nil {
		if e, err := slurmfmt.ParseSpan(b); err == nil {
			return cmp.Compare(d, e)
		}
	}
	return compareNatural(a, b)
}

func parseMoment(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

// compareNatural compares texts; runs of digits count as numbers.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		da, db := leadingDigits(a), leadingDigits(b)
		if da != "" && db != "" {
			na, nb := strings.TrimLeft(da, "0"), strings.TrimLeft(db, "0")
			if c := cmp.Or(cmp.Compare(len(na), len(nb)), cmp.Compare(na, nb)); c != 0 {
				return c
			}
			a, b = a[len(da):], b[len(db):]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingDigits(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))] }
