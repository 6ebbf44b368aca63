package dra

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
)

// Held are the devices that a claim has; with access for an administrator it has none: others
// have them at the same time.
func Held(c *resourcev1.ResourceClaim) []Handle {
	if c.Status.Allocation == nil {
		return nil
	}
	return Of(c.Status.Allocation)
}

// Of are the devices of what a claim is given, but for those with access for an administrator.
func Of(a *resourcev1.AllocationResult) (out []Handle) {
	for _, r := range a.Devices.Results {
		if r.AdminAccess == nil || !*r.AdminAccess {
			out = append(out, Handle{r.Driver, r.Pool, r.Device})
		}
	}
	return out
}

// Configured is what the classes of a claim's requests have drivers told. fault.NotFound: there is
// no such class any more.
func Configured(ctx context.Context, k *cluster.Cluster, c *resourcev1.ResourceClaim) (out []resourcev1.DeviceAllocationConfiguration, err error) {
	for _, q := range c.Spec.Devices.Requests {
		var of resourcev1.DeviceClass
		if err := k.Get(ctx, Classes, "", q.Exactly.DeviceClassName, &of); err != nil {
			return nil, err
		}
		for _, x := range of.Spec.Config {
			out = append(out, resourcev1.DeviceAllocationConfiguration{Source: resourcev1.AllocationConfigSourceClass, Requests: []string{q.Name}, DeviceConfiguration: x.DeviceConfiguration})
		}
	}
	return out, nil
}

// Give writes what a claim has, and that the pod of its name has it. fault.Conflict: the claim is
// not as it was seen any more.
func Give(ctx context.Context, k *cluster.Cluster, c *resourcev1.ResourceClaim, has *resourcev1.AllocationResult, pod types.UID) error {
	return writeStatus(ctx, k, c, map[string]any{
		"allocation":  has,
		"reservedFor": []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: c.Name, UID: pod}},
	})
}

// Free takes from a claim what it has, and who has it. fault.Conflict: the claim is not as it was
// seen any more.
func Free(ctx context.Context, k *cluster.Cluster, c *resourcev1.ResourceClaim) error {
	return writeStatus(ctx, k, c, map[string]any{"allocation": nil, "reservedFor": nil})
}

func writeStatus(ctx context.Context, k *cluster.Cluster, c *resourcev1.ResourceClaim, status map[string]any) error {
	return k.Patch(ctx, Claims, c.Namespace, c.Name, "status", cluster.Merge, map[string]any{
		"metadata": map[string]any{"uid": c.UID, "resourceVersion": c.ResourceVersion},
		"status":   status,
	}, nil)
}
