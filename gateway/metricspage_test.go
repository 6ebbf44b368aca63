package gateway

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestMetricsPage compares the metrics of the page with those that the gateway registers: the boards of
// Grafana are held to the page.
//
// Seen to fail with a label that the page lacks.
func TestMetricsPage(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	page := map[string]string{}
	note := regexp.MustCompile(` *\([^)]*\)|:.*`)
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); strings.HasPrefix(line, "| `cox_") {
			for name := range strings.SplitSeq(cells[1], ",") {
				name = strings.Trim(note.ReplaceAllString(name, ""), " `")
				page[name] = strings.ReplaceAll(strings.TrimSpace(note.ReplaceAllString(cells[2], "")), " ", "")
			}
		}
	}
	g := &Server{}
	descs := make(chan *prometheus.Desc, 100)
	newMetrics(g).registry.Describe(descs)
	close(descs)
	form := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`)
	for d := range descs {
		m := form.FindStringSubmatch(d.String())
		if got, ok := page[m[1]]; !ok || got != m[2] {
			t.Errorf("docs/reference/gateway.md: %s has the labels %q there, and is %v", m[1], got, d)
		}
		delete(page, m[1])
	}
	for name := range page {
		t.Errorf("docs/reference/gateway.md: the gateway has no metric %s", name)
	}
}
