package printer

import "github.com/coxswain-sched/coxswain/api"

// Secrets is the table of a user's secrets.
func Secrets(p Page, list []api.Secret) *Table {
	t := &Table{Columns: []Column{{Title: "NAME"}, {Title: "SIZE"}, {Title: "CHANGED"}}}
	for i := range list {
		s := &list[i]
		t.Rows = append(t.Rows, []Cell{textCell(s.Name), textCell(Bytes(s.Bytes)), textCell(p.Time(s.Changed))})
	}
	return t
}
