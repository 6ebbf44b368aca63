package kube

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ engine.EndpointWatcher = (*Engine)(nil)

// WatchEndpoints is engine.EndpointWatcher's: the address of an attempt's first pod, and whether its kubelet
// calls it ready.
func (e *Engine) WatchEndpoints(ctx context.Context, f func(engine.Endpoints) error) error {
	if err := e.board.Watch(ctx, e.ctx.Done(), f); err != nil {
		return err
	}
	return kit.Closed(engineName)
}

// publishEndpoints says where an attempt serves, once its first pod has an address and runs. The caller
// holds the lock.
func (e *Engine) publishEndpoints(a *attempt) {
	if a.ended || a.order == nil || a.order.Job.Spec.Serve == nil || len(a.pods) == 0 {
		return
	}
	p := a.pods[0]
	if p == nil || p.Status.PodIP == "" || a.report.Phase < engine.Running {
		return
	}
	serve := a.order.Job.Spec.Serve
	out := engine.Endpoints{Ref: a.ref, Job: a.report.Job, Ready: podstatus.Serves(p.Pod) && !p.gone && a.report.Phase == engine.Running && !a.report.Uncertain && !a.report.Suspended}
	for i, n := range render.ServePorts(serve) {
		out.List = append(out.List, engine.Endpoint{Port: serve.Ports[i].Name, Host: p.Status.PodIP, Number: n})
	}
	switch {
	case a.stop != nil:
		out.Ready, out.Failed = false, "it is being ended"
	case a.report.Uncertain:
		out.Failed = a.report.Message
	case !out.Ready:
		out.Failed = "its pod is not ready: kubectl describe pod " + p.Name + " --namespace " + p.Namespace + " shows its probes"
	}
	e.board.Set(out)
}

// nameForClients has a service be found by its name in the cluster. Its replicas run without that: what
// is wrong is logged.
func (e *Engine) nameForClients(s *corev1.Service) {
	if s == nil {
		return
	}
	var err error
	for range clientTries {
		if err = e.makeClientService(e.k, s); fault.KindOf(err) != fault.Conflict {
			break
		}
	}
	if err != nil {
		e.cfg.Log.Warn("kubernetes: a service has no name in the cluster", "namespace", s.Namespace, "service", s.Name, "error", err)
	}
}

// clientTries is how often a Service is changed that another replica changes too.
const clientTries = 3

// makeClientService makes the Service of a service, or has another replica own the one that is there.
// way is in whose name it is made.
func (e *Engine) makeClientService(way *cluster.Cluster, s *corev1.Service) error {
	ctx, cancel := e.calls.callContext()
	defer cancel()
	err := way.Create(ctx, cluster.Services, s.Namespace, s, false, nil)
	if fault.KindOf(err) != fault.Conflict {
		return err
	}
	var there corev1.Service
	if err := e.k.Get(ctx, cluster.Services, s.Namespace, s.Name, &there); err != nil {
		return err
	}
	own := s.OwnerReferences[0]
	switch {
	case there.Labels[render.LabelServer] != s.Labels[render.LabelServer] || there.Labels[render.LabelService] != s.Labels[render.LabelService]:
		return fault.New(fault.Conflict, "there is a Service %s/%s that is not Coxswain's; it is left alone", s.Namespace, s.Name)
	case there.Labels[render.LabelWhose] != s.Labels[render.LabelWhose] && there.Labels[render.LabelWhose] != "":
		return fault.New(fault.Conflict, "the Service %s/%s is another service's of the same name but for a slash; it is left alone", s.Namespace, s.Name)
	case slices.ContainsFunc(there.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == own.UID }):
		return nil
	}
	patch := map[string]any{
		"metadata": map[string]any{"resourceVersion": there.ResourceVersion, "ownerReferences": append(there.OwnerReferences, own)},
		"spec":     map[string]any{"ports": s.Spec.Ports},
	}
	return e.k.Patch(ctx, cluster.Services, s.Namespace, s.Name, "", cluster.Merge, patch, nil)
}
