package printer_test

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// TestLoadOfAService: latency and errors of a service, and unknown where nothing was measured.
//
// Seen to fail with: 0 ms where no answer came.
func TestLoadOfAService(t *testing.T) {
	for want, load := range map[string]*api.Load{
		"load unknown: no gateway reports": nil,
		"load 2.0 requests a second, 3 in flight, 1 held, 0.02 a second failed latency unknown: no answer in the last minute":                               {Rate: 2, InFlight: 3, Held: 1, Failed: .02},
		"load 2.0 requests a second, 0 in flight, 0 held, 0.0 a second failed latency p50 2.5 ms, p95 80 ms, p99 1.2 s until the first byte, 1 answer":      {Rate: 2, Latency: &api.Latency{P50: .0025, P95: .08, P99: 1.2, Answered: 1}},
		"load 0.0 requests a second, 0 in flight, 0 held, 0.0 a second failed latency p50 12 s, p95 60 s or more, p99 60 s or more until the first byte, 7": {Latency: &api.Latency{P50: 12, P95: 60, P99: 60, Answered: 7}},
	} {
		text := printer.Service(pipe, &api.Service{Name: "chat", State: "ready", Load: load})
		if got := strings.Join(strings.Fields(text), " "); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
