package submission_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
)

// TestSubmitCompletesAccountsAndQOS: from the site's rules.
func TestSubmitCompletesAccountsAndQOS(t *testing.T) {
	f := newFake(t)
	f.Answer("GET /v1/policy", func(*http.Request) (any, error) {
		return api.Policy{Revision: 1, File: "queues.yaml", Text: "qos:\n- name: high\n- name: low\n"}, nil
	})
	f.Answer("GET /v1/shares", func(*http.Request) (any, error) {
		return api.Shares{Shares: []api.Share{{Account: "root"}, {Account: "nlp"}, {Account: "nlp", User: "anna"}}}, nil
	})
	for flag, want := range map[string]string{"-q": "high\nlow\n:", "--account": "root\nnlp\n:", "--notify-on": "begin\nend\nfail\n:"} {
		if r := f.Cox(t, "__complete", "submit", flag, ""); !strings.HasPrefix(r.Out, want) {
			t.Errorf("%s: %q", flag, r.Out)
		}
	}
}
