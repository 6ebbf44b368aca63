package jobs_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
)

// TestHistoryShowsWhatWentWrong: -o wide has the line of a failed job's output that matters, cut and
// without control characters; for other jobs and other formats nothing is asked for.
//
// Seen to fail with: a line of a completed job; a line that is printed whole.
func TestHistoryShowsWhatWentWrong(t *testing.T) {
	f := newFake(t)
	f.Answer("GET /v1/history", func(*http.Request) (any, error) {
		return api.History{Jobs: []api.Job{clitest.Job("7", "FAILED", 1), clitest.Job("6", "COMPLETED", 0)}}, nil
	})
	f.Text("GET /v1/jobs/{job}/logs", "epoch 1\nRuntimeError: \x1b[31mCUDA "+strings.Repeat("x", 500)+"\n")
	r := f.Cox(t, "history", "-o", "wide")
	if !strings.Contains(r.Out, "RuntimeError: ") || strings.Contains(r.Out, strings.Repeat("x", 300)) || strings.Contains(r.Out, "\x1b") {
		t.Errorf("%q %q", r.Out, r.Err)
	}
	asked := func() (n int) {
		for _, request := range f.Requests() {
			if strings.Contains(request, "/logs") {
				n++
			}
		}
		return n
	}
	if all := f.Requests(); slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, "GET /v1/jobs/6/logs") }) || asked() == 0 {
		t.Errorf("%q", all)
	}
	before := asked()
	if r := f.Cox(t, "history"); strings.Contains(r.Out, "RuntimeError") || asked() != before {
		t.Errorf("%q", r.Out)
	}
}
