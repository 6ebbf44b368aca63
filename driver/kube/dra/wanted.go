package dra

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Wanted is what a claim says for a request, by the devices that there are: of the first class
// that has such, and in words that are true of these and of no others of it. fault.Invalid: no
// device is such a one.
func Wanted(all iter.Seq[Offer], classes []string, r resource.DeviceRequest) (render.Piece, error) {
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
		for o := range all {
			switch {
			case o.Piece.Class != class:
			case !is(&o.Device):
				others = true
			default:
				drivers[o.Piece.Driver] = true
				if !slices.Contains(says, o.Says) {
					says = append(says, o.Says)
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
