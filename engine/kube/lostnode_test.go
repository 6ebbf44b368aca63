package kube

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/fleet"
)

// TestANodeThatIsShutDown: a pod was taken away on a node that is silent, so nobody can say whether
// it ended. Once an administrator says that the node is off, the attempt has lost it. A node that is
// said to be off and whose kubelet answers is not taken for off.
//
// Seen to fail with: any node with the taint taken for off.
func TestANodeThatIsShutDown(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	pod := s.bound(1)[0]
	s.runs()
	s.shown(e, l.Ref)
	s.mu.Lock()
	s.keep(podOf(pod), "DELETED", s.objects[podOf(pod)])
	s.mu.Unlock()
	reported(t, e, l.Ref, "uncertain", func(r engine.Report) bool { return r.Uncertain })
	look := func(ready string, taints ...any) {
		s.put("/api/v1/nodes/n1", "MODIFIED", map[string]any{
			"metadata": map[string]any{"name": "n1"},
			"spec":     map[string]any{"taints": taints},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready}}},
		})
		if _, err := e.Nodes(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	off := map[string]any{"key": corev1.TaintNodeOutOfService, "value": "nodeshutdown", "effect": "NoExecute"}
	look("True", off)
	if dark, off := e.isDark("n1"); dark || off {
		t.Error("its kubelet answers")
	}
	look("Unknown")
	reported(t, e, l.Ref, "uncertain, with the remedy", func(r engine.Report) bool {
		return r.Uncertain && strings.Contains(r.Message, "kubectl taint node n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	})
	look("Unknown", off)
	r := goneFrom(t, e, l.Ref)
	if r.Cause != engine.NodeLost || r.Started.IsZero() || !strings.Contains(r.Message, "node n1 is out of service") {
		t.Errorf("%+v", r)
	}
}

// A node that is said to be off and whose kubelet answers gets no work: its pods are evicted at once.
//
// Seen to fail with: the taint passed over, as those are that say what a condition says too.
func TestOutOfServiceIsSaid(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	if state, why := state(&Terms{}, n); state != fleet.Draining || !strings.Contains(why, "out-of-service") {
		t.Errorf("%v: %s", state, why)
	}
}
