package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// never says that an attempt will not begin as it is, and why.
type never struct {
	cause engine.Cause
	err   error
}

func (n *never) Error() string { return n.err.Error() }
func (n *never) Unwrap() error { return n.err }

// classifyError is what an error of a create or a bind means: nil, that it is to be tried again.
func classifyError(err error) *never {
	var n *never
	switch k := fault.KindOf(err); {
	case errors.As(err, &n):
		return n
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), k == fault.Unavailable, k == fault.Internal, k == fault.Exhausted:
		return nil
	case k == fault.Invalid:
		return &never{engine.Refused, err}
	case k == fault.Conflict:
		return &never{engine.LaunchFailed, err}
	}
	return &never{engine.Unready, err} // a right, a quota, a namespace: nothing of the job's
}

// createObjects creates all objects of an attempt, or finds those that it had created. None of the pods
// has a node.
func (e *Engine) createObjects(a *attempt) error {
	if !e.turnOf(a) {
		return nil
	}
	defer func() { <-e.making }()
	e.mu.Lock()
	a.begun = true
	e.mu.Unlock()
	if err := a.order.unreadable(); err != nil {
		return err
	}
	r := e.renderAttempt(a.ref, a.order)
	if err := e.checkNamespaceLimits(a, r.Pods("")); err != nil {
		return err
	}
	root, err := r.Root(time.Now())
	if err != nil {
		return err
	}
	way, err := e.calls.clusterAs(a.order.As)
	if err != nil {
		return err
	}
	if err := createObject(e.calls, way, cluster.Secrets, root, func(there *corev1.Secret) bool {
		return there.Labels[render.LabelServer] == e.log.server && there.Annotations[render.Digest] == a.digest
	}); err != nil {
		return err
	}
	if err := e.handSecrets(a, way, r, root.UID); err != nil {
		return err
	}
	if err := e.createManifestObjects(a, way, r, root.UID); err != nil {
		return err
	}
	if err := e.nameEarly(a, r.Service(root.UID), root.UID); err != nil {
		return err
	}
	if a.order.work == nil || len(a.order.work.Set.Services) == 0 { // else the file has its own
		e.nameForClients(r.ClientService(root.UID))
	}
	if err := e.createGang(a, way, r, root.UID); err != nil {
		return err
	}
	if err := e.calls.createClaims(way, r, root.UID); err != nil {
		return err
	}
	m := &made{Root: root.UID}
	pods := r.Pods(root.UID)
	if err := e.calls.forEach(len(pods), func(i int) error {
		return createObject(e.calls, way, cluster.Pods, pods[i], func(there *corev1.Pod) bool { return isOwner(root.UID, there) })
	}); err != nil {
		return err
	}
	if err := checkKueueGates(r.Gang, pods); err != nil {
		return err
	}
	for _, p := range pods {
		m.Pods = append(m.Pods, p.UID)
	}
	if err := e.log.Append(&entry{Kind: created, Ref: a.ref, Made: m}); err != nil {
		return err
	}
	e.dropSecrets(a.ref)
	e.releaseCountedQuota(a)
	e.mu.Lock()
	defer e.mu.Unlock()
	a.made = m
	for i, p := range pods {
		if a.pods[i] == nil || a.pods[i].UID != p.UID {
			a.pods[i] = &pod{Pod: podstatus.Strip(p)}
		}
	}
	return nil
}

func isOwner(root types.UID, o metav1.Object) bool {
	for _, r := range o.GetOwnerReferences() {
		if r.UID == root {
			return true
		}
	}
	return o.GetAnnotations()[render.Root] == string(root) // a pod that may have no owner
}

// callsAtMost bounds how many of an engine's calls for single pods and nodes are under way: more
// would only wait in the API server's queues, and be refused there.
const callsAtMost = 32

// makingAtMost bounds of how many attempts the objects are being made: those that came first are
// whole first, and begin, while the others wait. It is enough to keep all calls busy.
const makingAtMost = 12

// turnOf waits for an attempt's turn, of those at once that makingAtMost allows. false: it is to
// end before it has come, or the engine is closed.
func (e *Engine) turnOf(a *attempt) bool {
	over := func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return a.stop != nil
	}
	for {
		select {
		case e.making <- struct{}{}:
			if !over() {
				return true
			}
			<-e.making
			return false
		case <-a.wake:
			if over() {
				return false
			}
		case <-e.ctx.Done():
			return false
		}
	}
}

// bindPods gives each pod to its node. A pod that cannot be bound is the end of the attempt.
func (e *Engine) bindPods(a *attempt) error {
	e.mu.Lock()
	m, nodes := a.made, a.order.Nodes
	todo := make([]bool, len(nodes))
	for i := range nodes {
		p := a.pods[i]
		todo[i] = p == nil || p.Spec.NodeName != nodes[i].Name // elsewhere: by others, which the API server says
	}
	e.mu.Unlock()
	err := e.allocateClaims(a, m, todo)
	if err != nil {
		return err
	}
	err = e.calls.forEach(len(nodes), func(i int) error {
		if !todo[i] {
			return nil
		}
		ctx, cancel := e.calls.callContext()
		defer cancel()
		pod := podName(e, a.ref, i)
		err := e.k.Bind(ctx, a.namespace, pod, m.Pods[i], nodes[i].Name)
		switch {
		case err != nil && fault.KindOf(err) == fault.Invalid: // by a policy: the job is not at fault
			return &never{engine.Unready, err}
		case fault.KindOf(err) != fault.Conflict:
			return err
		}
		var there corev1.Pod // it may be bound by a call whose answer was lost
		if got := e.k.Get(ctx, cluster.Pods, a.namespace, pod, &there); got != nil {
			return got
		}
		switch {
		case there.UID == m.Pods[i] && there.Spec.NodeName == nodes[i].Name:
			return nil
		case there.UID == m.Pods[i] && there.Spec.NodeName == "" && there.DeletionTimestamp == nil:
			return fault.New(fault.Unavailable, "%w", err) // every failure is called a conflict, that of the server's storage too
		}
		return &never{engine.Unready, fmt.Errorf("pod %s is on %q: %w", pod, there.Spec.NodeName, err)}
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	a.bound = true
	e.mu.Unlock()
	return nil
}
