package gang

import (
	"slices"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// VolcanoClaimSetting is what has to be in the configuration of Volcano's scheduler.
const VolcanoClaimSetting = "predicate.DynamicResourceAllocationEnable: true among the arguments of the plugin predicates, in the configuration of Volcano's scheduler"

// WithClaims reports whether pods on these nodes have claims.
func WithClaims(nodes []render.Node) bool {
	return slices.ContainsFunc(nodes, func(n render.Node) bool { return len(n.Pieces) > 0 })
}

// CheckClaims refuses a job whose pods what begins them would never let begin, or not together.
func (g *Gang) CheckClaims(nodes []render.Node) error {
	switch {
	case g == nil:
	case g.Kind == render.Kueue && WithClaims(nodes):
		return engine.About(fault.New(fault.Unsupported, "the pool's devices are claimed (device_class), and Kueue, by which its pods begin, admits no pod that has a ResourceClaim").
			Advise("ask for no devices; or name a pool with placed=true or with another gang; or have an administrator take device_class from the pool's settings, so that GPUs are counted"), "gres")
	case g.Kind == render.Volcano && len(nodes) > 1 && slices.ContainsFunc(nodes, asksNothing):
		return engine.About(fault.New(fault.Unsupported, "a pod of the job asks for no CPU and no memory, and Volcano begins such pods one by one, whatever gang they are of").
			Advise("ask for CPUs (--cpus-per-task)"), "cpus-per-task", "cpus", "per_task")
	}
	return nil
}

// asksNothing reports whether a pod asks for nothing that is counted: its devices may be claimed.
func asksNothing(n render.Node) bool {
	return n.Capacity.IsZero() && !slices.ContainsFunc(n.Ask, func(name string) bool { return name != "" })
}
