package inventory

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// TestWholeGPU: by which name a job asks for a GPU where the cluster's scheduler chooses the nodes.
func TestWholeGPU(t *testing.T) {
	node := func(labels map[string]string, resources ...string) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{}}}
		for _, r := range resources {
			n.Status.Allocatable[corev1.ResourceName(r)] = quantity.MustParse("2")
		}
		return n
	}
	for _, c := range []struct {
		what, set, want, refused string
		nodes                    []corev1.Node
	}{
		{what: "nobody has any", want: "nvidia.com/gpu", nodes: []corev1.Node{node(nil)}},
		{what: "AMD's", want: "amd.com/gpu", nodes: []corev1.Node{node(nil), node(nil, "amd.com/gpu")}},
		{what: "parts beside", want: "nvidia.com/gpu", nodes: []corev1.Node{node(nil, "nvidia.com/gpu"), node(nil, "nvidia.com/mig-1g.10gb")}},
		{what: "turns beside", want: "amd.com/gpu", nodes: []corev1.Node{node(nil, "amd.com/gpu"), node(map[string]string{"nvidia.com/gpu.replicas": "4"}, "nvidia.com/gpu")}},
		{what: "two makers", refused: "amd.com/gpu and nvidia.com/gpu", nodes: []corev1.Node{node(nil, "nvidia.com/gpu"), node(nil, "amd.com/gpu")}},
		{what: "two makers, and one is set", set: "amd.com/gpu", want: "amd.com/gpu", nodes: []corev1.Node{node(nil, "nvidia.com/gpu"), node(nil, "amd.com/gpu")}},
		{what: "turns alone", refused: "profile shared", nodes: []corev1.Node{node(map[string]string{"nvidia.com/gpu.replicas": "4"}, "nvidia.com/gpu")}},
		{what: "parts alone", refused: "profile 1g.10gb", nodes: []corev1.Node{node(nil, "nvidia.com/mig-1g.10gb")}},
	} {
		s := New(nil, settings.Terms{Namespace: "n", GPU: c.set}, "")
		s.machines = readNodes(&s.terms, c.nodes, nil)
		claimed := Machine{Ask: []string{""}} // by DRA
		claimed.Node.Devices = []fleet.Device{{Kind: "gpu"}}
		s.machines = append(s.machines, claimed)
		got, err := s.WholeGPU(t.Context())
		switch {
		case c.refused == "" && (err != nil || got != c.want):
			t.Errorf("%s: %q, %v; want %q", c.what, got, err, c.want)
		case c.refused != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.refused) || fault.Remedy(err) == ""):
			t.Errorf("%s: %q, %v, %q", c.what, got, err, fault.Remedy(err))
		}
	}
}
