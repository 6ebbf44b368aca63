package pools

import (
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/internal/verify"
)

// TestNameNodes: ranks in pods are on the nodes that the job held; those that know their node keep
// it, and where the nodes are not known nothing is made up.
// Seen to fail with the names of pods kept.
func TestNameNodes(t *testing.T) {
	nodes := []verify.Node{{Name: "n1"}, {Name: "n2"}}
	ranks := []verify.Rank{{Rank: 1, Node: "cox-a-1-1-1"}, {Rank: 0, Node: "n2"}, {Rank: 7, Node: "cox-a-1-1-7"}}
	nameNodes(ranks, []api.Claim{{Node: "n1"}, {Node: "n2"}}, nodes)
	if ranks[0].Node != "n2" || ranks[1].Node != "n2" || ranks[2].Node != "cox-a-1-1-7" {
		t.Errorf("%+v", ranks)
	}
	ranks[0].Node = "cox-a-1-1-1"
	nameNodes(ranks, []api.Claim{{Node: "@k8s"}, {Node: "@k8s"}}, nil)
	if ranks[0].Node != "cox-a-1-1-1" {
		t.Errorf("%+v", ranks[0])
	}
}
