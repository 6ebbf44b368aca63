// Package dra is what dynamic resource allocation (DRA, resource.k8s.io/v1) has in a cluster:
// the devices that drivers publish, which of them are of the DeviceClasses of a pool, and which
// ones claims have.
//
// The model. Drivers publish devices in ResourceSlices; a DeviceClass says in CEL which of them
// it has (class.go, cel.go, candidate.go). What one claim can have alone on one node is an Offer,
// with what the fleet knows of a device; the rest is withheld, with the reason (offer.go).
// Devices have numbers in the fleet, which stay (number.go). A claim is given the devices that
// were chosen for it (claim.go), or says what they are to be, and the cluster's scheduler gives
// them (wanted.go).
//
// Guarantees: what a class says is understood whole, or refused. Of a pool of devices that is
// half published nothing is offered. Nothing is written but to claims, as they were seen.
//
// It knows of no attempt and of no pool's settings: which devices are chosen, when claims are
// written, and what becomes of a job whose device is somebody else's is the driver's
// (driver/kube, claim.go). Nothing here is safe for concurrent use but what is only read.
package dra

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
)

// Resources of DRA.
var (
	Slices  = cluster.Resource{Group: resourcev1.GroupName, Version: "v1", Name: "resourceslices", Global: true}
	Classes = cluster.Resource{Group: resourcev1.GroupName, Version: "v1", Name: "deviceclasses", Global: true}
	Claims  = cluster.Resource{Group: resourcev1.GroupName, Version: "v1", Name: "resourceclaims"}
)

// Handle names a device in the whole cluster.
type Handle struct{ Driver, Pool, Device string }

func (h Handle) String() string { return h.Driver + "/" + h.Pool + "/" + h.Device }

// HandleOf is that of a device of a launch.
func HandleOf(p render.Piece) Handle { return Handle{p.Driver, p.Pool, p.Device} }

// Stock is what DRA has in a cluster.
type Stock struct {
	Trays map[string]*Tray // by node; of devices that are on none, by ""
	Taken map[Handle]bool  // held by claims: by ours (true), by others'
	Wrong []error          // classes that are not to be had
}

// Tray is what DRA has on a node.
type Tray struct {
	Offers   []Offer
	Withheld map[string]int // devices that are not offered, by the reason
}

// Read asks for everything that DRA has of these classes. A claim is ours if that function says
// so. Classes that are not to be had are no error: they have no devices.
func Read(ctx context.Context, k *cluster.Cluster, names []string, ours func(*resourcev1.ResourceClaim) bool) (*Stock, error) {
	out := &Stock{Taken: map[Handle]bool{}}
	classes, wrong, err := classesOf(ctx, k, names)
	out.Wrong = wrong
	if err != nil || len(classes) == 0 {
		return out, err
	}
	var all []resourcev1.ResourceSlice
	if err := cluster.Unbroken(func() error {
		all = nil
		_, err := cluster.List(ctx, k, Slices, cluster.Selection{}, func(x *resourcev1.ResourceSlice) error {
			all = append(all, *x)
			return nil
		})
		return err
	}); err != nil {
		return nil, err
	}
	out.Trays = offeredTrays(all, classes)
	err = cluster.Unbroken(func() error {
		clear(out.Taken)
		_, err := cluster.List(ctx, k, Claims, cluster.Selection{}, func(c *resourcev1.ResourceClaim) error {
			for _, h := range Held(c) {
				out.Taken[h] = ours(c)
			}
			return nil
		})
		return err
	})
	return out, err
}
