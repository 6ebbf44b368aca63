package jobs

import (
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/report"
)

// reportTable is a row for each group of jobs, and the total below them where all rows are shown in the
// report's order. wide shows all columns.
func reportTable(r *report.Report, wide bool, p printer.Page) *printer.Table {
	from := r.Table()
	t := &printer.Table{}
	var shown []int
	for i := range from.Columns {
		c := &from.Columns[i]
		if c.Wide && !wide {
			continue
		}
		shown = append(shown, i)
		t.Columns = append(t.Columns, printer.Column{Title: strings.ToUpper(c.Title), Right: c.IsNumber()})
	}
	add := func(values []report.Value, tone printer.Tone, indent int) {
		row := make([]printer.Cell, len(shown))
		for k, i := range shown {
			if row[k] = (printer.Cell{Text: values[i].Text, Tone: tone}); k == 0 {
				row[k].Text = strings.Repeat(" ", indent) + row[k].Text
			}
		}
		t.Rows = append(t.Rows, row)
	}
	for i, row := range from.Rows {
		add(row, printer.Plain, r.Rows[i].Depth)
	}
	if from.Total != nil && len(from.Rows) > 1 && p.SortBy == "" && p.Limit == 0 {
		add(from.Total, printer.Strong, 0)
	}
	return t
}

// reportNames are the names of the rows of a report: their keys, joined by /.
func reportNames(r *report.Report) (out []string) {
	t := r.Table()
	for _, row := range t.Rows {
		var keys []string
		for i := range row {
			if row[i].IsText {
				keys = append(keys, row[i].Text)
			}
		}
		out = append(out, printer.Clean(strings.TrimSuffix(strings.Join(keys, "/"), "/")))
	}
	return out
}

// reportNotes are lines about what a reader has to know, and warnings of budgets.
func reportNotes(p printer.Page, r *report.Report) string {
	var ws []api.Warning
	for i := range r.Budgets {
		if text := r.Budgets[i].Warning(r.Currency); text != "" {
			ws = append(ws, api.Warning{Message: text})
		}
	}
	for _, note := range r.Notes {
		ws = append(ws, api.Warning{Message: note})
	}
	return printer.Warnings(p, ws)
}

// budgetTable is a line for each budget of a report.
func budgetTable(r *report.Report) *printer.Table {
	t := &printer.Table{Columns: []printer.Column{
		{Title: "BUDGET"}, {Title: "ACCOUNT"}, {Title: "PERIOD"}, {Title: "UNTIL"}, {Title: "AMOUNT", Right: true}, {Title: "SPENT", Right: true}, {Title: "OF IT", Right: true},
	}}
	for i := range r.Budgets {
		b := &r.Budgets[i]
		tone := map[string]printer.Tone{report.SpentWarn: printer.Warn, report.SpentOver: printer.Bad}[b.State]
		t.Rows = append(t.Rows, []printer.Cell{
			{Text: b.Name},
			{Text: b.Account},
			{Text: b.Period},
			{Text: b.Until.Format("2006-01-02")},
			{Text: strconv.FormatFloat(b.Amount, 'f', 2, 64)},
			{Text: strconv.FormatFloat(b.Spent, 'f', 2, 64), Tone: tone},
			{Text: strconv.FormatFloat(b.Percent, 'f', 0, 64) + " %", Tone: tone},
		})
	}
	return t
}
