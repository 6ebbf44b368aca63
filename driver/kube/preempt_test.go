package kube_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/resource"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// testPreempted: the cluster's scheduler takes the room of a gang for somebody else's pod of a
// higher priority, which is of a group. It takes the gang whole, though one of its nodes would
// do, and the attempt ends as preempted, with the cluster's words. The nodes are alike.
//
// Seen to fail with: a PodGroup that is disrupted pod by pod (one pod of four is taken).
func testPreempted(t *testing.T, b *bench, e *kube.Engine) {
	b.l.Apply(t, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 1000\n")
	l := folded(10, forever, 4)
	l.Job.Spec.Groups[0].PerNode.Vector.CPU = resource.OneCPU
	pods := b.keep(t, begin(t, e, l).Native, 4)
	cpus := strings.Fields(b.l.Kubectl(t, "get", "nodes", "-o", "jsonpath={.items[*].status.allocatable.cpu}"))
	b.l.Apply(t, fmt.Sprintf(`apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: urgent}
spec: {priorityClassName: urgent, schedulingPolicy: {gang: {minCount: 1}}}
---
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec:
  schedulingGroup: {podGroupName: urgent}
  priorityClassName: urgent
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: %s, command: [sleep, '600'], resources: {requests: {cpu: %q}}}]
`, lab.Base, cpus[0]))
	t.Cleanup(func() {
		_, _ = b.l.Try(context.Background(), "", "delete", "pod/urgent", "podgroup/urgent", "priorityclass/urgent")
	})
	r := gone(t, e, l.Ref)
	if r.Cause != engine.Preempted || r.Exit.OK() || r.Started.IsZero() || !strings.Contains(r.Message, "was ended by the cluster: PreemptionByScheduler: ") {
		t.Errorf("%+v", r)
	}
	why := b.l.Kubectl(t, append([]string{"get", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="DisruptionTarget")].reason}`}, pods...)...)
	if taken := strings.Count(why, "PreemptionByScheduler"); taken != 4 {
		t.Errorf("the cluster took %d pods of 4: %q", taken, why)
	}
}

// keep keeps the objects of an attempt's pods until the test ends, so that they can be read after
// the attempt has.
func (b *bench) keep(t *testing.T, native string, n int) []string {
	t.Helper()
	var pods []string
	for i := range n {
		pods = append(pods, fmt.Sprintf("pod/%s-%d", native, i))
	}
	patch := func(ctx context.Context, kind, text string) error {
		var failed error
		for _, p := range pods {
			_, err := b.l.Try(ctx, "", "patch", p, "--type="+kind, "--patch="+text)
			failed = errors.Join(failed, err)
		}
		return failed
	}
	if err := patch(t.Context(), "json", `[{"op":"add","path":"/metadata/finalizers/-","value":"lab/kept"}]`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := patch(context.Background(), "merge", `{"metadata":{"finalizers":[]}}`); err != nil {
			t.Error(err)
		}
	})
	return pods
}
