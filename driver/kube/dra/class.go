package dra

import (
	"context"
	"errors"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Class is a DeviceClass that was read: what is true of its devices.
type Class struct {
	name  string
	terms []term
}

// readClass reads a DeviceClass. fault.Unsupported: its selectors say more than is understood.
func readClass(c *resourcev1.DeviceClass) (Class, error) {
	out := Class{name: c.Name}
	for _, s := range c.Spec.Selectors {
		if s.CEL == nil {
			return out, unreadableClass(c.Name, errors.New("a selector that is no CEL"))
		}
		t, err := parseSelector(s.CEL.Expression)
		if err != nil {
			return out, unreadableClass(c.Name, err)
		}
		out.terms = append(out.terms, t)
	}
	return out, nil
}

func unreadableClass(name string, err error) error {
	return fault.New(fault.Unsupported, "DeviceClass %s: which devices it has is not understood: %w", name, err).
		Advise("name in device_class a class that compares device.driver, device.attributes and device.capacity with literals")
}

func (c *Class) includesDevice(d *candidate) bool {
	return !slices.ContainsFunc(c.terms, func(t term) bool { return !t.matches(d) })
}

// classesOf are those of these names, in their order. wrong says of each other one why it is not
// to be had.
func classesOf(ctx context.Context, k *cluster.Cluster, names []string) (out []Class, wrong []error, err error) {
	for _, name := range names {
		var c resourcev1.DeviceClass
		err := k.Get(ctx, Classes, "", name, &c)
		switch fault.KindOf(err) {
		case fault.NotFound:
			err = fault.New(fault.NotFound, "there is no DeviceClass %s", name).Advise("kubectl get deviceclasses shows what there is; the setting device_class names them")
		case fault.Unsupported:
			err = fault.New(fault.Unsupported, "the cluster has no devices by DRA (resource.k8s.io/v1)").Advise("leave device_class, or upgrade the cluster to 1.34 or later")
		default:
			if err != nil {
				return nil, nil, err
			}
			var x Class
			if x, err = readClass(&c); err == nil {
				out = append(out, x)
				continue
			}
		}
		wrong = append(wrong, err)
	}
	return out, wrong, nil
}
