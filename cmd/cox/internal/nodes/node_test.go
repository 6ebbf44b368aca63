package nodes_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
)

func TestNodeChanges(t *testing.T) {
	f := newFake(t)
	f.Answer("POST /v1/nodes/change", func(*http.Request) (any, error) {
		return api.Nodes{Nodes: []api.Node{{Name: "v1", State: "draining", Jobs: []string{"7"}}}}, nil
	})
	f.Answer("GET /v1/nodes", func(*http.Request) (any, error) {
		return api.Nodes{Nodes: []api.Node{{Name: "v1", State: "up", Partitions: []string{"gpu"}}, {Name: "v2", State: "down"}}}, nil
	})
	f.Cox(t, "node", "drain", "v[1-2]").Check(t, 2, "", "~a reason is required: --reason")
	f.Cox(t, "node", "drain", "v[1-2]", "--reason", "fan").Check(t, 0, "v1        draining: 1 job still there: 7\n", "")
	var got api.NodeChange
	f.Last(t, &got)
	if d := cmp.Diff(api.NodeChange{Nodes: []string{"v[1-2]"}, Verb: "drain", Reason: "fan"}, got); d != "" {
		t.Error(d)
	}
	f.Cox(t, "nodes", "-o", "name", "-t", "down").Check(t, 0, "v2\n", "")
	f.Cox(t, "nodes", "v[1-3]").Check(t, 3, "", "~node v3 does not exist")
	f.Cox(t, "nodes", "-p", "gpu", "-o", "name").Check(t, 0, "v1\n", "")
	f.Cox(t, "node").Check(t, 2, "", "~cox node needs a command: check, drain, resume or show\n")
}
