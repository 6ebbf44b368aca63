package inventory

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fleet"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// Report is the inventory as of the last list of the nodes; nil before the first.
func (s *Inventory) Report() *fleet.Inventory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machines == nil {
		return nil
	}
	out := &fleet.Inventory{Taken: s.listed}
	if s.used.IsZero() {
		out.Unknown = append(out.Unknown, "what pods of others hold: the right to list pods in the whole cluster is missing")
	}
	for i := range s.machines {
		out.Nodes = append(out.Nodes, nodeStock(&s.machines[i]))
	}
	return out
}

func nodeStock(m *Machine) fleet.NodeStock {
	cpus := func(a amount.Amount) int { return int(a.DivUp(amount.OneCPU)) }
	gpus := func(u Use) (sum int) {
		for _, n := range u.Devices {
			sum += n
		}
		return sum
	}
	words := []string{"Ready"}
	if m.Node.State == fleet.Down || m.Node.State == fleet.Unknown {
		words[0] = "NotReady"
	}
	if m.Cordoned {
		words = append(words, "SchedulingDisabled")
	}
	return fleet.NodeStock{
		Name: m.Node.Name, Level: m.Node.State, State: strings.Join(words, ","), Why: m.Node.Why,
		CPUs: int(m.Whole.CPU / amount.OneCPU), CPUsOurs: cpus(m.Ours.Take.CPU), CPUsOthers: cpus(m.Others.Take.CPU),
		GPUs: len(m.Node.Devices), GPUsOurs: gpus(m.Ours), GPUsOthers: gpus(m.Others),
		Partitions: taintedPools(m.Taints),
	}
}

// taintedPools are the pools that a node is kept for by a taint.
func taintedPools(taints []corev1.Taint) []string {
	out := map[string]bool{}
	for _, x := range taints {
		if x.Key == settings.TaintPool {
			out[x.Value] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}
