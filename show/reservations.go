package show

import (
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/account"
	"github.com/coxswain-sched/coxswain/hostlist"
)

// Reservations is the table of advance reservations, with when each holds next.
func Reservations(list []account.Reservation, now time.Time) *Table {
	t := &Table{Columns: []Column{{Title: "NAME"}, {Title: "FROM"}, {Title: "UNTIL"}, {Title: "EVERY"}, {Title: "NODES"}, {Title: "FOR"}, {Title: "NOTE", Least: 12}}}
	for i := range list {
		r := &list[i]
		from, until := "-", "-"
		if w, ok := r.Window(); ok {
			if begin, end, ok := w.Next(now.UnixNano()); ok {
				from, until = time.Unix(0, begin).UTC().Format(time.RFC3339), time.Unix(0, end).UTC().Format(time.RFC3339)
			}
		}
		nodes, whom := "all", "nobody"
		if len(r.Nodes) > 0 {
			nodes = hostlist.Compress(r.Nodes)
		}
		if all := append(append([]string(nil), r.Accounts...), r.Users...); len(all) > 0 {
			whom = strings.Join(all, ",")
		}
		every := r.Every
		if r.Ahead > 0 {
			every = "floating"
		}
		t.Rows = append(t.Rows, []Cell{text(r.Name), text(from), text(until), text(every), text(nodes), text(whom), text(r.Note)})
	}
	return t
}
