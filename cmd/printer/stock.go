package printer

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// StockTable is the table of the nodes of a pool whose engine drives another system: its
// states and administrators' reasons beside ours, and what ours hold beside what others do.
func StockTable(inv *fleet.Inventory, ours []api.Node) *Table {
	t := &Table{Columns: []Column{
		{Title: "NODE"},
		{Title: "STATE"},
		{Title: "THERE"},
		{Title: "CPUS", Right: true},
		{Title: "OURS", Right: true},
		{Title: "OTHERS", Right: true},
		{Title: "GPUS", Right: true},
		{Title: "OURS", Right: true},
		{Title: "OTHERS", Right: true},
		{Title: "PARTITIONS", Least: 10},
		{Title: "RESERVATION"},
		{Title: "WHY", Least: 12},
	}}
	for i := range inv.Nodes {
		n := &inv.Nodes[i]
		state, why := string(n.Level), n.Why
		if k := slices.IndexFunc(ours, func(o api.Node) bool { return o.Name == n.Name }); k >= 0 && ours[k].State != state {
			state = ours[k].State // an administrator's of Coxswain
			why = strings.Trim(ours[k].Why+"; "+why, "; ")
		}
		t.Rows = append(t.Rows, []Cell{
			{Text: n.Name, Tone: Accent},
			{Text: state, Tone: NodeTone(state)},
			textCell(n.State),
			textCell(strconv.Itoa(n.CPUs)), textCell(ifAny(n.CPUsOurs)), textCell(ifAny(n.CPUsOthers)),
			textCell(strconv.Itoa(n.GPUs)), textCell(ifAny(n.GPUsOurs)), textCell(ifAny(n.GPUsOthers)),
			textCell(strings.Join(n.Partitions, ",")), textCell(n.Reservation),
			{Text: why, Tone: Warn},
		})
	}
	return t
}

