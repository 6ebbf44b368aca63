package nodes_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Seen to fail with an exit code that a warning raises, and with --last that runs checks.
func TestNodeCheck(t *testing.T) {
	f := newFake(t)
	two := 2
	checks := api.NodeChecks{Nodes: []api.NodeCheck{
		{Node: "v1", Pool: "local", Results: []fleet.CheckResult{}},
		{Node: "v2", Pool: "local", At: time.Time{}.AddDate(3000, 0, 0), Results: []fleet.CheckResult{{Check: "disk", Verdict: fleet.Warned, Text: "/tmp is full"}}},
	}}
	f.Answer("POST /v1/node-checks", func(*http.Request) (any, error) { return checks, nil })
	f.Answer("GET /v1/node-checks", func(*http.Request) (any, error) { return checks, nil })
	f.Cox(t, "node", "check", "v[1-2]", "--pool", "local").Check(t, 0, "~v2    disk   warn    0 s  /tmp is full", "")
	var got api.CheckNodes
	f.Last(t, &got)
	if d := cmp.Diff(api.CheckNodes{Nodes: []string{"v[1-2]"}, Pool: "local"}, got); d != "" {
		t.Error(d)
	}
	f.Cox(t, "node", "check", "--last", "v1").Check(t, 0, "~v1    -      -         -  not checked yet", "")
	f.Cox(t, "node", "check", "--last", "v9").Check(t, 3, "", "~there is no node v9 that can be checked")
	checks.Nodes[1].Results[0] = fleet.CheckResult{Check: "devices", Device: &two, Verdict: fleet.Failed, Text: "gone"}
	checks.Nodes[1].Fences = []fleet.HealthFence{{Check: "devices", Device: &two, Evidence: "gone"}}
	f.Cox(t, "node", "check", "--last", "v2").Check(t, 1, "~devices 2  fail    0 s  gone; fenced", "")
}
