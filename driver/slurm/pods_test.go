package slurm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
)

// TestPods: a node in a pod is on the machine that the pod's operator names; where none is
// named, that is said, and nothing is made up.
func TestPods(t *testing.T) {
	s := &stage{nodes: []site.Node{
		{Name: "n1", CPUs: 8, Available: true, GRES: "gpu:h100:4", Comment: `{"namespace":"slurm","podName":"n1","node":"kube-7"}`},
		{Name: "n2", CPUs: 8, Available: true, GRES: "gpu:h100:4", Address: "n2.worker.soperator.svc"},
	}}
	e, _, _ := play(t, s)
	nodes, err := e.Nodes(t.Context())
	if err != nil || !slices.Equal(nodes[0].Hosts, []string{"kube-7"}) || nodes[1].Hosts != nil {
		t.Fatalf("%+v, %v", nodes, err)
	}
	notes := func() string {
		t.Helper()
		info, err := e.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(info.Notes, "\n")
	}
	if text := notes(); !strings.Contains(text, "n2 run in Kubernetes pods on machines that Slurm does not name") {
		t.Errorf("it is said: %s", text)
	}
	s.nodes[1].Instance = "kube-8"
	if nodes, err := e.Nodes(t.Context()); err != nil || !slices.Equal(nodes[1].Hosts, []string{"kube-8"}) || strings.Contains(notes(), "pods") {
		t.Errorf("%+v, %v; it is said: %s", nodes, err, notes())
	}
}
