package printer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// Licenses is the table of licences.
func Licenses(list []api.License) *Table {
	t := &Table{Columns: []Column{{Title: "LICENCE"}, {Title: "TOTAL", Right: true}, {Title: "USED", Right: true}, {Title: "FREE", Right: true}, {Title: "WANTED", Right: true}, {Title: "HOLDERS", Least: 12}}}
	for i := range list {
		l := &list[i]
		var holders []string
		for _, h := range l.Holders {
			holders = append(holders, fmt.Sprintf("%s(%s):%d", h.Job, h.User, h.Count))
		}
		n := func(v int64) Cell { return textCell(strconv.FormatInt(v, 10)) }
		t.Rows = append(t.Rows, []Cell{{Text: l.Name, Tone: Accent}, n(l.Total), n(l.Used), n(max(l.Total-l.Used, 0)), n(l.Wanted), textCell(strings.Join(holders, ","))})
	}
	return t
}
