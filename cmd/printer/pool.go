package printer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// Pools is the table of pools. The one for jobs that name none has a star.
func Pools(list []api.Pool) *Table {
	t := &Table{Columns: []Column{{Title: "POOL"}, {Title: "ENGINE"}, {Title: "STATE"}, {Title: "NODES", Right: true}, {Title: "GPUS", Right: true}, {Title: "JOBS", Right: true}, {Title: "GANGS"}, {Title: "WHY", Least: 12}}}
	for i := range list {
		p := &list[i]
		name := p.Name
		if p.Default {
			name += "*"
		}
		t.Rows = append(t.Rows, []Cell{
			{Text: name, Tone: Accent},
			textCell(engineOf(p)),
			{Text: p.State, Tone: PoolTone(p.State)},
			textCell(strconv.Itoa(p.Nodes)),
			textCell(fmt.Sprintf("%d/%d", p.DevicesUsed, p.Devices)), textCell(strconv.Itoa(p.Jobs)), textCell(p.Gang),
			{Text: p.Why, Tone: Warn},
		})
	}
	return t
}

func engineOf(p *api.Pool) string { return strings.TrimSpace(p.Engine + " " + p.Version) }

// PoolTone is the tone of a pool's state.
func PoolTone(state string) Tone {
	switch state {
	case api.PoolUp:
		return Good
	case api.PoolOpening:
		return Warn
	}
	return Bad
}

// Pool is the card of a pool.
func Pool(p Page, l *api.Pool) string {
	c := card{p: p}
	c.head("%s: engine %s, %s", l.Name, engineOf(l), l.State)
	c.fact("why", l.Why)
	if !l.Heard.IsZero() {
		c.fact("heard", p.Time(l.Heard))
	}
	if l.Default {
		c.fact("default", "jobs that name no pool go there")
	}
	c.fact("nodes", strconv.Itoa(l.Nodes))
	c.fact("gpus", fmt.Sprintf("%d, of which %d are held", l.Devices, l.DevicesUsed))
	c.fact("jobs", strconv.Itoa(l.Jobs))
	c.fact("gangs", l.Gang)
	c.fact("can", strings.Join(l.Abilities, ", "))
	for i, n := range l.Notes {
		c.fact([]string{"notes", ""}[min(i, 1)], n)
	}
	if !l.Added.IsZero() {
		c.fact("added", p.Time(l.Added)+" by "+l.By)
	} else if l.State != api.PoolGone {
		c.fact("added", "no: it is of the server's configuration")
	}
	c.fact("settings", string(l.Settings))
	return c.b.String()
}

// Findings are what was looked at, one a line, with what would mend it; of several that the same
// mends, behind the last.
func Findings(p Page, list []api.Finding) string {
	var b strings.Builder
	wide := 0
	for i := range list {
		wide = max(wide, Width(Clean(list[i].What)))
	}
	for i := range list {
		f := &list[i]
		tone := map[string]Tone{"found": Good, "ok": Good, "warning": Warn}[f.State]
		if tone == Plain {
			tone = Bad
		}
		what := Clean(f.What)
		fmt.Fprintf(&b, "%s%s  %s%s  %s\n", p.Paint(tone, Clean(f.State)), strings.Repeat(" ", max(len("missing")-len(f.State), 0)),
			what, strings.Repeat(" ", wide-Width(what)), Clean(f.Text))
		if f.Mend != "" && (i+1 == len(list) || list[i+1].Mend != f.Mend) {
			b.WriteString(strings.Repeat(" ", len("missing")+2+wide+2) + p.Paint(Accent, Clean(f.Mend)) + "\n")
		}
	}
	return b.String()
}
