package route

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Text prints an advice for people, without colours: the answer, the facts that
// decided and the lines that show them, the rules, what is here.
func (a *Advice) Text() string {
	var b strings.Builder
	b.WriteString(a.Title() + "\n")
	a.factLines(&b)
	for _, r := range a.Rules {
		b.WriteString(wrapText("  rule "+r.Rule+": ", r.Why))
	}
	if a.Or != nil {
		b.WriteString(wrapText("or       ", a.Or.Title+", if "+joinConditions(a.Or.If)))
	}
	a.otherLines(&b)
	for i, v := range a.Here {
		label := ""
		if i == 0 {
			label = "here"
		}
		mark := marks[v.Fit]
		if v.Cannot != "" {
			mark = marks[Never]
		}
		fmt.Fprintf(&b, "%-9s%s pool %s: %s\n", label, mark, v.Pool, hereText(v))
	}
	return b.String()
}

// joinConditions joins conditions for a sentence.
func joinConditions(list []string) string {
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return strings.Join(list, "")
}

var marks = map[Fit]string{Suits: "✓", Possible: "~", Consent: "?", Never: "✗"}

func hereText(v PoolVerdict) string {
	if v.Cannot != "" {
		return "cannot run it: " + v.Cannot
	}
	text := v.Says
	if v.Fit == Possible {
		text = "possible, " + text
	}
	if v.Starts != "" {
		text += "; expected to start " + v.Starts
	}
	if v.Chosen {
		text += "; cox submit chooses it"
	}
	return text
}

// factLines prints the facts that somebody stated: fact, where it stands, and what
// followed from it.
func (a *Advice) factLines(b *strings.Builder) {
	type row struct{ fact, where, then string }
	var rows []row
	for _, f := range a.Facts {
		if f.Origin == Assumed {
			continue
		}
		r := row{f.String(), whereShown(f), ""}
		if then := a.followedFrom(f.Key); then != "" {
			r.then = "→ " + then
		}
		rows = append(rows, r)
	}
	if a.Runtime == MPI || a.Runtime == Torchrun {
		for _, l := range a.started {
			if l.runtime == a.Runtime {
				rows = append(rows, row{"starts " + string(a.Runtime), placeOf(l.evidence), "→ " + string(a.Runtime)})
				break
			}
		}
	}
	for i, n := range a.Needs {
		if i == maxNeedsShown {
			rows = append(rows, row{fmt.Sprintf("takes %d more", len(a.Needs)-i), "", ""})
			break
		}
		rows = append(rows, row{"takes " + clipText(n.What, 40), placeOf(n.Evidence), a.followedFromNeeds()})
	}
	widths := [2]int{}
	for _, r := range rows {
		widths[0] = max(widths[0], utf8.RuneCountInString(r.fact))
		widths[1] = max(widths[1], utf8.RuneCountInString(r.where))
	}
	for _, r := range rows {
		b.WriteString(strings.TrimRight("  "+padText(r.fact, widths[0])+"   "+padText(r.where, widths[1])+"   "+r.then, " ") + "\n")
	}
}

// maxNeedsShown bounds the needs that are shown line by line; the conditions behind "or" have more.
const maxNeedsShown = 6

// followedFromNeeds is what followed from what the work takes from the machines.
func (a *Advice) followedFromNeeds() string {
	for _, r := range a.Rules {
		if r.Rule == asItIs {
			return "→ " + r.Then
		}
	}
	return ""
}

// otherLines prints what nobody stated and would change the answer.
func (a *Advice) otherLines(b *strings.Builder) {
	width := 0
	for _, o := range a.Otherwise {
		width = max(width, utf8.RuneCountInString(o.Flag))
	}
	for i, o := range a.Otherwise {
		label := ""
		if i == 0 {
			label = "else"
		}
		fmt.Fprintf(b, "%-9s%s   would make it %s\n", label, padText(o.Flag, width), o.Title)
	}
}

func padText(s string, width int) string {
	return s + strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 0))
}

// followedFrom is what followed from a fact that holds.
func (a *Advice) followedFrom(k Key) string {
	var out []string
	for _, r := range a.Rules {
		if slices.Contains(r.Facts, k) && a.factOf(k).Yes() {
			out = append(out, r.Then)
		}
	}
	return strings.Join(out, ", ")
}

// whereShown is the line that shows a fact, and how many more do.
func whereShown(f Fact) string {
	if len(f.Evidence) == 0 {
		return ""
	}
	text := placeOf(f.Evidence[0])
	if n := len(f.Evidence) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

func placeOf(e Evidence) string {
	text := clipText(e.Text, 48)
	if e.Line == 0 {
		return text
	}
	return fmt.Sprintf("line %d: %s", e.Line, text)
}

// clipText makes text of a file printable and short.
func clipText(s string, width int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == utf8.RuneError:
			return '?'
		}
		return r
	}, strings.TrimSpace(s))
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	runes := []rune(s)
	return string(runes[:width-1]) + "…"
}

// wrapText prints a sentence behind its head in lines of at most 100 columns.
func wrapText(head, sentence string) string {
	var b strings.Builder
	b.WriteString(head)
	col := utf8.RuneCountInString(head)
	for i, word := range strings.Fields(sentence) {
		n := utf8.RuneCountInString(word)
		switch {
		case i > 0 && col+1+n > 100:
			b.WriteString("\n       ")
			col = 7
		case i > 0:
			b.WriteByte(' ')
			col++
		}
		b.WriteString(word)
		col += n
	}
	b.WriteByte('\n')
	return b.String()
}
