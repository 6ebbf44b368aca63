package policy

import (
	"fmt"
	"io"
	"strings"
)

// Verdict says what became of a part of another system's configuration.
type Verdict uint8

// The verdicts.
const (
	Kept         Verdict = iota // the rules say the same
	Approximated                // they say something near it
	Elsewhere                   // it is no rule of the site: it stands, or is found, somewhere else
	Refused                     // nothing here does it
)

// String is the word of the report.
func (v Verdict) String() string {
	return [...]string{"kept", "approximated", "elsewhere", "refused"}[v]
}

// Finding is one setting with what became of it.
type Finding struct {
	File    string
	Line    int
	What    string // as it was written
	Verdict Verdict
	How     string // what stands for it, or why nothing does and what would
}

// Report is every setting that was read, in the order of the files.
type Report struct{ Findings []Finding }

// Add notes what became of a setting.
func (r *Report) Add(f Finding) { r.Findings = append(r.Findings, f) }

// Count counts the findings of a verdict.
func (r *Report) Count(v Verdict) (n int) {
	for i := range r.Findings {
		if r.Findings[i].Verdict == v {
			n++
		}
	}
	return n
}

// Write prints the report, a line for each finding and what it is about below; brief
// leaves out what was kept.
func (r *Report) Write(w io.Writer, brief bool) {
	for i := range r.Findings {
		f := &r.Findings[i]
		if brief && f.Verdict == Kept {
			continue
		}
		place := fmt.Sprintf("%s:%d", f.File, f.Line)
		if f.Line == 0 {
			place = f.File
		}
		fmt.Fprintf(w, "%s: %-12s %s\n", place, f.Verdict, oneLine(f.What))
		if f.How != "" {
			fmt.Fprintf(w, "    %s\n", oneLine(f.How))
		}
	}
	fmt.Fprintln(w, r.Summary())
}

// Summary counts all of it: "41 settings: 30 kept, 2 approximated, 5 elsewhere, 4 refused".
func (r *Report) Summary() string {
	var parts []string
	for v := Kept; v <= Refused; v++ {
		parts = append(parts, fmt.Sprintf("%d %s", r.Count(v), v))
	}
	return fmt.Sprintf("%d settings: %s", len(r.Findings), strings.Join(parts, ", "))
}

// oneLine makes a text printable on a line.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
