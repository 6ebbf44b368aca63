package kube

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine/kube/render"
	"github.com/coxswain-sched/coxswain/fault"
)

// Delegates reports whether the cluster's own scheduler chooses the nodes (engine.Delegator).
func (e *Engine) Delegates() bool { return !e.cfg.Terms.Placed }

// delegate fills in what pods a job has whose nodes the cluster's scheduler chooses, and by
// which gang they begin together.
func (e *Engine) delegate(ctx context.Context, o *order) error {
	var err error
	if o.Nodes, o.Claims, err = render.Spread(o.Job.Spec, e.cfg.Terms.GPU); err != nil || len(o.Nodes) == 1 {
		return err // one pod is a gang by itself
	}
	served, err := e.k.Served(ctx)
	if err != nil {
		return err
	}
	all := Gangs(served)
	g, ok := e.cfg.Terms.Choose(all)
	switch {
	case !ok:
		var found []string
		for _, x := range all {
			found = append(found, string(x.Kind))
		}
		return fault.New(fault.Unsupported, "the job has %d pods that have to begin together, and the cluster has nothing that the pool may use for that (it has: %s)", len(o.Nodes), strings.Join(append(found, "none more"), ", ")).
			Advise("install one of %s, let Coxswain choose the nodes of the pool, or ask for one node", strings.Join(GangKinds(), ", "))
	case g.Kind != Native:
		return fault.New(fault.Unsupported, "the job has %d pods that have to begin together, and pods are not given to %s yet", len(o.Nodes), g.Kind).
			Advise("let Coxswain choose the nodes of the pool, or ask for one node")
	}
	o.Gang = &g
	return nil
}

// podGroup is what is used of the cluster's own gangs.
type podGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              podGroupSpec `json:"spec"`
}

type podGroupSpec struct {
	SchedulingPolicy struct {
		Gang struct {
			MinCount int `json:"minCount"`
		} `json:"gang"`
	} `json:"schedulingPolicy"`
}

// group creates the gang of an attempt's pods.
func (e *Engine) group(a *attempt, r *render.Attempt, root types.UID) error {
	g := a.order.Gang
	if g == nil {
		return nil
	}
	p := new(podGroup)
	p.TypeMeta = metav1.TypeMeta{APIVersion: g.Resource.Group + "/" + g.Resource.Version, Kind: "PodGroup"}
	p.ObjectMeta = r.Service(root).ObjectMeta // the same name, marks and owner
	p.Spec.SchedulingPolicy.Gang.MinCount = len(a.order.Nodes)
	return create(e, g.Resource, p, func(there *podGroup) bool { return owns(root, there) })
}

// ungate lets the cluster's scheduler have the pods: all are there.
func (e *Engine) ungate(a *attempt) error {
	e.mu.Lock()
	m := a.made
	e.mu.Unlock()
	err := each(len(m.Pods), func(i int) error {
		ctx, cancel := e.call()
		defer cancel()
		patch := map[string]any{"metadata": map[string]any{"uid": m.Pods[i]}, "spec": map[string]any{"schedulingGates": nil}}
		return e.k.Patch(ctx, cluster.Pods, a.namespace, podName(e, a.ref, i), "", cluster.Merge, patch, nil)
	})
	if err == nil {
		e.mu.Lock()
		a.bound = true
		e.mu.Unlock()
	}
	return err
}

func podName(e *Engine, ref engine.Ref, i int) string { return render.PodName(e.log.server, ref, i) }
