package metrics_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/service/metrics"
)

const page = `# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="a"} 3.0
vllm:num_requests_waiting{model_name="b"} 4.5
# TYPE done_total counter
done_total 12
# TYPE low gauge
low -1
bare 7
`

// Seen to fail with: the first series alone taken, and a counter taken as a gauge.
func TestRead(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, page) })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>{") })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/metrics", http.StatusFound) })
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) {
		line := strings.Repeat("# "+strings.Repeat("x", 1020)+"\n", 1<<10)
		for range metrics.MostBytes>>20 + 1 {
			io.WriteString(w, line)
		}
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	address := strings.TrimPrefix(s.URL, "http://")
	r := metrics.NewReader(0)
	defer r.Close()
	for _, c := range []struct {
		path, name string
		want       float64
		err        string
	}{
		{"", "vllm:num_requests_waiting", 7.5, ""},
		{"/metrics?full=1", "bare", 7, ""},
		{"", "done_total", 0, "done_total is a counter"},
		{"", "low", 0, "negative"},
		{"", "absent", 0, "it has no number absent"},
		{"/broken", "bare", 0, "no Prometheus page"},
		{"/moved", "bare", 0, "answers 302"},
		{"/nothing", "bare", 0, "answers 404"},
		{"/huge", "bare", 0, "larger than 1 MiB"},
	} {
		got, err := r.Read(t.Context(), address, c.path, c.name)
		if got != c.want || (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s %s: %v, %v; want %v, %q", c.path, c.name, got, err, c.want, c.err)
		}
	}
}

// FuzzSumGauge: any text is a number or an error, and a number that is returned is no less than 0.
func FuzzSumGauge(f *testing.F) {
	f.Add(page, "bare")
	f.Add("# TYPE a gauge\na{b=\"c\\\"\"} NaN\n", "a")
	f.Fuzz(func(t *testing.T, text, name string) {
		if v, err := metrics.SumGauge(strings.NewReader(text), name); err == nil && !(v >= 0) {
			t.Errorf("%q: %v", text, v)
		}
	})
}
