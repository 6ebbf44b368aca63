package kube_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// capacity is how much of something a node has.
func (b *bench) capacity(t *testing.T, node, what string) *resource.Quantity {
	t.Helper()
	q, err := resource.ParseQuantity(b.l.Kubectl(t, "get", "node", node, "-o", "jsonpath={.status.capacity."+what+"}"))
	if err != nil {
		t.Fatal(err)
	}
	return &q
}

// testRefusedAgain: a kubelet begins anew, has less for pods than before, and refuses one that runs.
// It ends it, and says why when it has ended. The job has begun, and nobody has cancelled it.
//
// Seen to fail with: an end that is read before its kubelet has said why (cancelled).
func testRefusedAgain(t *testing.T, b *bench, node string) {
	e := b.open(t, t.TempDir())
	l := launch(1, forever, node)
	l.Claims[0].Take = amount.Vector{CPU: amount.CPUs(1)}
	r := begin(t, e, l)
	cpus := b.capacity(t, node, "cpu").MilliValue()
	b.l.Configure(t, node, "serializeImagePulls", fmt.Sprintf("systemReserved: {cpu: %dm}\nserializeImagePulls", cpus-500))
	r = await(t, e, r.Ref, "gone", func(now engine.Report) bool {
		if n := len(living(t, r, "", "")); now.Gone && n > 0 {
			t.Errorf("it is called gone, and %d processes of it live", n)
		}
		return now.Gone
	})
	if r.Cause != engine.NodeLost || r.Started.IsZero() || !strings.Contains(r.Message, "OutOfcpu") || !strings.Contains(r.Message, "had begun") {
		t.Errorf("%+v", r)
	}
}

// testPressed: a node's memory runs short, whoever has it, and its kubelet evicts the pod, or, if it
// finds that out as it begins anew, refuses it. The job is one of a node that was lost, in the
// kubelet's words; the node takes no work, and says why.
func testPressed(t *testing.T, b *bench, node string) {
	e := b.open(t, t.TempDir())
	l := launch(1, forever, node)
	r := begin(t, e, l)
	all := b.capacity(t, node, "memory").Value()
	b.l.Configure(t, node, "memory.available: 100Mi", fmt.Sprintf("memory.available: %dKi", all>>10-16<<10))
	r = gone(t, e, r.Ref)
	if r.Cause != engine.NodeLost || r.Started.IsZero() || !strings.Contains(r.Message, "The node was low on resource: memory") && !strings.Contains(r.Message, "The node had condition: [MemoryPressure]") {
		t.Errorf("%+v", r)
	}
	until(t, "the node takes no work", func() bool {
		nodes, err := e.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			if n.Name == node {
				return n.State == fleet.Draining && strings.Contains(n.Why, "MemoryPressure")
			}
		}
		return false
	})
}

// nodeGone: a node is deleted after it was chosen, and before the pod is bound to it, which the API
// server does not mind. Once the cluster has collected the pod, and nobody has spoken for it, the
// attempt has ended as one that never began, with the reason. While that is waited for, other tests
// go on. The next launch there waits; elsewhere it begins.
func (w *weather) nodeGone(t *testing.T) func(*testing.T) {
	w.node(t, "gone")
	e := w.open(t, w.l.Kubeconfig(), t.TempDir())
	if all, err := e.Nodes(t.Context()); err != nil || len(all) != 9 {
		t.Fatalf("%d nodes: %v", len(all), err)
	}
	if err := w.h.k.Delete(t.Context(), cluster.Nodes, "", "gone", cluster.Deletion{}); err != nil {
		t.Fatal(err)
	}
	l := launch(1, "#!/bin/sh\n", "gone")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T) {
		r := gone(t, e, l.Ref)
		if r.Cause != engine.Unready || !r.Started.IsZero() || !strings.Contains(r.Message, "node gone, which was gone before its kubelet took it") {
			t.Errorf("%+v", r)
		}
		if _, err := e.Nodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.Ref.Attempt, l.Job.Attempt = 2, 2
		if err := e.Launch(t.Context(), l); fault.KindOf(err) != fault.Exhausted || !strings.Contains(err.Error(), `there is no node "gone" in pool kube any more`) {
			t.Error(err)
		}
		again := launch(1, "#!/bin/sh\n", "h1")
		again.Ref.Attempt, again.Job.Attempt = 3, 3
		r = begin(t, e, again)
		w.h.end(t, r, 7)
		w.exits(t, e, r.Ref, 7)
	}
}

// shutDown: a machine is lost for good while a job runs on it. Its pod is deleted, and no kubelet
// says that it ended: uncertain, while other tests go on. When the administrator says that the node
// is off, by the taint that Kubernetes has for that, the job has lost its node; the cluster takes the
// pod away, and nothing of it is left.
func (w *weather) shutDown(t *testing.T) func(*testing.T) {
	w.node(t, "dark")
	root := t.TempDir()
	e := w.open(t, w.l.Kubeconfig(), root)
	l := launch(1, "#!/bin/sh\n", "dark")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	made := await(t, e, l.Ref, "made", func(r engine.Report) bool { return r.Native != "" }).Native
	until(t, "its pod is bound", func() bool { return slices.Equal(w.h.pods(t, made), []string{"0 dark"}) })
	if err := w.h.say(t, "default", made+"-0", corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}); err != nil {
		t.Fatal(err)
	}
	await(t, e, l.Ref, "running", func(r engine.Report) bool { return r.Phase == engine.Running })
	silent := map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}}}
	if err := w.h.k.Patch(t.Context(), cluster.Nodes, "", "dark", "status", cluster.Merge, silent, nil); err != nil {
		t.Fatal(err)
	}
	grace := int64(1)
	if err := w.h.k.Delete(t.Context(), cluster.Pods, "default", made+"-0", cluster.Deletion{Grace: &grace}); err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T) {
		await(t, e, l.Ref, "uncertain", func(r engine.Report) bool {
			if r.Gone {
				t.Fatalf("gone without proof: %+v", r)
			}
			return r.Uncertain
		})
		if _, err := e.Nodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		await(t, e, l.Ref, "uncertain, with the remedy", func(r engine.Report) bool { return strings.Contains(r.Message, "kubectl taint node dark") })
		w.l.Kubectl(t, "taint", "node", "dark", "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
		if _, err := e.Nodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := gone(t, e, l.Ref); r.Cause != engine.NodeLost || r.Started.IsZero() || !strings.Contains(r.Message, "node dark is out of service") {
			t.Errorf("%+v", r)
		}
		w.h.ledger(t, e.Engine, root)
	}
}

// node makes one that nobody minds.
func (w *weather) node(t *testing.T, name string) {
	t.Helper()
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("50")}
	if err := w.h.k.Create(t.Context(), cluster.Nodes, "", &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}, false, nil); err != nil {
		t.Fatal(err)
	}
}
