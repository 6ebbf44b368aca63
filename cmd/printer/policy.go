package printer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// PolicyChanges is what a document says differently from the rules in force, what
// that does at once, and what its writer may not expect.
func PolicyChanges(p Page, d *api.PolicyDone) string {
	var b strings.Builder
	for i := range d.Changes {
		c := &d.Changes[i]
		b.WriteString(Clean(c.Text) + "\n")
		for _, l := range c.Lines {
			tone := Good
			if strings.HasPrefix(l, "-") {
				tone = Bad
			}
			b.WriteString("  " + p.Paint(tone, Clean(l)) + "\n")
		}
	}
	if len(d.Changes) == 0 && d.Changed {
		b.WriteString("the rules stay as they are; their text changes\n")
	}
	if len(d.Effects) > 0 {
		b.WriteString("\nat once:\n")
	}
	for _, e := range d.Effects {
		b.WriteString("  " + Clean(e) + "\n")
	}
	for _, w := range d.Warnings {
		b.WriteString(p.Paint(Warn, "!") + " " + Clean(w) + "\n")
	}
	return b.String()
}

// Policies is the table of revisions, the newest first.
func Policies(p Page, list []api.Policy) *Table {
	t := &Table{Columns: []Column{{Title: "REVISION", Right: true}, {Title: "AT"}, {Title: "BY"}, {Title: "FILE"}, {Title: "HASH"}, {Title: "NOTE", Least: 12}}}
	for i := len(list) - 1; i >= 0; i-- {
		v := &list[i]
		note := v.Note
		if v.Back > 0 {
			note = strings.TrimSuffix(fmt.Sprintf("back to %d: %s", v.Back, note), ": ")
		}
		t.Rows = append(t.Rows, []Cell{
			{Text: strconv.FormatUint(v.Revision, 10), Tone: Accent}, textCell(p.Time(v.At)), textCell(v.By), textCell(v.File), {Text: v.Hash[:min(len(v.Hash), 12)], Tone: Dim}, textCell(note),
		})
	}
	return t
}
