package study

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

const style = `:root{color-scheme:light dark;--ink:#1c2430;--paper:#fff;--grid:#d7dce3;--soft:#5b6675}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--paper:#14181e;--grid:#333b47;--soft:#9aa5b4}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:960px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
td,th{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--grid)}td:first-child,th:first-child{text-align:left}
svg{width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:var(--soft)}.grid{stroke:var(--grid);stroke-width:1}
polyline{fill:none;stroke-width:1.6}.s0{stroke:#2563eb}.s1{stroke:#d97706}.s2{stroke:#059669}.s3{stroke:#db2777}.s4{stroke:#7c3aed}.s5{stroke:#64748b}
.b0{fill:#2563eb}.b1{fill:#d97706}.b2{fill:#059669}.b3{fill:#db2777}.b4{fill:#7c3aed}.b5{fill:#64748b}
.key{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em;vertical-align:-1px}p.note{color:var(--soft)}`

// Page writes results side by side as one page that needs nothing else.
func Page(w io.Writer, title string, results []*Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'><title>%s</title><style>%s</style>", html.EscapeString(title), style)
	fmt.Fprintf(&b, "<h1>%s</h1>", html.EscapeString(title))
	writeLegend(&b, results)
	writeSummary(&b, results)
	writeSection(&b, "Use over time", "Share of the devices (or processors) that is held.", overTime("use over time", results, 1, func(r *Result) []float64 { return r.plots.use }, formatPercent))
	writeSection(&b, "Waiting jobs", "", overTime("waiting jobs", results, 0, func(r *Result) []float64 { return r.plots.queue }, formatShort))
	names := make([]string, len(results))
	for i, r := range results {
		names[i] = r.Policy
	}
	sizes, pick := bandsOf(results)
	writeSection(&b, "Mean wait by size", "By devices (or processors) asked for.", drawBars("mean wait by size", sizes, names, func(g, s int) float64 { return pick(g, s).Wait.Mean }, formatSeconds))
	writeSection(&b, "Mean bounded slowdown by size", "(wait + run) ÷ max(run, 10 s), at least 1.", drawBars("slowdown by size", sizes, names, func(g, s int) float64 { return pick(g, s).Slowdown.Mean }, formatShort))
	if owners := ownersOf(results); len(owners) > 1 {
		writeSection(&b, "Fairness", "Mean bounded slowdown of the accounts (or users) that used most.", drawBars("slowdown by account", owners, names, func(g, s int) float64 { return results[s].ownerNamed(owners[g]).Slowdown }, formatShort))
	}
	for _, r := range results {
		writeSection(&b, "Who ran where: "+r.Policy, "A stretch from the middle, the first nodes.", drawGantt(r))
	}
	b.WriteString("</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeSection(b *strings.Builder, title, note, drawing string) {
	fmt.Fprintf(b, "<h2>%s</h2>", html.EscapeString(title))
	if note != "" {
		fmt.Fprintf(b, "<p class=note>%s</p>", html.EscapeString(note))
	}
	b.WriteString(drawing)
}

func writeLegend(b *strings.Builder, results []*Result) {
	b.WriteString("<p>")
	for i, r := range results {
		fmt.Fprintf(b, `<svg class=key viewBox="0 0 10 10" style="width:.8em"><rect class="b%d" width="10" height="10"/></svg>%s`, i%6, html.EscapeString(r.Policy))
	}
	b.WriteString("</p>")
}

func writeSummary(b *strings.Builder, results []*Result) {
	b.WriteString("<table><tr><th></th>")
	for _, r := range results {
		fmt.Fprintf(b, "<th>%s</th>", html.EscapeString(r.Policy))
	}
	b.WriteString("</tr>")
	for _, row := range Rows {
		fmt.Fprintf(b, "<tr><td>%s</td>", html.EscapeString(row.Name))
		for _, r := range results {
			fmt.Fprintf(b, "<td>%s</td>", html.EscapeString(row.Value(r)))
		}
		b.WriteString("</tr>")
	}
	b.WriteString("</table>")
}

// Row is a line of the summary.
type Row struct {
	Name  string
	Value func(*Result) string
}

// Rows are the lines of the summary, for the page and for the terminal.
var Rows = []Row{
	{"jobs", func(r *Result) string { return fmt.Sprint(r.Jobs) }},
	{"never started", func(r *Result) string { return fmt.Sprint(r.Never) }},
	{"cut by their limit", func(r *Result) string { return fmt.Sprint(r.Cut) }},
	{"makespan", func(r *Result) string { return formatSeconds(r.Makespan) }},
	{"allocated", func(r *Result) string { return formatPercent(r.Allocation) }},
	{"idle while a job would fit", func(r *Result) string { return formatPercent(r.Blocked) }},
	{"wait, mean", func(r *Result) string { return formatSeconds(r.Wait.Mean) }},
	{"wait, median", func(r *Result) string { return formatSeconds(r.Wait.Median) }},
	{"wait, 95 %", func(r *Result) string { return formatSeconds(r.Wait.P95) }},
	{"bounded slowdown, mean", func(r *Result) string { return fmt.Sprintf("%.2f", r.Slowdown.Mean) }},
	{"bounded slowdown, 95 %", func(r *Result) string { return fmt.Sprintf("%.2f", r.Slowdown.P95) }},
	{"fairness (Jain)", func(r *Result) string { return orNone(r.Fairness, "%.3f") }},
	{"leaves ÷ least", func(r *Result) string { return orNone(r.Leaves, "%.3f") }},
	{"promised starts", func(r *Result) string { return fmt.Sprint(r.Promises.Jobs) }},
	{"later than promised", func(r *Result) string { return fmt.Sprint(r.Promises.Late) }},
}

func orNone(v float64, format string) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf(format, v)
}

