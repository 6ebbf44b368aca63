package printer

import (
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// Reservations is the table of advance reservations, with when each holds next.
func Reservations(list []api.Reservation) *Table {
	t := &Table{Columns: []Column{{Title: "NAME"}, {Title: "FROM"}, {Title: "UNTIL"}, {Title: "EVERY"}, {Title: "NODES"}, {Title: "FOR"}, {Title: "NOTE", Least: 12}}}
	for i := range list {
		r := &list[i]
		from, until := reservedSpan(r)
		t.Rows = append(t.Rows, []Cell{textCell(r.Name), textCell(from), textCell(until), textCell(repeatText(r)), textCell(reservedNodes(r)), textCell(reservedFor(r)), textCell(r.Note)})
	}
	return t
}

func reservedSpan(r *api.Reservation) (from, until string) {
	if r.From == nil || r.Until == nil {
		return "-", "-" // it is over
	}
	return r.From.UTC().Format(time.RFC3339), r.Until.UTC().Format(time.RFC3339)
}

func repeatText(r *api.Reservation) string {
	if r.Ahead > 0 {
		return "floating"
	}
	return r.Every
}

func reservedNodes(r *api.Reservation) string {
	if len(r.Nodes) == 0 {
		return "all"
	}
	return hostlist.Compress(r.Nodes)
}

func reservedFor(r *api.Reservation) string {
	if all := append(append([]string(nil), r.Accounts...), r.Users...); len(all) > 0 {
		return strings.Join(all, ",")
	}
	return "nobody"
}

// Reservation is all of one.
func Reservation(_ Page, r *api.Reservation) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-9s %s\n", name, value)
		}
	}
	line("name", r.Name)
	line("note", r.Note)
	from, until := reservedSpan(r)
	switch {
	case r.From == nil:
		line("time", "over")
	case r.Active:
		line("time", fmt.Sprintf("%s to %s: it holds now", from, until))
	case r.Ahead > 0:
		line("time", fmt.Sprintf("always from %s ahead on", time.Duration(r.Ahead*float64(time.Second))))
	default:
		line("time", from+" to "+until)
	}
	line("lasts", time.Duration(r.Duration*float64(time.Second)).String())
	line("every", r.Every)
	nodes := reservedNodes(r)
	if r.Count > 0 {
		nodes += fmt.Sprintf(" (%d)", r.Count)
	}
	line("nodes", nodes)
	line("accounts", strings.Join(r.Accounts, ","))
	line("users", strings.Join(r.Users, ","))
	if len(r.Accounts)+len(r.Users) == 0 {
		line("for", "nobody: maintenance")
	}
	var flags []string
	for _, f := range []struct {
		is   bool
		name string
	}{{r.Flex, "flex"}, {r.Overlap, "overlap"}, {r.Ignore, "ignore_jobs"}} {
		if f.is {
			flags = append(flags, f.name)
		}
	}
	line("flags", strings.Join(flags, ","))
	return b.String()
}

// ReservationDone is a reservation that was made or changed, and whom it meets.
func ReservationDone(p Page, done *api.ReservationDone) string {
	var b strings.Builder
	b.WriteString(Reservation(p, &done.Reservation))
	for _, l := range done.Late {
		when := "has no promised instant"
		if l.Start != nil {
			when = "was promised " + l.Start.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(&b, "job %s of %s %s, and may start later now\n", l.Job, l.User, when)
	}
	for _, w := range done.Warnings {
		fmt.Fprintln(&b, "warning: "+w)
	}
	return b.String()
}
