package kube_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// TestDeadlock: two gangs of five pods of a GPU each come at once, pods of one between those of
// the other, to eight GPUs. As plain pods each gets four, and neither ever has five. By the
// cluster's own gangs one begins whole, and the other has nothing until that has ended. Where
// Coxswain binds, nothing is bound before nodes for all are chosen (TestHardCase_20_twoGangs,
// and on a real control plane TestKube of cmd/cox).
func TestDeadlock(t *testing.T) {
	t.Parallel()
	l := lab.Start(t, lab.NativeGangs())
	eight(t, l)
	plainly(t, l)
	deadlock(t, l, settings.Terms{Gang: render.Native}, "no nodes for its 5 pods, which begin together")
}

// eight are nodes of one GPU each.
func eight(t *testing.T, l *lab.Lab) {
	t.Helper()
	var nodes []lab.Fake
	for i := range 8 {
		nodes = append(nodes, lab.Fake{Name: fmt.Sprintf("f%d", i+1), Capacity: map[string]string{"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}})
	}
	l.Fake(t, nodes...)
}

// plainly lets the default scheduler have the pods of both gangs in turns, and shows that each
// of them holds what the other needs.
func plainly(t *testing.T, l *lab.Lab) {
	t.Helper()
	for i := range 5 {
		for _, gang := range []string{"a", "b"} {
			l.Apply(t, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %[1]s%[2]d, namespace: default, labels: {gang: %[1]s}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]
`, gang, i))
			want := "True"
			if i == 4 {
				want = "False" // no room any more
			}
			l.Kubectl(t, "wait", "--for=jsonpath={.status.conditions[?(@.type=='PodScheduled')].status}="+want, fmt.Sprintf("pod/%s%d", gang, i), "--timeout=5m")
		}
	}
	for _, gang := range []string{"a", "b"} {
		nodes := strings.Fields(l.Kubectl(t, "get", "pods", "--selector=gang="+gang, "--output=jsonpath={.items[*].spec.nodeName}"))
		if len(nodes) != 4 {
			t.Fatalf("gang %s has %d nodes", gang, len(nodes))
		}
	}
	l.Kubectl(t, "delete", "pods", "--selector=gang", "--grace-period=0", "--force", "--timeout=5m")
}
