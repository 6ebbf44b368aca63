package site_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
)

// TestPod: what the operators write of their nodes, and what is near it and says nothing.
//
// Seen to fail with: a Kubernetes node taken from any instance id; a comment without a pod
// taken for one.
func TestPod(t *testing.T) {
	for name, tt := range map[string]struct {
		node site.Node
		want site.Pod // By empty: none
		text string
	}{
		"Slinky 1.2": {
			site.Node{Name: "gpu-0", Comment: `{"namespace":"slurm","podName":"slurm-worker-gpu-0","node":"kube-7.dc1","nodeSetName":"gpu","nodeSetUID":"0f4a"}`},
			site.Pod{Namespace: "slurm", Name: "slurm-worker-gpu-0", Node: "kube-7.dc1", By: "Slinky"},
			"pod slurm/slurm-worker-gpu-0 on kube-7.dc1 (Slinky)",
		},
		"Slinky 0.2": {
			site.Node{Comment: `{"namespace":"slurm","podName":"slurm-compute-0"}`},
			site.Pod{Namespace: "slurm", Name: "slurm-compute-0", By: "Slinky"},
			"pod slurm/slurm-compute-0 (Slinky)",
		},
		"Slinky's words, by hand, as extra": {
			site.Node{Comment: "rack 7", Extra: ` {"namespace":"x","podName":"y","node":"z"}`},
			site.Pod{Namespace: "x", Name: "y", Node: "z", By: "Slinky"},
			"pod x/y on z (Slinky)",
		},
		"Slinky, not yet on a node": {
			site.Node{Comment: `{"namespace":"slurm","podName":"a","node":""}`},
			site.Pod{Namespace: "slurm", Name: "a", By: "Slinky"},
			"pod slurm/a (Slinky)",
		},
		"Soperator": {
			site.Node{Name: "worker-0", Address: "worker-0.worker.soperator.svc", Instance: "computeinstance-e00abc", Extra: "InstanceId=x"},
			site.Pod{Namespace: "soperator", Name: "worker-0", Node: "computeinstance-e00abc", By: "Soperator"},
			"pod soperator/worker-0 on computeinstance-e00abc (Soperator)",
		},
		"Soperator by the whole name, no instance id": {
			site.Node{Address: "worker-0.worker.soperator.svc.cluster.local."},
			site.Pod{Namespace: "soperator", Name: "worker-0", By: "Soperator"},
			"pod soperator/worker-0 (Soperator)",
		},
		"SUNK, drained from Kubernetes": {site.Node{Name: "slurm-h100-1-2", Reason: "k8s:cordoned"}, site.Pod{By: "SUNK"}, "a pod (SUNK)"},

		"a cloud's instance":             {node: site.Node{Name: "c1", Address: "10.0.0.7", Instance: "i-0123456789abcdef0"}},
		"a comment of a person":          {node: site.Node{Comment: "namespace slurm podName x"}},
		"other JSON":                     {node: site.Node{Comment: `{"podName":"x"}`, Extra: `{"node":"kube-7"}`}},
		"JSON that is cut off":           {node: site.Node{Comment: `{"namespace":"slurm","podName":"x","node":"k`}},
		"names that are none":            {node: site.Node{Comment: `{"namespace":"a b","podName":"x\n"}`}},
		"a list":                         {node: site.Node{Comment: `["namespace"]`}},
		"a host below svc":               {node: site.Node{Address: "n1.cluster.svc"}},
		"a host of a company":            {node: site.Node{Address: "n1.rack.svc.example.org"}},
		"a reason that speaks of k8s":    {node: site.Node{Reason: "drained for k8s: upgrade"}},
		"a name and features that sound": {node: site.Node{Name: "slurm-worker-0", Features: []string{"k8s", "slinky"}}},
	} {
		got, ok := tt.node.Pod()
		if got != tt.want || ok != (tt.want.By != "") {
			t.Errorf("%s: %+v, %v, want %+v", name, got, ok, tt.want)
		}
		if ok && got.String() != tt.text {
			t.Errorf("%s: said as %q, want %q", name, got.String(), tt.text)
		}
	}
}

func FuzzPod(f *testing.F) {
	f.Add(`{"namespace":"slurm","podName":"a","node":"b"}`, "worker-0.worker.soperator.svc", "i")
	f.Fuzz(func(t *testing.T, comment, address, instance string) {
		n := site.Node{Comment: comment, Address: address, Instance: instance}
		if p, ok := n.Pod(); ok && (p.By == "" || len(p.Node) > 253) {
			t.Errorf("%+v", p)
		}
	})
}
