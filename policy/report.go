package policy

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Verdict says what became of a part of another system's configuration.
type Verdict uint8

// The verdicts, in the order in which a report has them: the last ones need a reader.
const (
	Kept         Verdict = iota // the rules say the same
	Ignored                     // no job runs differently without it
	Elsewhere                   // it belongs into another file, such as cox.yaml
	Approximated                // the rules say something near it
	Refused                     // nothing here does it, and jobs may run differently
)

// String is the word of the report.
func (v Verdict) String() string {
	return [...]string{"kept", "ignored", "elsewhere", "approximated", "refused"}[v]
}

// Finding is one setting with what became of it.
type Finding struct {
	File    string
	Line    int
	What    string // as it was written
	Verdict Verdict
	How     string // what stands for it, or why nothing does and what would
}

// Missing is something that the configuration needs and that the files do not have.
type Missing struct {
	What   string // and what follows from it
	Remedy string // what to do
}

// Report is every setting that was read, in the order of the files.
type Report struct {
	Findings []Finding
	Missing  []Missing
}

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

// parts are the parts of a report: what is harmless stands apart from what changes decisions.
var parts = []struct {
	title    string
	verdicts []Verdict
}{
	{"Kept: the rules say the same", []Verdict{Kept}},
	{"Harmless: no job runs differently without these", []Verdict{Ignored}},
	{"In another file", []Verdict{Elsewhere}},
	{"Different here: read these before you move jobs", []Verdict{Approximated, Refused}},
}

// Write prints the report in parts, a line for each finding and what it is about below; what needs a
// reader stands last. brief leaves out what is kept, harmless or in another file.
func (r *Report) Write(w io.Writer, brief bool) {
	for _, part := range parts {
		if brief && part.verdicts[0] < Approximated {
			continue
		}
		title := part.title + "\n"
		for i := range r.Findings {
			if f := &r.Findings[i]; slices.Contains(part.verdicts, f.Verdict) {
				io.WriteString(w, title)
				title = ""
				f.write(w)
			}
		}
		if title == "" {
			fmt.Fprintln(w)
		}
	}
	for i, m := range r.Missing {
		if i == 0 {
			fmt.Fprintln(w, "Missing")
		}
		fmt.Fprintf(w, "%s\n    %s\n", oneLine(m.What), oneLine(m.Remedy))
		if i == len(r.Missing)-1 {
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintln(w, r.Summary())
}

func (f *Finding) write(w io.Writer) {
	place := fmt.Sprintf("%s:%d", f.File, f.Line)
	if f.Line == 0 {
		place = f.File
	}
	fmt.Fprintf(w, "%s: %-12s %s\n", place, f.Verdict, oneLine(f.What))
	if f.How != "" {
		fmt.Fprintf(w, "    %s\n", oneLine(f.How))
	}
}

// Summary counts all of it: "41 settings: 20 kept, 10 ignored, 5 elsewhere, 2 approximated, 4 refused".
func (r *Report) Summary() string {
	var counts []string
	for v := Kept; v <= Refused; v++ {
		counts = append(counts, fmt.Sprintf("%d %s", r.Count(v), v))
	}
	return fmt.Sprintf("%d settings: %s", len(r.Findings), strings.Join(counts, ", "))
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
