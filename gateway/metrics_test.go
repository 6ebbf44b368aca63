package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/gateway"
)

// TestNumbersOfOldRevisions: the numbers of the ten newest revisions are kept, and none of a service that
// has gone.
//
// Seen to fail with: noteRevision and forgetService that forget nothing.
func TestNumbersOfOldRevisions(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	numbers := func() string {
		out := httptest.NewRecorder()
		w.g.Metrics().ServeHTTP(out, httptest.NewRequest(http.MethodGet, "/", nil))
		return out.Body.String()
	}
	for revision := range uint32(12) {
		w.routes(chat(replica(t, "4.1", revision+1)))
	}
	text := numbers()
	for revision, kept := range map[string]bool{"1": false, "2": false, "3": true, "12": true} {
		if strings.Contains(text, `cox_gateway_requests_total{code="2xx",revision="`+revision+`"`) != kept {
			t.Errorf("the numbers of revision %s are kept: %t", revision, !kept)
		}
	}
	w.routes()
	if text := numbers(); strings.Contains(text, "team/chat") {
		t.Errorf("numbers of a service that has gone:\n%s", text)
	}
}
