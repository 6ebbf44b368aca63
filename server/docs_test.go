package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/server/admin"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/transport"
)

var update = flag.Bool("update", false, "write the generated documents anew")

// same compares a document with what the code says.
func same(t *testing.T, name string, want []byte) {
	t.Helper()
	path := filepath.Join("..", "docs", "reference", name)
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/%s is not what the code says (%v): go test ./server -run TestDocs -update", name, err)
	}
}

func TestDocs(t *testing.T) {
	s := New(Config{Plane: servertest.NewPlane()})
	defer s.Close()
	b, err := json.MarshalIndent(s.API.OpenAPI(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "openapi.json", append(b, '\n'))
	same(t, "metrics.md", admin.MetricsDoc())

	byVerb := map[auth.Verb][]string{}
	var routes strings.Builder
	routes.WriteString("| route | what it does | right |\n|---|---|---|\n")
	sorted := slices.Clone(s.Routes)
	slices.SortFunc(sorted, func(a, b *transport.Route) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	for _, r := range sorted {
		for _, v := range append([]auth.Verb{r.Verb}, r.Also...) {
			byVerb[v] = append(byVerb[v], "`"+r.Pattern()+"`")
		}
		fmt.Fprintf(&routes, "| `%s` | %s | %s |\n", r.Pattern(), r.Summary, r.Verb)
	}
	for _, r := range auth.Rules() {
		if len(byVerb[r.Verb]) == 0 {
			t.Errorf("no route asks auth to %s", r.Verb)
		}
	}
	var cols strings.Builder
	for _, c := range column.All() {
		fmt.Fprintf(&cols, "| `%s` | %s |\n", c, c.Doc())
	}
	for page, parts := range map[string]map[string]string{
		"api.md":        {"columns": cols.String()},
		"api-routes.md": {"rules": auth.Document(byVerb), "routes": routes.String()},
	} {
		text, err := os.ReadFile(filepath.Join("..", "docs", "reference", page))
		if err != nil {
			t.Fatal(err)
		}
		for name, part := range parts {
			text = replace(t, text, name, part)
		}
		same(t, page, text)
	}
}

// replace puts a generated part between its marks.
func replace(t *testing.T, text []byte, name, part string) []byte {
	t.Helper()
	head, rest, ok := bytes.Cut(text, []byte("<!-- "+name+" -->\n"))
	_, tail, ok2 := bytes.Cut(rest, []byte("<!-- end -->\n"))
	if !ok || !ok2 {
		t.Fatalf("the page has no place for %s", name)
	}
	return slices.Concat(head, []byte("<!-- "+name+" -->\n"+part+"<!-- end -->\n"), tail)
}

// TestTheDocumentIsLooseWhereClientsRead follows the rules between versions.
func TestTheDocumentIsLooseWhereClientsRead(t *testing.T) {
	s := New(Config{Plane: servertest.NewPlane()})
	defer s.Close()
	schemas := s.API.OpenAPI().Components.Schemas.Map()
	for name, strict := range map[string]bool{"Job": false, "Error": false, "Event": false, "JobSpec": false, "Submit": true, "Change": true, "NewToken": true} {
		sc := schemas[name]
		if sc == nil {
			t.Errorf("no schema %s", name)
			continue
		}
		if got := sc.AdditionalProperties == false; got != strict {
			t.Errorf("%s: strict is %v", name, got)
		}
	}
}

func TestMetrics(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 1, "anna", 2001, nil)
	r := start(t, p, nil)
	secret := r.Token(t, "anna", nil)
	r.Ask(t, "GET", "/v1/jobs", secret, "")
	r.Ask(t, "GET", "/v1/jobs/9", secret, "")
	r.Ask(t, "GET", "/nowhere", secret, "")
	resp, body := r.Ask(t, "GET", "/metrics", secret, "")
	if resp.StatusCode != 200 {
		t.Fatal(body)
	}
	for _, want := range []string{
		`cox_jobs{state="PENDING"} 3`, `cox_jobs_waiting{reason="priority"} 2`, `cox_jobs_ended_total{state="COMPLETED"} 1`,
		`cox_job_wait_seconds_bucket{le="10"} 3`, `cox_job_wait_seconds_bucket{le="+Inf"} 6`, `cox_job_wait_seconds_sum 70`,
		`cox_http_requests_total{code="200",route="GET /v1/jobs"} 1`, `cox_http_requests_total{code="404",route="GET /v1/jobs/{job}"} 1`,
		`cox_http_requests_total{code="404",route="other"} 1`, `cox_http_request_seconds_count{route="GET /v1/jobs"} 1`,
		`cox_info{api="1.0",version="1.2.3"} 1`, "go_goroutines", "process_cpu_seconds_total",
	} {
		if !strings.Contains(body, want+"\n") && !strings.Contains(body, want+" ") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(body, "anna") {
		t.Error("metrics name a user")
	}
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "cox_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
