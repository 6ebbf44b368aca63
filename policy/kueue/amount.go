package kueue

import (
	"math"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// readAmounts reads the resource groups of a ClusterQueue or a cohort.
func (im *importer) readAmounts(o *object, name string) {
	for _, g := range listItems(o.get("spec", "resourceGroups")) {
		o.noteKept(g.Get("coveredResources"))
		for _, f := range listItems(g.Get("flavors")) {
			fq := account.FlavorQuota{Flavor: scalarText(f.Get("name"))}
			o.noteKept(f.Get("name"))
			for _, r := range listItems(f.Get("resources")) {
				if rq, ok := o.readResource(r); ok {
					fq.Resources = append(fq.Resources, rq)
				}
			}
			q := im.accountNamed(name).Quota
			q.Flavors = append(q.Flavors, fq)
		}
	}
}

// readResource reads the amounts of one resource.
func (o *object) readResource(r *yaml.Node) (account.ResourceQuota, bool) {
	name, known := resourceName(scalarText(r.Get("name")))
	out := account.ResourceQuota{Name: name}
	if known {
		o.noteKept(r.Get("name"))
	} else {
		o.noteAbout(r.Get("name"), "counted as a resource of the site, %s", name)
	}
	read := func(field string) *resource.Amount {
		n := r.Get(field)
		if n == nil || n.Kind == yaml.Null {
			o.noteKept(n)
			return nil
		}
		a, ok := parseQuantity(name, scalarText(n))
		if !ok {
			o.refuseValue(n, "%q is no quantity", scalarText(n))
			return nil
		}
		o.noteKept(n)
		return &a
	}
	if a := read("nominalQuota"); a != nil {
		out.Nominal = *a
	}
	out.Borrow, out.Lend = read("borrowingLimit"), read("lendingLimit")
	return out, true
}

// resourceName turns Kubernetes' name of a resource into ours.
func resourceName(name string) (ours string, known bool) {
	switch name {
	case "cpu", "memory":
		return name, true
	case "ephemeral-storage":
		return "disk", true
	case "pods":
		return "task", true
	case "nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915":
		return "gpu", true
	}
	return name, false
}

// suffixes of quantities.
var suffixes = []struct {
	name string
	by   float64
}{
	{"Ki", 1 << 10},
	{"Mi", 1 << 20},
	{"Gi", 1 << 30},
	{"Ti", 1 << 40},
	{"Pi", 1 << 50},
	{"Ei", 1 << 60},
	{"m", 1e-3},
	{"k", 1e3},
	{"M", 1e6},
	{"G", 1e9},
	{"T", 1e12},
	{"P", 1e15},
	{"E", 1e18},
}

// parseDecimal reads a quantity as a number.
func parseDecimal(s string) (float64, bool) {
	by := 1.0
	for _, x := range suffixes {
		if cut, ok := strings.CutSuffix(s, x.name); ok {
			s, by = cut, x.by
			break
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f < 1e18) {
		return 0, false
	}
	return float64(f * by), true
}

// parseQuantity reads an amount in our unit: whole numbers exactly.
func parseQuantity(name, s string) (resource.Amount, bool) {
	unit := int64(1)
	if name == "cpu" || name == "gpu" {
		unit = 1000
	}
	if n, err := strconv.ParseInt(s, 10, 48); err == nil && n >= 0 {
		return resource.Amount(n * unit), true
	}
	f, ok := parseDecimal(s)
	if f = math.Round(float64(f * float64(unit))); !ok || f >= 1<<62 {
		return 0, false
	}
	return resource.Amount(f), true
}
