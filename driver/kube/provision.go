package kube

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// selectedNode is the annotation by which a claim is told for which node it is to get its
// volume. Where a storage class waits for that (WaitForFirstConsumer), the cluster's scheduler
// writes it for the pods that it places; for those that we place, we do.
const selectedNode = "volume.kubernetes.io/selected-node"

// need is a claim that a pod mounts.
type need struct {
	name string
	pod  types.UID // whose own it is, made and gone with it; empty: one of the namespace
	node string    // where it is wanted
}

// pending is why claims have no volumes yet, where nothing failed: they are looked at again.
type pending struct {
	why   error
	after time.Duration
}

func (p *pending) Error() string { return p.why.Error() }
func (p *pending) Unwrap() error { return p.why }

// provisionVolumes has the claims of an attempt's pods get their volumes, before a pod has its node: a
// pod whose volume is not there would hold its node and begin never. Of pods that have their
// nodes nothing is asked: they may run, and the paths of the pool, by which claims are known
// here, may have changed since they were made. It is pending until all are there, and final
// when that takes longer than a gang may take to begin.
func (e *Engine) provisionVolumes(a *attempt) error {
	if !e.cfg.Terms.NeedsProvisioning() {
		return nil
	}
	e.mu.Lock()
	if a.volumes.wantedSince.IsZero() {
		a.volumes.wantedSince = time.Now()
	}
	since := a.volumes.wantedSince
	all := e.unplacedClaims(a)
	e.mu.Unlock()
	waits := make([]error, len(all))
	err := e.calls.forEach(len(all), func(i int) (err error) {
		waits[i], err = e.calls.provisionClaim(a.namespace, &all[i])
		return err
	})
	if err == nil {
		lacks := ""
		if i := slices.IndexFunc(waits, func(err error) bool { return err != nil }); i >= 0 {
			after := max(firstPause, min(time.Since(since), time.Second), min(time.Duration(len(all))*20*time.Millisecond, lastPause))
			err, lacks = &pending{waits[i], after}, errorWithAdvice(waits[i])
		}
		e.mu.Lock()
		a.volumes.missing = lacks
		e.mu.Unlock()
	}
	if err != nil && classifyError(err) == nil && time.Since(since) > e.cfg.Ready {
		return &never{engine.Unready, fmt.Errorf("%w; it was waited for %s", err, e.cfg.Ready)}
	}
	return err
}

// isStopping reports whether an attempt is to end.
func (e *Engine) isStopping(a *attempt) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return a.stop != nil
}

// unplacedClaims are the claims of those of an attempt's pods that have no nodes. All that exist were
// seen. The caller holds the lock.
func (e *Engine) unplacedClaims(a *attempt) (out []need) {
	var without []int
	for i := range a.order.Nodes {
		if p := a.pods[i]; p != nil && !p.gone && p.Spec.NodeName == "" { // of one that is not there, bind says it
			without = append(without, i)
		}
	}
	if len(without) == 0 {
		return nil
	}
	pods := e.renderAttempt(a.ref, a.order).Pods(a.made.Root) // of what is there, volumes are not kept
	for k, i := range without {
		for _, v := range pods[i].Spec.Volumes {
			switch {
			case v.Ephemeral != nil:
				out = append(out, need{name: pods[i].Name + "-" + v.Name, pod: a.made.Pods[i], node: a.order.Nodes[i].Name})
			case v.PersistentVolumeClaim != nil && (k == 0 || a.order.work != nil): // by the pool's paths all have the same
				n := need{name: v.PersistentVolumeClaim.ClaimName, node: a.order.Nodes[i].Name}
				if !slices.ContainsFunc(out, func(o need) bool { return o.pod == "" && o.name == n.name }) {
					out = append(out, n)
				}
			}
		}
	}
	return out
}

// provisionClaim says of a claim where it is wanted. wait is why it has no volume yet; nil: it has it.
func (c *clusterCalls) provisionClaim(namespace string, n *need) (wait, err error) {
	ctx, cancel := c.callContext()
	defer cancel()
	var claim corev1.PersistentVolumeClaim
	err = c.k.Get(ctx, cluster.PersistentVolumeClaims, namespace, n.name, &claim)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		who := "somebody has to make it"
		if n.pod != "" {
			who = "the cluster's controller manager makes it, unless a quota has no room"
		}
		return fault.New(fault.Unavailable, "there is no claim %s yet: %s", n.name, who), nil
	}
	if err != nil {
		return nil, err
	}
	if n.pod != "" && !isOwner(n.pod, &claim) {
		return nil, &never{engine.LaunchFailed, fmt.Errorf("there is a claim %s/%s that is not this pod's; it is left alone", namespace, n.name)}
	}
	class := "the cluster's default storage class"
	if claim.Spec.StorageClassName != nil && *claim.Spec.StorageClassName != "" {
		class = "storage class " + *claim.Spec.StorageClassName
	}
	switch {
	case claim.Status.Phase == corev1.ClaimBound:
		return nil, nil
	case claim.Status.Phase == corev1.ClaimLost:
		return nil, &never{engine.LaunchFailed, fault.New(fault.NotFound, "the volume of claim %s is lost", n.name).Advise("kubectl describe pvc %s --namespace %s", n.name, namespace)}
	case claim.Annotations[selectedNode] == "":
		patch := map[string]any{"metadata": map[string]any{"uid": claim.UID, "resourceVersion": claim.ResourceVersion, "annotations": map[string]string{selectedNode: n.node}}}
		if err := c.k.Patch(ctx, cluster.PersistentVolumeClaims, namespace, n.name, "", cluster.Merge, patch, nil); err != nil && fault.KindOf(err) != fault.Conflict {
			return nil, err
		}
	}
	return fault.New(fault.Unavailable, "claim %s has no volume yet, of %s, for node %s", n.name, class, cmp.Or(claim.Annotations[selectedNode], n.node)).
		Advise("kubectl describe pvc %s --namespace %s says why", n.name, namespace), nil
}
