package kube_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// hands are the kubelets of nodes that have no machine: what real ones tell the API server the
// test tells it. A pod that is bound runs at once; one that is being deleted ends.
type hands struct {
	l *lab.Lab
	k *cluster.Cluster

	mu   sync.Mutex
	held string // a node whose kubelet is silent
}

// newHands makes nodes h1, h2 …, and minds them by an API server that is not killed.
func newHands(t *testing.T, l *lab.Lab, address string, nodes int) *hands {
	t.Helper()
	h := &hands{l: l, k: openBy(t, newGate(t, "127.0.0.1", tcp(address)).config(t, l, l.Kubeconfig()))}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("50")}
	for i := range nodes {
		n := &corev1.Node{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("h%d", i+1)},
			Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}
		if err := h.k.Create(t.Context(), cluster.Nodes, "", n, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	go cluster.Follow(t.Context(), h.k, cluster.Pods, cluster.Selection{}, cluster.Follower[corev1.Pod]{Each: func(p *corev1.Pod, deleted bool) {
		h.mu.Lock()
		held := h.held
		h.mu.Unlock()
		if !deleted && strings.HasPrefix(p.Spec.NodeName, "h") && p.Spec.NodeName != held {
			if err := h.minds(t, p); err != nil && fault.KindOf(err) != fault.NotFound && t.Context().Err() == nil {
				t.Errorf("the kubelet of %s: %v", p.Name, err)
			}
		}
	}})
	return h
}

func openBy(t *testing.T, kubeconfig string) *cluster.Cluster {
	t.Helper()
	k, err := cluster.Open(cluster.Config{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// hold has a node's kubelet be silent until release, which names its pod.
func (h *hands) hold(node string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = node
}

func (h *hands) release(t *testing.T, node, pod string) {
	t.Helper()
	h.hold("")
	var p corev1.Pod
	if err := h.k.Get(t.Context(), cluster.Pods, "default", pod, &p); err != nil {
		t.Fatal(err)
	}
	if p.Spec.NodeName != node {
		t.Fatalf("pod %s is on %q", pod, p.Spec.NodeName)
	}
	if err := h.mind(t, &p); err != nil {
		t.Fatal(err)
	}
}

// minds is mind, again while the API server fails: it may have been done then.
func (h *hands) minds(t *testing.T, p *corev1.Pod) error {
	return h.insist(t, func(again bool) error {
		if again {
			var now corev1.Pod
			if err := h.k.Get(t.Context(), cluster.Pods, p.Namespace, p.Name, &now); err != nil || now.UID != p.UID {
				return err
			}
			p = &now
		}
		return h.mind(t, p)
	})
}

// insist does something until the API server says yes or no.
func (h *hands) insist(t *testing.T, do func(again bool) error) error {
	for again := false; ; again = true {
		err := do(again)
		if err == nil || fault.KindOf(err) != fault.Unavailable || t.Context().Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // nothing tells that it would answer
	}
}

// mind does for a pod what its kubelet would.
func (h *hands) mind(t *testing.T, p *corev1.Pod) error {
	over := p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
	switch {
	case p.DeletionTimestamp != nil && !over:
		return h.say(t, p.Namespace, p.Name, corev1.PodFailed, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error", FinishedAt: metav1.Now()}})
	case p.DeletionTimestamp != nil && (*p.DeletionGracePeriodSeconds > 0 || len(p.Finalizers) == 0): // an API server whose storage fails between the two steps of a deletion leaves it to this
		now := int64(0)
		return h.k.Delete(t.Context(), cluster.Pods, p.Namespace, p.Name, cluster.Deletion{UID: p.UID, Grace: &now})
	case p.Status.Phase == corev1.PodPending:
		return h.say(t, p.Namespace, p.Name, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
	}
	return nil
}

// say is a kubelet's word for a pod.
func (h *hands) say(t *testing.T, namespace, pod string, phase corev1.PodPhase, s corev1.ContainerState) error {
	started := s.Running != nil
	all := []corev1.ContainerStatus{{Name: render.Container, Image: "x", ContainerID: "containerd://x", Started: &started, State: s}}
	return h.k.Patch(t.Context(), cluster.Pods, namespace, pod, "status", cluster.Merge, map[string]any{"status": map[string]any{"phase": phase, "containerStatuses": all}}, nil)
}

// end has all pods of an attempt end by themselves, the first with an exit code.
func (h *hands) end(t *testing.T, r engine.Report, exit int) {
	t.Helper()
	for i := range r.Nodes {
		o := podagent.Outcome{Ref: r.Ref, Index: i, Cause: engine.Exited, Exit: job.ExitCode{Status: exit}, Started: r.Started, Ended: time.Now()}
		ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(exit), Message: string(o.Text()), StartedAt: metav1.Now(), FinishedAt: metav1.Now()}} //nolint:gosec // of a test
		if err := h.insist(t, func(again bool) error {
			err := h.say(t, "default", fmt.Sprintf("%s-%d", r.Native, i), corev1.PodFailed, ended)
			if again && err != nil && fault.KindOf(err) == fault.NotFound {
				return nil // it was heard the first time, and the pod deleted since
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// pods are those of an attempt that are in the cluster: "INDEX NODE".
func (h *hands) pods(t *testing.T, native string) (out []string) {
	t.Helper()
	if _, err := cluster.List(t.Context(), h.k, cluster.Pods, cluster.Selection{Namespace: "default"}, func(p *corev1.Pod) error {
		if i, ok := strings.CutPrefix(p.Name, native+"-"); ok {
			out = append(out, i+" "+p.Spec.NodeName)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// ledger forgets all that a driver has, of which nothing lives, and waits until the cluster has
// nothing of it: no pod, no finalizer, no Secret, no Service.
func (h *hands) ledger(t *testing.T, e *kube.Engine, root string) {
	t.Helper()
	all, err := e.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if !r.Gone {
			t.Errorf("%+v", r)
		}
		if err := e.Forget(t.Context(), r.Ref); err != nil {
			t.Error(err)
		}
	}
	server := serverOf(t, root)
	var left []string
	defer func() {
		if len(left) > 0 {
			t.Logf("left are:\n%s", strings.Join(left, "\n"))
		}
	}()
	until(t, "nothing is left in the cluster", func() bool {
		left = nil
		for _, r := range []cluster.Resource{cluster.Pods, cluster.Secrets, cluster.Services} {
			if _, err := cluster.List(t.Context(), h.k, r, cluster.Selection{Labels: render.LabelServer + "=" + server}, func(o *metav1.PartialObjectMetadata) error {
				o.ManagedFields = nil
				text, _ := json.Marshal(o.ObjectMeta)
				left = append(left, fmt.Sprintf("%s %.1500s", r, text))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		return len(left) == 0
	})
}
