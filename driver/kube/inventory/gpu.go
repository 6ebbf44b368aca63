package inventory

import (
	"context"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// nvidia is the resource name of a GPU where no node has any, as in a pool whose nodes come with the
// jobs.
const nvidia = "nvidia.com/gpu"

// WholeGPU is the resource name of a whole GPU where the cluster's scheduler chooses the nodes: that of
// the settings, or else that of the pool's nodes. Parts of GPUs and time slices do not count.
func (s *Inventory) WholeGPU(ctx context.Context) (string, error) {
	if s.terms.GPU != "" {
		return s.terms.GPU, nil
	}
	all, err := s.LastNodes(ctx)
	if err != nil {
		return "", err
	}
	return WholeGPUOf(&s.terms, all)
}

// WholeGPUOf is WholeGPU for a pool with these nodes.
func WholeGPUOf(t *settings.Terms, all []Machine) (string, error) {
	if t.GPU != "" {
		return t.GPU, nil
	}
	var names []string
	parts := ""
	for i := range all {
		for k, name := range all[i].Ask {
			switch d := &all[i].Node.Devices[k]; {
			case name == "": // it is claimed, which the cluster's scheduler is not told
			case d.Profile != "":
				parts = d.Profile
			case !slices.Contains(names, name):
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	switch {
	case len(names) > 1:
		return "", engine.About(fault.New(fault.Invalid, "the pool's nodes have GPUs of several makers, %s, and which one a job is to have is not said", strings.Join(names, " and ")).
			Advise("set gpu_resource of the pool to one of them; a pool for each can be had by node_selector"), "gres")
	case len(names) == 1:
		return names[0], nil
	case parts != "":
		return "", engine.About(fault.New(fault.Invalid, "the pool's nodes have no whole GPUs, but such of profile %s", parts).
			Advise("ask for that profile, or name a pool that has whole GPUs"), "gres")
	}
	return nvidia, nil
}
