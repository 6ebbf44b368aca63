package kube

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// checkKueueGates refuses pods that Kueue has not put its gate on: they would begin one by one. None
// has begun: ours is on them.
func checkKueueGates(g render.GangKind, pods []*corev1.Pod) error {
	if g != render.Kueue {
		return nil
	}
	for _, p := range pods {
		if !hasGate(p, render.KueueGate) && !slices.Contains(p.Finalizers, render.KueueManaged) {
			return &never{engine.Unready, fault.New(fault.Unsupported, "Kueue takes no notice of pod %s/%s", p.Namespace, p.Name).
				Advise("switch on its integration pod, and see that its managedJobsNamespaceSelector has the namespace; or place the pool's pods (placed=true)")}
		}
	}
	return nil
}

func hasGate(p *corev1.Pod, gate string) bool {
	return slices.ContainsFunc(p.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == gate })
}

// workload is what is used of Kueue's.
type workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// workloadResource is the resource in the version that the gang was found in, or the preferred one.
func workloadResource(version string) cluster.Resource {
	g, _ := gang.OfKind(render.Kueue)
	if version != "" {
		g.Resource.Version = version
	}
	return g.Resource
}

// tearDownPod does what is left to do for a pod whose end is written down, beyond our finalizer: one
// that has no owner is deleted, as nobody collects it; and for one that was deleted before it
// had a node Kueue waits for another in its place, and keeps it, until its Workload is deleted.
func (c *clusterCalls) tearDownPod(ctx context.Context, p *corev1.Pod, m podstatus.Member) error {
	switch {
	case !m.Over:
		return nil
	case len(p.OwnerReferences) == 0 && p.DeletionTimestamp == nil:
		if err := c.k.Delete(ctx, cluster.Pods, p.Namespace, p.Name, cluster.Deletion{UID: p.UID}); !isSettledError(err) {
			return err
		}
	case p.Spec.NodeName == "" && p.DeletionTimestamp != nil && slices.Contains(p.Finalizers, render.KueueManaged):
		return c.deleteWorkload(ctx, p)
	}
	return nil
}

// deleteWorkload deletes the Workload that Kueue has made of a pod's group, if it is that of this pod.
func (c *clusterCalls) deleteWorkload(ctx context.Context, p *corev1.Pod) error {
	at := workloadResource(c.kueueVersion(ctx))
	var w workload
	err := c.k.Get(ctx, at, p.Namespace, p.Labels[render.KueueGroup], &w)
	if fault.KindOf(err) == fault.NotFound && err != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if w.DeletionTimestamp != nil || !isOwner(p.UID, &w) {
		return nil
	}
	if err := c.k.Delete(ctx, at, p.Namespace, w.Name, cluster.Deletion{UID: w.UID}); !isSettledError(err) {
		return fmt.Errorf("workload %s: %w", w.Name, err)
	}
	return nil
}

// kueueVersion is that of its API which the cluster serves.
func (c *clusterCalls) kueueVersion(ctx context.Context) string {
	served, err := c.k.Served(ctx)
	if err != nil {
		return ""
	}
	for _, g := range gang.Served(served) {
		if g.Kind == render.Kueue {
			return g.Resource.Version
		}
	}
	return ""
}
