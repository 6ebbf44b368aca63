package kube

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/dra"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// createClaims creates the claims of an attempt's pods, in whose name way is. None of them has a device.
func (c *clusterCalls) createClaims(way *cluster.Cluster, r *render.Attempt, root types.UID) error {
	all := slices.DeleteFunc(r.Claims(root), func(claim *resourcev1.ResourceClaim) bool { return claim == nil })
	return c.forEach(len(all), func(i int) error {
		return createObject(c, way, dra.Claims, all[i], func(there *resourcev1.ResourceClaim) bool { return isOwner(root, there) })
	})
}

// allocateClaims gives the claims of pods that are to be bound the devices that were chosen, and to
// each its pod. Nothing in the cluster keeps two claims from having one device: what others
// have is looked at before it is written and, as they may have written at the same time, after
// it. Who has come second, or at the same time, ends the attempt, which has begun nothing.
func (e *Engine) allocateClaims(a *attempt, m *made, todo []bool) error {
	r := e.renderAttempt(a.ref, a.order)
	var pods []int // that are to be bound, and have claims
	for i := range todo {
		if todo[i] && len(r.Held(i)) > 0 {
			pods = append(pods, i)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	there, err := e.calls.findClaimConflicts(r, m, pods)
	if err != nil {
		return err
	}
	wrote := make([]bool, len(pods))
	if err := e.calls.forEach(len(pods), func(k int) (err error) {
		wrote[k], err = e.calls.writeAllocation(r, m, pods[k], there[pods[k]])
		return err
	}); err != nil {
		return err
	}
	if slices.Contains(wrote, true) {
		_, err = e.calls.findClaimConflicts(r, m, pods)
	}
	return err
}

// findClaimConflicts looks at all claims of the cluster, and returns those of these pods. That one of
// their devices is another's is an error that ends the attempt.
func (c *clusterCalls) findClaimConflicts(r *render.Attempt, m *made, pods []int) (map[int]*resourcev1.ResourceClaim, error) {
	wanted := map[dra.Handle]int{}
	names := map[string]int{}
	for _, i := range pods {
		names[c.podName(r.Launch.Ref, i)] = i
		for _, p := range r.Held(i) {
			wanted[dra.HandleOf(p)] = i
		}
	}
	there := map[int]*resourcev1.ResourceClaim{}
	err := listEach(c, dra.Claims, cluster.Selection{}, func(claim *resourcev1.ResourceClaim) error {
		mine := -1
		if i, ok := names[claim.Name]; ok && claim.Namespace == r.Namespace && isOwner(m.Root, claim) {
			mine, there[i] = i, claim.DeepCopy()
		}
		for _, h := range dra.Held(claim) {
			if i, ok := wanted[h]; ok && i != mine {
				return &never{engine.LaunchFailed, fmt.Errorf("device %s of node %s is of ResourceClaim %s/%s, which has it since the nodes were looked at", h.Device, r.Nodes[i].Name, claim.Namespace, claim.Name)}
			}
		}
		return nil
	})
	return there, err
}

// writeAllocation writes what a claim has and which pod has it, if that is not written yet. The claim is
// as it was seen: whoever has changed it since has it seen again.
func (c *clusterCalls) writeAllocation(r *render.Attempt, m *made, i int, claim *resourcev1.ResourceClaim) (wrote bool, err error) {
	name := c.podName(r.Launch.Ref, i)
	if claim == nil || claim.DeletionTimestamp != nil {
		return false, &never{engine.Unready, fmt.Errorf("somebody has deleted ResourceClaim %s/%s", r.Namespace, name)}
	}
	want := r.Allocation(i)
	if claim.Status.Allocation != nil {
		if is := dra.Held(claim); !slices.Equal(dra.Of(want), is) {
			return false, &never{engine.LaunchFailed, fmt.Errorf("somebody has given ResourceClaim %s/%s other devices than were chosen: %s", r.Namespace, name, is)}
		}
		return false, nil
	}
	if want.Devices.Config, err = c.claimConfiguration(claim); err != nil {
		return false, err
	}
	ctx, cancel := c.callContext()
	defer cancel()
	err = dra.Give(ctx, c.k, claim, want, m.Pods[i])
	if fault.KindOf(err) == fault.Conflict {
		err = fault.New(fault.Unavailable, "%w", err) // it is seen again, and then decided
	}
	return true, err
}

// claimConfiguration is what drivers are told of the devices of a claim. Without its class it can have none.
func (c *clusterCalls) claimConfiguration(claim *resourcev1.ResourceClaim) ([]resourcev1.DeviceAllocationConfiguration, error) {
	ctx, cancel := c.callContext()
	defer cancel()
	out, err := dra.Configured(ctx, c.k, claim)
	if fault.KindOf(err) == fault.NotFound {
		err = &never{engine.Unready, err}
	}
	return out, err
}

// deallocateClaims takes the devices from the claims of an attempt of which nothing lives, so that they
// are free when it is reported gone. The cluster's controller does the same when it gets to it.
// A claim that somebody else's pod has, too, is left to that.
func (e *Engine) deallocateClaims(a *attempt) error {
	e.mu.Lock()
	begun, m := a.begun, a.made
	e.mu.Unlock()
	if !begun || m == nil || !e.cfg.Terms.Placed {
		return nil
	}
	r := e.renderAttempt(a.ref, a.order)
	return e.calls.forEach(len(a.order.Nodes), func(i int) error {
		if len(r.Held(i)) == 0 {
			return nil
		}
		err := e.calls.freeClaim(a, m, i)
		switch fault.KindOf(err) {
		case fault.NotFound:
			return nil
		case fault.Conflict:
			return fault.New(fault.Unavailable, "%w", err)
		case fault.Permission:
			e.cfg.Log.Warn("kubernetes", "attempt", a.ref.String(), "error", err)
			return nil
		}
		return err
	})
}

func (c *clusterCalls) freeClaim(a *attempt, m *made, i int) error {
	ctx, cancel := c.callContext()
	defer cancel()
	var claim resourcev1.ResourceClaim
	name := c.podName(a.ref, i)
	if err := c.k.Get(ctx, dra.Claims, a.namespace, name, &claim); err != nil {
		return err
	}
	if !isOwner(m.Root, &claim) || claim.Status.Allocation == nil || slices.ContainsFunc(claim.Status.ReservedFor, func(x resourcev1.ResourceClaimConsumerReference) bool { return x.UID != m.Pods[i] }) {
		return nil
	}
	return dra.Free(ctx, c.k, &claim)
}

// prompt is how long a kubelet is given for the devices of a pod before it is asked what keeps it.
const prompt = 10 * time.Second

// markUnpreparedDevices has members say so whose kubelet cannot prepare the devices of their claims: that
// stands in no pod, only among the events. Those whose scheduler has given their claims none never
// begin.
func (e *Engine) markUnpreparedDevices(a *attempt, members []podstatus.Member, now time.Time) error {
	for i := range members {
		e.mu.Lock()
		p := a.pods[i]
		e.mu.Unlock()
		m := &members[i]
		if p == nil || m.Over || m.Uncertain || m.Stuck || !m.Placed || m.Phase > engine.Accepted || len(p.Spec.ResourceClaims) == 0 || podstatus.HasSandbox(p.Pod) || now.Before(p.CreationTimestamp.Add(prompt)) {
			continue
		}
		text, err := e.missingClaimDevices(a, p.Pod)
		if err != nil {
			return err
		}
		if text != "" {
			m.Stuck, m.Hopeless, m.Cause, m.Why = true, true, engine.LaunchFailed, text
			continue
		}
		err = listEach(e.calls, cluster.Events, cluster.Selection{Namespace: p.Namespace, Fields: "involvedObject.uid=" + string(p.UID) + ",reason=FailedPrepareDynamicResources"}, func(v *corev1.Event) error {
			text = v.Message
			return nil
		})
		if err != nil && fault.KindOf(err) != fault.Permission {
			return err
		}
		if text != "" {
			m.Stuck, m.Cause, m.Why = true, engine.LaunchFailed, fmt.Sprintf("pod %s on %s: FailedPrepareDynamicResources: %s", p.Name, p.Spec.NodeName, text)
		}
	}
	return nil
}

// missingClaimDevices says of a pod that has a node that its claim has no devices; empty: it has them, or
// nobody can say. Who gives devices does so before it binds, so that none come later.
func (e *Engine) missingClaimDevices(a *attempt, p *corev1.Pod) (string, error) {
	if e.cfg.Terms.Placed {
		return "", nil
	}
	ctx, cancel := e.calls.callContext()
	defer cancel()
	var c resourcev1.ResourceClaim
	switch err := e.k.Get(ctx, dra.Claims, p.Namespace, p.Name, &c); {
	case fault.KindOf(err) == fault.NotFound && err != nil, fault.KindOf(err) == fault.Permission:
		return "", nil
	case err != nil:
		return "", err
	case c.Status.Allocation != nil:
		return "", nil
	}
	why := "its plugin DynamicResources has to be on"
	who := "the scheduler " + cmp.Or(e.cfg.Terms.Scheduler, "of the cluster")
	if a.order.gangKind() == render.Volcano {
		who, why = "Volcano", "it takes "+gang.VolcanoClaimSetting
	}
	return fmt.Sprintf("pod %s on %s: %s has given it a node, and its ResourceClaim no devices: %s", p.Name, p.Spec.NodeName, who, why), nil
}
