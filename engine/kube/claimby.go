package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kube/render"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/resource"
)

// told is what tells a device from those of another type, in CEL: the attributes by which we
// know its type, and whether it is a part of another. One that lacks an attribute is another.
func told(c *candidate) string {
	var all []string
	for _, name := range products {
		if a := attribute(c.device, name); a != nil && deref(a.StringValue) != "" {
			all = append(all, c.equals(name, *a.StringValue))
			break
		}
	}
	if profile := stated(c.device, "profile"); profile != "" {
		all = append(all, c.equals("profile", profile))
	} else {
		all = append(all, fmt.Sprintf("!('profile' in device.attributes['%s'])", c.driver))
	}
	return strings.Join(all, " && ")
}

// equals says of an attribute that it is there and has a value.
func (c *candidate) equals(name, value string) string {
	of := c.driver
	for full := range c.device.Attributes {
		if domain, base, ok := strings.Cut(string(full), "/"); ok && base == name {
			if _, own := c.device.Attributes[resourcev1.QualifiedName(name)]; !own {
				of = domain
			}
		}
	}
	return fmt.Sprintf("'%s' in device.attributes['%s'] && device.attributes['%[2]s'].%[1]s == %[3]q", name, of, value)
}

// claimsBy says which devices a request is for, where the cluster's scheduler chooses them.
// nil: the settings name no class, and devices are counted.
func (e *Engine) claimsBy(ctx context.Context) func(resource.DeviceRequest) (render.Piece, error) {
	if len(e.cfg.Terms.Classes) == 0 {
		return nil
	}
	return func(r resource.DeviceRequest) (render.Piece, error) {
		all, err := e.last(ctx)
		if err != nil {
			return render.Piece{}, err
		}
		return wanted(all, e.cfg.Terms.Classes, r)
	}
}

// wanted is what a claim says for a request, by the devices that there are: of the first class
// that has such, and in words that are true of these and of no others of it.
func wanted(all []Machine, classes []string, r resource.DeviceRequest) (render.Piece, error) {
	refuse := func(advice, format string, args ...any) (render.Piece, error) {
		return render.Piece{}, engine.About(fault.New(fault.Invalid, format, args...).Advise("%s", advice), "gres")
	}
	if !r.Whole() && r.Profile == "" {
		return refuse("ask for whole devices or for a MIG profile", "a share of a device is not to be had on Kubernetes")
	}
	is := func(d *fleet.Device) bool {
		return d.Kind == r.KindOf() && (r.Type == "" || d.Type == r.Type) && strings.EqualFold(d.Profile, r.Profile) && d.Memory >= r.Memory
	}
	for _, class := range classes {
		var says []string // of those that are wanted
		drivers, others := map[string]bool{}, false
		for i := range all {
			for k, p := range all[i].Pieces {
				switch d := &all[i].Node.Devices[k]; {
				case p.Class != class:
				case !is(d):
					others = true
				default:
					drivers[p.Driver] = true
					if !slices.Contains(says, all[i].Says[k]) {
						says = append(says, all[i].Says[k])
					}
				}
			}
		}
		if len(says) == 0 {
			continue
		}
		out := render.Piece{Class: class}
		if !others && r.Memory == 0 {
			return out, nil
		}
		slices.Sort(says)
		out.Where = "(" + strings.Join(says, " || ") + ")"
		if r.Memory > 0 {
			var enough []string
			for driver := range drivers {
				enough = append(enough, fmt.Sprintf("'memory' in device.capacity['%s'] && device.capacity['%[1]s'].memory.compareTo(quantity('%d')) >= 0", driver, int64(r.Memory)))
			}
			slices.Sort(enough)
			out.Where += " && (" + strings.Join(enough, " || ") + ")"
		}
		return out, nil
	}
	what := strings.TrimSpace(cmp.Or(r.Type, r.KindOf()) + " " + r.Profile)
	if r.Memory > 0 {
		what += " with " + resource.FormatBytes(r.Memory) + " of memory"
	}
	return refuse("cox nodes shows what there is", "no node of the pool has a device that is a %s in its classes %s", what, strings.Join(classes, ", "))
}

// bear has pods whose devices are claimed bear the taints with which nodes of the pool keep
// others off their GPUs: on which node they will be is not known.
func (e *Engine) bear(ctx context.Context, nodes []render.Node) error {
	if !slices.ContainsFunc(nodes, func(n render.Node) bool { return len(n.Pieces) > 0 }) {
		return nil
	}
	all, err := e.last(ctx)
	if err != nil {
		return err
	}
	var keys []string
	for i := range all {
		for k := range all[i].Taints {
			if key := all[i].Taints[k].Key; e.cfg.Terms.IsGPU(key) && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	for i := range nodes {
		if len(nodes[i].Pieces) > 0 {
			nodes[i].Bears = keys
		}
	}
	return nil
}
