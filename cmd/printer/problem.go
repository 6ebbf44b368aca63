package printer

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// Warnings are the lines about what will not have the effect that its writer may
// expect, as they follow a submission.
func Warnings(p Page, ws []api.Warning) string {
	var b strings.Builder
	for i := range ws {
		w := &ws[i]
		b.WriteString("  " + p.Paint(Warn, "!") + " ")
		switch {
		case w.Line > 0:
			fmt.Fprintf(&b, "line %d  ", w.Line)
		case w.File != "":
			b.WriteString(Clean(w.File) + "  ")
		}
		b.WriteString(Clean(strings.TrimSpace(w.Option+" "+w.Message)) + "\n")
	}
	return b.String()
}

// Problem is an error with its places in the text, what would be right, and what
// to do.
func Problem(p Page, e *api.Error) string {
	var b strings.Builder
	for i := range e.Errors {
		l := e.Errors[i]
		if i+1 < len(e.Errors) && e.Errors[i+1].Remedy == l.Remedy {
			l.Remedy = "" // said once, behind the last
		}
		printLocated(&b, p, &l)
	}
	if len(e.Errors) == 0 {
		b.WriteString(CleanLines(e.Error()) + "\n")
	}
	if e.Remedy != "" {
		b.WriteString("  " + CleanLines(e.Remedy) + "\n")
	}
	return b.String()
}

func printLocated(b *strings.Builder, p Page, l *api.Located) {
	if l.File != "" {
		b.WriteString(Clean(l.File) + ":")
		if l.Line > 0 {
			fmt.Fprintf(b, "%d:", l.Line)
		}
		if l.Line > 0 && l.Col > 0 && columnsMatter(l.File) {
			fmt.Fprintf(b, "%d:", l.Col)
		}
		b.WriteByte(' ')
	}
	b.WriteString(Clean(l.Message) + "\n")
	if l.Text != "" {
		before, marked := "", ""
		if at := l.Col - 1; at >= 0 && at <= len(l.Text) {
			before = l.Text[:at]
			marked = l.Text[at:min(at+max(l.Len, 0), len(l.Text))]
		}
		b.WriteString("      " + Clean(l.Text) + "\n")
		if l.Col > 0 {
			b.WriteString("      " + strings.Repeat(" ", Width(Clean(before))) + p.Paint(Bad, strings.Repeat("^", max(Width(Clean(marked)), 1))) + "\n")
		}
	}
	if l.Remedy != "" {
		b.WriteString("  " + Clean(l.Remedy) + "\n")
	}
}

// columnsMatter reports whether editors are to jump to a column: in YAML and JSON the
// indentation is a part of the text.
func columnsMatter(file string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(file)))
}

// CleanLines is Clean for a text of several lines.
func CleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Clean(l)
	}
	return strings.Join(lines, "\n")
}

// Changed says what became of a change of jobs: "cancelled 3 jobs: 7, 8, 9". past
// is the verb's past form.
func Changed(past string, c *api.Changed) string {
	var b strings.Builder
	switch {
	case c.Changed == 0 && c.Matched == 0:
		return "no job matches: nothing to do\n"
	case c.Changed == 0:
	case c.Changed == 1 && len(c.Names) == 1:
		fmt.Fprintf(&b, "%s %s\n", past, Clean(c.Names[0]))
	case len(c.Names) == c.Changed && c.Changed <= 10:
		b.WriteString(Clean(fmt.Sprintf("%s %s: %s", past, Count(c.Changed, "job"), strings.Join(c.Names, ", "))) + "\n")
	default:
		fmt.Fprintf(&b, "%s %s\n", past, Count(c.Changed, "job"))
	}
	for i, u := range c.Unchanged {
		if i == 10 {
			fmt.Fprintf(&b, "%s more were as asked before\n", Count(len(c.Unchanged)-i, "job"))
			break
		}
		b.WriteString(Clean(u.Why) + "\n")
	}
	return b.String()
}
