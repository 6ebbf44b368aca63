package kube

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kube/render"
	"github.com/coxswain-sched/coxswain/fleet"
)

// TestANodeThatIsShutDown: a pod was taken away on a node that is silent, so nobody can say whether
// it ended. Once an administrator says that the node is off, the attempt has lost it. A node that is
// said to be off and whose kubelet answers is not taken for off, be it ready or not.
//
// Seen to fail with: any node with the taint taken for off; one whose kubelet says that it is not ready.
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
	for _, ready := range []string{"True", "False"} {
		look(ready, off)
		if dark, off := e.isDark("n1"); dark || off {
			t.Errorf("Ready is %s: its kubelet answers", ready)
		}
		e.mu.Lock()
		m := e.members(e.attempts[l.Ref], time.Now())
		e.mu.Unlock()
		if len(m) != 1 || m[0].over || !m[0].unsure || strings.Contains(m[0].why, "kubectl") {
			t.Errorf("Ready is %s: %+v", ready, m)
		}
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

// TestNothingStaysOfANodeThatIsOff: pods were told to end on two nodes that are silent, one of an attempt
// that is known and one of nobody. As each node is said to be off, its pod's object goes.
//
// Seen to fail with: our finalizer taken away by the object's own word alone; a pod of nobody looked
// at only when it changes.
func TestNothingStaysOfANodeThatIsOff(t *testing.T) {
	s := newStand(t, "n1", "n2")
	e := s.open(nil)
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	pod := s.bound(1)[0]
	s.runs()
	s.shown(e, l.Ref)
	s.mu.Lock()
	o := s.objects[podOf(pod)]
	meta(o)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	s.keep(podOf(pod), "MODIFIED", o)
	var nobodys map[string]any
	text, err := json.Marshal(o)
	if err != nil || json.Unmarshal(text, &nobodys) != nil {
		t.Fatal(err)
	}
	name := podName(e, engine.Ref{Allocation: 2, Attempt: 1}, 0)
	delete(meta(nobodys), "uid")
	meta(nobodys)["name"] = name
	meta(nobodys)["labels"].(map[string]any)[render.LabelAllocation] = "2"
	nobodys["spec"].(map[string]any)["nodeName"] = "n2"
	s.keep(podOf(name), "ADDED", nobodys)
	s.mu.Unlock()
	reported(t, e, l.Ref, "uncertain", func(r engine.Report) bool { return r.Uncertain })
	off := func(node string) {
		s.put("/api/v1/nodes/"+node, "MODIFIED", map[string]any{
			"metadata": map[string]any{"name": node},
			"spec":     map[string]any{"taints": []any{map[string]any{"key": corev1.TaintNodeOutOfService, "value": "nodeshutdown", "effect": "NoExecute"}}},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "Unknown"}}},
		})
		if _, err := e.Nodes(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	off("n1")
	if r := goneFrom(t, e, l.Ref); r.Cause != engine.NodeLost {
		t.Errorf("%+v", r)
	}
	until(t, "nobody's pod alone is left", func() bool { return slices.Equal(s.names("pods"), []string{name}) })
	off("n2")
	until(t, "no pod is left", func() bool { return len(s.names("pods")) == 0 })
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
