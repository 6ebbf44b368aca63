package reports

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/printable"
	"github.com/coxswain-sched/coxswain/model/report"
)

// Media types of the forms.
const (
	mediaJSON     = "application/json"
	mediaCSV      = "text/csv"
	mediaMarkdown = "text/markdown"
	mediaHTML     = "text/html"
)

// forms are the forms in which a report is written, by the parameter format.
var forms = map[string]func(*report.Report) (media string, body []byte, err error){
	"": writeJSON, "json": writeJSON, "csv": writeCSV, "md": writeMarkdown, "html": writeHTML,
}

func writeJSON(r *report.Report) (string, []byte, error) {
	b, err := json.Marshal(r)
	return mediaJSON, append(b, '\n'), err
}

// writeCSV writes the rows as RFC 4180 has it, under the names of their fields. A value that is not
// known is empty.
func writeCSV(r *report.Report) (string, []byte, error) {
	t := r.Table()
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	cells := make([]string, len(t.Columns))
	for i := range t.Columns {
		cells[i] = t.Columns[i].Name
	}
	err := w.Write(cells)
	for _, row := range t.Rows {
		for i := range row {
			if cells[i] = row[i].Exact; row[i].IsText {
				cells[i] = plainCell(cells[i])
			}
		}
		if err == nil {
			err = w.Write(cells)
		}
	}
	w.Flush()
	if err == nil {
		err = w.Error()
	}
	return mediaCSV, b.Bytes(), err
}

// plainCell is a text that no spreadsheet takes for a formula, and no terminal for a command.
func plainCell(s string) string {
	s = string(printable.Clean([]byte(s)))
	if s != "" && strings.ContainsRune("=+-@|%", rune(s[0])) {
		return "'" + s
	}
	return s
}

// markdownMarks are escaped in names.
var markdownMarks = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "~", `\~`,
)

func markdownText(s string) string { return markdownMarks.Replace(string(printable.Clean([]byte(s)))) }

// cleanLines is a text of lines without what a terminal takes for a command.
func cleanLines(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	for i := range lines {
		lines[i] = printable.Clean(lines[i])
	}
	return bytes.Join(lines, []byte("\n"))
}

// writeMarkdown writes a title, notes, budgets and a table.
func writeMarkdown(r *report.Report) (string, []byte, error) {
	var b strings.Builder
	b.WriteString("# " + markdownText(titleOf(r)) + "\n\n" + windowOf(r) + ".\n")
	for _, note := range r.Notes {
		b.WriteString("\n" + markdownText(note) + "\n")
	}
	for i := range r.Budgets {
		if text := r.Budgets[i].Warning(r.Currency); text != "" {
			b.WriteString("\n**Warning:** " + markdownText(text) + ".\n")
		}
	}
	b.WriteString("\n")
	t := r.Table()
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	var titles, rules []string
	for i := range t.Columns {
		rule := "---"
		if t.Columns[i].IsNumber() {
			rule = "---:"
		}
		titles, rules = append(titles, t.Columns[i].Title), append(rules, rule)
	}
	line(titles)
	line(rules)
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i := range row {
			cells[i] = markdownText(row[i].Text)
		}
		line(cells)
	}
	if t.Total != nil {
		cells := make([]string, len(t.Total))
		for i := range t.Total {
			if cells[i] = markdownText(t.Total[i].Text); cells[i] != "" {
				cells[i] = "**" + cells[i] + "**"
			}
		}
		line(cells)
	}
	return mediaMarkdown, []byte(b.String()), nil
}

// titles are the headings of reports.
var titles = map[report.Kind]string{
	report.Usage: "Usage", report.Waits: "Waits", report.Fairness: "Shares against use", report.Efficiency: "Efficiency", report.Cost: "Cost",
}

func titleOf(r *report.Report) string {
	if r.Kind == report.Cost && r.Currency != "" {
		return titles[r.Kind] + " in " + r.Currency
	}
	return titles[r.Kind]
}

// windowOf is "From 2026-11-01 08:00 to 2026-11-08 08:00 UTC".
func windowOf(r *report.Report) string {
	const form = "2006-01-02 15:04"
	text := "From " + r.From.Format(form) + " to " + r.To.Format(form) + " UTC"
	if r.To.Sub(r.Made) > time.Second {
		text += ", as of " + r.Made.Format(form)
	}
	return text
}
