package dra

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/coxswain-sched/coxswain/agent/discover"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/model/fleet"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// Offer is a device that DRA has on a node and that a claim of ours can have.
type Offer struct {
	Piece  render.Piece
	Device fleet.Device // its number and its links are those of Tray.Settle
	Driver string       // the version of its driver; empty: not known
	Says   string       // what tells it from devices of another type, in CEL

	root string // of PCIe, below which it is; empty: not known
}

// pool names the devices that a driver manages together.
type pool struct{ driver, name string }

// offeredTrays is what drivers have published that is of these classes, by node; of devices that are
// on none, by "". A device is of the first class that has it. Of a pool the newest generation
// counts, and nothing before all of it is there.
func offeredTrays(all []resourcev1.ResourceSlice, classes []Class) map[string]*Tray {
	out := map[string]*Tray{}
	newest, parts := map[pool]int64{}, map[pool]int64{}
	of := func(x *resourcev1.ResourceSlice) pool { return pool{x.Spec.Driver, x.Spec.Pool.Name} }
	for i := range all {
		newest[of(&all[i])] = max(newest[of(&all[i])], all[i].Spec.Pool.Generation)
	}
	for i := range all {
		if x := &all[i]; x.Spec.Pool.Generation == newest[of(x)] {
			parts[of(x)]++
		}
	}
	for i := range all {
		x := &all[i]
		if x.Spec.Pool.Generation != newest[of(x)] {
			continue
		}
		for k := range x.Spec.Devices {
			c := &candidate{driver: x.Spec.Driver, device: &x.Spec.Devices[k]}
			j := slices.IndexFunc(classes, func(c2 Class) bool { return c2.includesDevice(c) })
			if j < 0 {
				continue
			}
			node := cmp.Or(valueOrZero(x.Spec.NodeName), valueOrZero(c.device.NodeName))
			why := withheldReason(c.device, node)
			if why == "" && parts[of(x)] != x.Spec.Pool.ResourceSliceCount {
				why = "their driver is still publishing its pool " + x.Spec.Pool.Name
			}
			if out[node] == nil {
				out[node] = &Tray{Withheld: map[string]int{}}
			}
			if t := out[node]; why != "" {
				t.Withheld[why]++
			} else {
				t.Offers = append(t.Offers, describeDevice(c, render.Piece{Class: classes[j].name, Driver: x.Spec.Driver, Pool: x.Spec.Pool.Name, Device: c.device.Name}))
			}
		}
	}
	return out
}

// withheldReason says why a device is not offered; empty: it is.
func withheldReason(v *resourcev1.Device, node string) string {
	for _, t := range v.Taints {
		if t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute {
			taint := corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}
			return "their driver or an administrator has put the taint " + taint.ToString() + " on them"
		}
	}
	switch {
	case node == "":
		return "they are not of one node"
	case len(v.ConsumesCounters) > 0:
		return "they are parts of a device that is divided when it is claimed (shared counters)"
	case valueOrZero(v.AllowMultipleAllocations):
		return "several claims have them at the same time (consumable capacity)"
	case valueOrZero(v.BindsToNode) || len(v.BindingConditions) > 0:
		return "they have to be made ready after they are claimed (binding conditions)"
	case firstText(v, "type") == "vfio":
		return "they are for virtual machines"
	}
	return ""
}

// products are the attributes that may say what a device is, the first of which says it.
var products = []string{"productName", "model", "product", "family"}

// describeDevice reads a device's attributes. Drivers of GPUs have names of their own for the same.
func describeDevice(c *candidate, p render.Piece) Offer {
	v := c.device
	o := Offer{Piece: p, root: firstText(v, "pcieRoot"), Driver: firstText(v, "driverVersion"), Device: fleet.Device{
		Minor: -1, Kind: "gpu", NUMA: -1, Type: discover.TypeName(firstText(v, products...)),
		UUID: firstText(v, "uuid"), Bus: firstText(v, "pciBusID", "pcieBusID", "pciAddr"), Parent: firstText(v, "parentUUID"), Profile: strings.ToLower(firstText(v, "profile")),
	}}
	if o.Device.Profile == "" && firstText(v, "type") == "mig" {
		o.Device.Profile = "mig"
	}
	for _, n := range []string{"numaNode", "numa"} {
		if a := deviceAttribute(v, n); a != nil && a.IntValue != nil && *a.IntValue >= 0 {
			o.Device.NUMA = int(*a.IntValue)
		}
	}
	o.Says = typeExpression(c)
	for name, amt := range v.Capacity {
		if baseName(string(name)) == "memory" {
			o.Device.Memory = amount.Amount(amt.Value.Value())
		}
	}
	return o
}
