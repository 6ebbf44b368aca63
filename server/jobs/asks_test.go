package jobs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestAsksHasUnits: a job, a list and the history say what is asked for in all, in numbers whose names
// have the unit.
//
// Seen to fail with: the memory of one node.
func TestAsksHasUnits(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, nil)
	s := servertest.Request()
	s.Form, s.File = api.FormNative, "job.yaml"
	s.Text = "command: hostname\nnodes: 2-4\ntasks_per_node: 2\ncpus: 3\ngpus_per_node: a100:4\nmemory: 2G\ntime: 1h30m\ntime_min: 10m\n"
	if _, err := r.As(t, "anna").Submit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	want := api.Asks{Nodes: 2, MostNodes: 4, Tasks: 4, CPUs: 12, Memory: 4 << 30, GPUs: 8, GPUType: "a100", TimeLimit: 5400, TimeMin: 600}
	for _, path := range []string{"/v1/jobs/1", "/v1/jobs", "/v1/history"} {
		_, body := r.Ask(t, "GET", path, r.Token(t, "anna", nil), "")
		if !strings.HasPrefix(body, `{"jobs"`) {
			body = `{"jobs":[` + body + `]}`
		}
		var got api.Jobs
		if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Jobs) != 1 || got.Jobs[0].Asks == nil {
			t.Fatalf("%s: %v\n%s", path, err, body)
		}
		if *got.Jobs[0].Asks != want {
			t.Errorf("%s: %+v, want %+v", path, *got.Jobs[0].Asks, want)
		}
		if !strings.Contains(body, `"time_limit_seconds":5400`) || !strings.Contains(body, `"memory_bytes":4294967296`) {
			t.Errorf("%s", body)
		}
	}
}