func formatPercent(v float64) string { return fmt.Sprintf("%.4g %%", 100*v) }

func formatShort(v float64) string { return fmt.Sprintf("%.4g", v) }

// formatSeconds is a time for people.
func formatSeconds(v float64) string {
	d := time.Duration(v * float64(time.Second))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.3g s", v)
	case d < 2*time.Hour:
		return fmt.Sprintf("%.3g min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.3g h", d.Hours())
	}
	return fmt.Sprintf("%.4g d", d.Hours()/24)
}

// overTime draws one line for each result. most 0: as high as the highest.
func overTime(title string, results []*Result, most float64, values func(*Result) []float64, label func(float64) string) string {
	span := 0.0
	for _, r := range results {
		span = max(span, r.plots.span.Seconds())
		if most != 1 {
			for _, v := range values(r) {
				most = max(most, v)
			}
		}
	}
	c := newChart(title, 860, 200, span, most)
	c.drawAxes(formatSeconds, label)
	for i, r := range results {
		v := values(r)
		part := int(float64(len(v)) * span / max(r.plots.span.Seconds(), 1e-9))
		for len(v) < part && len(v) < 100*stretches {
			v = append(v[:len(v):len(v)], 0)
		}
		c.drawLine(i, v)
	}
	return c.endChart()
}

func bandsOf(results []*Result) (names []string, pick func(g, s int) Band) {
	most := 0
	for i, r := range results {
		if len(r.Bands) > len(results[most].Bands) {
			most = i
		}
	}
	for _, b := range results[most].Bands {
		names = append(names, b.Name)
	}
	return names, func(g, s int) Band {
		for _, b := range results[s].Bands {
			if b.Name == names[g] {
				return b
			}
		}
		return Band{}
	}
}

// ownersOf are the accounts that used most.
func ownersOf(results []*Result) (names []string) {
	for _, o := range results[0].Owners[:min(12, len(results[0].Owners))] {
		names = append(names, o.Name)
	}
	return names
}

func (r *Result) ownerNamed(name string) Owner {
	for _, o := range r.Owners {
		if o.Name == name {
			return o
		}
	}
	return Owner{}
}

// drawGantt draws jobs on nodes.
func drawGantt(r *Result) string {
	p := r.plots
	span := (p.until - p.from).Seconds()
	c := newChart("who ran where", 860, float64(8*max(8, p.rows)), span, float64(max(1, p.rows)))
	c.drawAxes(formatSeconds, func(v float64) string { return "" })
	for _, x := range p.gantt {
		px, py := c.pointAt((x.from - p.from).Seconds(), float64(x.row+1))
		c.drawRect(fmt.Sprintf("b%d", x.job%6), px, py, c.w*(x.to-x.from).Seconds()/max(span, 1e-9), c.h/float64(p.rows)*0.86, fmt.Sprintf("job %d", x.job))
	}
	return c.endChart()
}
