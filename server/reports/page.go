package reports

import (
	"bytes"
	_ "embed" // of the page
	"html/template"

	"github.com/coxswain-sched/coxswain/model/report"
)

// pagePolicy forbids a page of a report everything but its own styles.
const pagePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("report").Parse(pageText))

// page is what the template shows.
type page struct {
	Policy, Title, Window, Made string

	Notes   []string
	Plots   []plot
	Budgets []report.Spent
	Table   *report.Table
}

// Bottom is where the lines of a plot's ticks end, above their labels.
func (p *page) Bottom(labels float64) float64 { return labels - 14 }

// Right is where the levels of a plot end.
func (p *page) Right() float64 { return plotWidth - 20 }

// writeHTML writes a page that is whole in itself.
func writeHTML(r *report.Report) (string, []byte, error) {
	p := &page{
		Policy: pagePolicy, Title: titleOf(r), Window: windowOf(r), Made: r.Made.Format("2006-01-02 15:04 UTC"),
		Notes: r.Notes, Plots: plotsOf(r), Budgets: r.Budgets, Table: r.Table(),
	}
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, p)
	return mediaHTML, cleanLines(b.Bytes()), err
}
