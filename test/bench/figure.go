package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// sample is what rounds gave for one figure.
type sample []float64

func (s *sample) addFigure(v float64) { *s = append(*s, v) }

func (s *sample) addDuration(d time.Duration) { s.addFigure(float64(d) / 1e6) }

func (s sample) quantileAt(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (s sample) medianValue() float64 { return s.quantileAt(0.5) }

// String is the median with the range.
func (s sample) String() string {
	if len(s) == 0 {
		return ""
	}
	if len(s) == 1 {
		return formatNumber(s[0])
	}
	return fmt.Sprintf("%s [%s–%s]", formatNumber(s.medianValue()), formatNumber(slices.Min(s)), formatNumber(slices.Max(s)))
}

func formatNumber(v float64) string {
	switch {
	case v >= 1000:
		n := fmt.Sprintf("%.0f", v)
		for i := len(n) - 3; i > 0; i -= 3 {
			n = n[:i] + "," + n[i:]
		}
		return n
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// table is one part's answer.
type table struct {
	title string
	rows  []string
}

// addRow adds a figure of both sides; the ratio is ours to theirs.
func (t *table) addRow(what string, ours, theirs sample) {
	ratio := ""
	if len(ours) > 0 && len(theirs) > 0 && theirs.medianValue() > 0 {
		ratio = fmt.Sprintf("%.2f×", ours.medianValue()/theirs.medianValue())
	}
	t.rows = append(t.rows, fmt.Sprintf("| %s | %s | %s | %s |", what, ours, theirs, ratio))
}

func (t *table) printTable() {
	fmt.Printf("## %s\n\n| | cox | Slurm | ratio |\n|---|---|---|---|\n%s\n\n", t.title, strings.Join(t.rows, "\n"))
}