// ifAny is a number that says something only if it is not 0.
func ifAny(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Stock prints what a pool has beside its nodes.
func Stock(w io.Writer, p Page, inv *fleet.Inventory, now time.Time) error {
	part := func(title string, t *Table) error {
		if len(t.Rows) == 0 {
			return nil
		}
		if _, err := fmt.Fprintf(w, "\n%s\n", p.Paint(Strong, title)); err != nil {
			return err
		}
		return t.Write(w, p)
	}
	head := "as its engine found it " + p.Time(inv.Taken)
	for _, u := range inv.Unknown {
		head += "\nnot known: " + Clean(u)
	}
	if _, err := fmt.Fprintf(w, "\n%s\n", head); err != nil {
		return err
	}
	for _, s := range []struct {
		title string
		table *Table
	}{
		{"partitions", partitionStock(inv)},
		{"qos", qosStock(inv)},
		{"reservations", reservationStock(p, inv, now)},
		{"licences", licenseStock(inv)},
		{"jobs there, by user and partition", useStock(inv)},
	} {
		if err := part(s.title, s.table); err != nil {
			return err
		}
	}
	return nil
}

func partitionStock(inv *fleet.Inventory) *Table {
	t := &Table{Columns: []Column{
		{Title: "PARTITION"}, {Title: "STATE"}, {Title: "MAX TIME", Right: true}, {Title: "MAX NODES", Right: true}, {Title: "TIER", Right: true}, {Title: "NODES", Least: 10}, {Title: "FOR", Least: 12},
	}}
	for i := range inv.Partitions {
		q := &inv.Partitions[i]
		name, tone := q.Name, Good
		if q.Default {
			name += "*"
		}
		if q.State != "UP" {
			tone = Warn
		}
		t.Rows = append(t.Rows, []Cell{
			{Text: name, Tone: Accent}, {Text: q.State, Tone: tone}, textCell(limitOf(q.MaxTime)), textCell(cmp.Or(ifAny(q.MaxNodes), "-")), textCell(ifAny(q.Priority)), textCell(q.Nodes), textCell(allowedText(q)),
		})
	}
	return t
}

// allowedText says who may use a partition; empty: everybody.
func allowedText(q *fleet.Partition) string {
	var out []string
	for _, x := range []struct {
		what string
		list []string
	}{{"accounts ", q.Accounts}, {"no account ", q.DenyAccounts}, {"qos ", q.AllowQOS}, {"no qos ", q.DenyQOS}, {"groups ", q.Groups}} {
		if len(x.list) > 0 {
			out = append(out, x.what+strings.Join(x.list, ","))
		}
	}
	if q.QOS != "" {
		out = append(out, "limits of qos "+q.QOS)
	}
	return strings.Join(out, "; ")
}

func limitOf(seconds int64) string {
	if seconds == 0 {
		return "-"
	}
	return Duration(time.Duration(seconds) * time.Second)
}

func qosStock(inv *fleet.Inventory) *Table {
	t := &Table{Columns: []Column{
		{Title: "QOS"}, {Title: "PRIORITY", Right: true}, {Title: "MAX TIME", Right: true}, {Title: "JOBS/USER", Right: true}, {Title: "A JOB"}, {Title: "A USER"}, {Title: "TOGETHER"}, {Title: "FLAGS", Least: 10},
	}}
	for i := range inv.QOS {
		q := &inv.QOS[i]
		t.Rows = append(t.Rows, []Cell{
			{Text: q.Name, Tone: Accent},
			textCell(strconv.FormatInt(q.Priority, 10)), textCell(limitOf(q.MaxTime)), textCell(cmp.Or(ifAny(q.MaxJobsPerUser), "-")),
			textCell(q.MaxPerJob), textCell(q.MaxPerUser), textCell(q.Group), textCell(strings.Join(q.Flags, ",")),
		})
	}
	return t
}

func reservationStock(p Page, inv *fleet.Inventory, now time.Time) *Table {
	t := &Table{Columns: []Column{{Title: "RESERVATION"}, {Title: "STATE"}, {Title: "FROM"}, {Title: "TO"}, {Title: "NODES", Least: 10}, {Title: "FOR", Least: 10}, {Title: "FLAGS", Least: 8}}}
	for i := range inv.Reservations {
		r := &inv.Reservations[i]
		state := "later"
		switch {
		case !now.Before(r.End):
			state = "over"
		case !now.Before(r.Start):
			state = "now"
		}
		whose := slices.Concat(r.Users, r.Accounts, r.Groups)
		t.Rows = append(t.Rows, []Cell{
			{Text: r.Name, Tone: Accent}, textCell(state), textCell(p.Time(r.Start)), textCell(p.Time(r.End)), textCell(r.Nodes), textCell(strings.Join(whose, ",")), textCell(strings.Join(r.Flags, ",")),
		})
	}
	return t
}

func licenseStock(inv *fleet.Inventory) *Table {
	t := &Table{Columns: []Column{{Title: "LICENCE"}, {Title: "USED", Right: true}, {Title: "TOTAL", Right: true}}}
	for _, l := range inv.Licenses {
		t.Rows = append(t.Rows, []Cell{{Text: l.Name, Tone: Accent}, textCell(strconv.FormatInt(l.Used, 10)), textCell(strconv.FormatInt(l.Total, 10))})
	}
	return t
}

func useStock(inv *fleet.Inventory) *Table {
	t := &Table{Columns: []Column{
		{Title: "USER"}, {Title: "PARTITION"}, {Title: "BY"}, {Title: "RUNNING", Right: true}, {Title: "WAITING", Right: true}, {Title: "NODES", Right: true}, {Title: "CPUS", Right: true}, {Title: "GPUS", Right: true},
	}}
	for i := range inv.Use {
		u := &inv.Use[i]
		by := "others"
		if u.Ours {
			by = "coxswain"
		}
		t.Rows = append(t.Rows, []Cell{
			{Text: cmp.Or(u.User, "(others)"), Tone: Accent},
			textCell(u.Partition), textCell(by), textCell(strconv.Itoa(u.Running)), textCell(strconv.Itoa(u.Waiting)),
			textCell(ifAny(u.Nodes)), textCell(ifAny(u.CPUs)), textCell(ifAny(u.GPUs)),
		})
	}
	return t
}

// AssociationTable is the table of associations.
func AssociationTable(inv *fleet.Inventory) *Table {
	t := &Table{Columns: []Column{
		{Title: "ACCOUNT"}, {Title: "UNDER"}, {Title: "USER"}, {Title: "SHARES", Right: true}, {Title: "MAX TIME", Right: true}, {Title: "JOBS", Right: true}, {Title: "A JOB"}, {Title: "TOGETHER"}, {Title: "QOS", Least: 8},
	}}
	for i := range inv.Associations {
		a := &inv.Associations[i]
		user := a.User
		if a.Default {
			user += "*"
		}
		t.Rows = append(t.Rows, []Cell{
			{Text: a.Account, Tone: Accent},
			textCell(a.Parent), textCell(user), textCell(ifAny(a.Shares)), textCell(limitOf(a.MaxTime)), textCell(cmp.Or(ifAny(a.MaxJobs), "-")),
			textCell(a.MaxPerJob), textCell(a.Group), textCell(strings.Join(a.QOS, ",")),
		})
	}
	return t
}
