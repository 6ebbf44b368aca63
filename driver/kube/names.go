package kube

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// The Service that gives an attempt's pods their names is made when they have their addresses.
// Of one that is there before, the cluster writes the lists of addresses anew for each address
// that comes, in two kinds of objects: of a gang of 128 some 250 writes of up to 128 addresses,
// which is more work for an API server than all that the gang is else.

// namesWithin is how long after all pods have their nodes their addresses are waited for: no
// container has begun that asks for a name, in most clusters.
const namesWithin = 2 * time.Second

// nameEarly makes the Service before the pods, where it may be refused: by a quota, as who waits for
// one holds no nodes, or to somebody else in whose name it is made; and for the pods of a manifest, which look for
// each other at once. Elsewhere it looks whether the name is free. A pod that is alone needs none.
func (e *Engine) nameEarly(a *attempt, s *corev1.Service, root types.UID) error {
	e.mu.Lock()
	a.named = e.isSinglePod(a)
	alone, early := a.named, a.order.work != nil || a.order.As != "" || e.quotaOf(a.namespace).CountsServices()
	e.mu.Unlock()
	if alone {
		return nil
	}
	if early {
		return e.makeService(a, s, root)
	}
	ctx, cancel := e.calls.callContext()
	defer cancel()
	var there corev1.Service
	err := e.k.Get(ctx, cluster.Services, s.Namespace, s.Name, &there)
	switch {
	case err != nil && fault.KindOf(err) == fault.NotFound:
		return nil
	case err != nil:
		return err
	case !isOwner(root, &there):
		return foreignObjectError(cluster.Services, s.Namespace, s.Name)
	}
	return nil
}

// isSinglePod reports whether an attempt is of one pod that knows its own name: on the network of its
// node a pod has that one's name. So are pods that all have their names by Services of their manifest.
func (e *Engine) isSinglePod(a *attempt) bool {
	if w := a.order.work; w != nil && !w.NeedsService() {
		return true
	}
	return len(a.order.Nodes) == 1 && !e.renderAttempt(a.ref, a.order).OnHost()
}

// makeService makes an attempt's Service, if it is not there.
func (e *Engine) makeService(a *attempt, s *corev1.Service, root types.UID) error {
	way, err := e.calls.clusterAs(a.order.As)
	if err != nil {
		return err
	}
	err = createObject(e.calls, way, cluster.Services, s, func(there *corev1.Service) bool { return isOwner(root, there) })
	if err != nil && fault.KindOf(err) == fault.Permission && e.calls.hasService(s, root) {
		err = nil // what is there already, a quota that is full refuses like another one
	}
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	a.named = true
	return nil
}

// createServiceWhenDue makes the Service of an attempt that begins, once it is time for that, and says after
// which time it may be; 0: when a pod changes.
func (e *Engine) createServiceWhenDue(a *attempt, now time.Time) (time.Duration, error) {
	e.mu.Lock()
	if a.named || a.made == nil || a.ended || a.stop != nil || !a.report.Started.IsZero() || e.isSinglePod(a) {
		e.mu.Unlock()
		return 0, nil
	}
	nodes, addresses := 0, 0
	for _, p := range a.pods {
		if p.Spec.NodeName != "" {
			nodes++
		}
		if p.Status.PodIP != "" {
			addresses++
		}
	}
	all := len(a.order.Nodes)
	switch {
	case nodes < all:
		a.placed = time.Time{}
	case a.placed.IsZero():
		a.placed = now
	}
	left := namesWithin - now.Sub(a.placed)
	root := a.made.Root
	e.mu.Unlock()
	switch {
	case nodes < all:
		return 0, nil
	case addresses < all && left > 0:
		return left, nil
	}
	return 0, e.tryBegin(a, func(a *attempt) error { return e.makeService(a, e.renderAttempt(a.ref, a.order).Service(root), root) })
}

// foreignObjectError is the end of an attempt that would need a name which somebody else's object has.
func foreignObjectError(r cluster.Resource, namespace, name string) error {
	return &never{engine.LaunchFailed, fmt.Errorf("there is a %s %s/%s that is not this attempt's; it is left alone", r, namespace, name)}
}
