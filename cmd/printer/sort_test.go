package printer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/cmd/printer"
)

func TestCompareTexts(t *testing.T) {
	for _, want := range []string{
		"- 2 9 10 1000000", "0:41 10:00 1:00:00 2-00:00:00", "v2 v9 v10 v10a", "2026-11-21T09:00:00Z 2026-11-21T10:00:00.5Z 2027-01-01T00:00:00Z", "7_2 7_10 8 a b",
	} {
		words := strings.Fields(want)
		slices.Reverse(words)
		slices.SortStableFunc(words, printer.CompareTexts)
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestTableAsAsked: a table is sorted by any of its columns, without its header, and bounded.
func TestTableAsAsked(t *testing.T) {
	make := func() *printer.Table {
		t := &printer.Table{Columns: []printer.Column{{Title: "JOB"}, {Title: "TIME", Right: true}}}
		for _, row := range []string{"9 1:00:00", "10 0:41", "8 2-00:00:00"} {
			job, at, _ := strings.Cut(row, " ")
			t.Rows = append(t.Rows, []printer.Cell{{Text: job}, {Text: at}})
		}
		return t
	}
	for by, want := range map[string]string{
		"job": "8    2-00:00:00\n9       1:00:00\n", "TIME": "10      0:41\n9    1:00:00\n",
	} {
		same(t, table(t, make(), printer.Page{ListOptions: printer.ListOptions{NoHeaders: true, SortBy: by, Limit: 2}}), "\n"+want)
	}
	var b strings.Builder
	err := make().Write(&b, printer.Page{ListOptions: printer.ListOptions{SortBy: "size"}})
	if err == nil || !strings.Contains(err.Error(), "--sort-by size: the table has no such column") {
		t.Errorf("%v", err)
	}
}
