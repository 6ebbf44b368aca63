package slurm

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/driver/slurm/inventory"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// ForeignUse is what jobs that are not this driver's hold of the cluster.
type ForeignUse struct {
	CPUs    int
	Memory  resource.Amount // bytes
	Devices int             // GPUs
}

// String says it in a sentence's part; empty: they hold nothing. No job is without CPUs, so
// memory alone is what ours were given beyond their claims.
func (o ForeignUse) String() string {
	if o.CPUs == 0 && o.Devices == 0 {
		return ""
	}
	return fmt.Sprintf("%d CPUs, %d MiB of memory and %d GPUs", o.CPUs, o.Memory/resource.MiB, o.Devices)
}

// Others is what others hold, as the last list of nodes had it.
func (e *Engine) Others() ForeignUse {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen.others
}

// ownUsage is what attempts that live may hold of a node: its claims say so.
type ownUsage struct {
	ForeignUse
	claimed map[int]bool // its devices, by index
}

// ownUsageByNode sums up what attempts that live may hold, by node. The caller holds the lock.
func ownUsageByNode(attempts map[engine.Ref]*attempt) map[string]*ownUsage {
	out := map[string]*ownUsage{}
	for _, a := range attempts {
		if a.ended || a.order == nil {
			continue
		}
		for _, c := range a.order.Claims {
			h := out[c.Node]
			if h == nil {
				h = &ownUsage{claimed: map[int]bool{}}
				out[c.Node] = h
			}
			h.CPUs += int(c.Take.CPU.DivUp(resource.OneCPU))
			h.Memory += c.Take.Memory
			for _, d := range c.Devices {
				h.claimed[d.Index] = true
			}
			h.Devices = len(h.claimed)
		}
	}
	return out
}

// subtractFloor is what is left of one after the other, and never below nothing.
func (o ForeignUse) subtractFloor(p ForeignUse) ForeignUse {
	return ForeignUse{max(0, o.CPUs-p.CPUs), max(0, o.Memory-p.Memory), max(0, o.Devices-p.Devices)}
}

// markForeignUse counts what others hold of nodes, and marks as many devices as held by others: of
// those that none of ours claims, the last ones. Which they are only the nodes know; the
// number is right. What ours were given beyond their claims counts as others'. Where
// slurmctld chooses the nodes, claims name none, and nothing is marked.
func (e *Engine) markForeignUse(found []site.Node, all []fleet.Node) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.others = ForeignUse{}
	if !e.cfg.Placed {
		for i := range found {
			n := &found[i]
			e.seen.others = e.seen.others.addUse(ForeignUse{n.UsedCPUs, resource.Amount(n.UsedBytes), len(inventory.GPUs(n.Taken))})
		}
		e.seen.others = e.seen.others.subtractFloor(ownPoolUsage(e.attempts))
		return
	}
	ours := ownUsageByNode(e.attempts)
	for i := range found {
		n := &found[i]
		used := ForeignUse{n.UsedCPUs, resource.Amount(n.UsedBytes), len(inventory.GPUs(n.Taken))}
		claimed := map[int]bool{}
		if h := ours[n.Name]; h != nil {
			used, claimed = used.subtractFloor(h.ForeignUse), h.claimed
		}
		e.seen.others = e.seen.others.addUse(used)
		for d := len(all[i].Devices) - 1; d >= 0 && used.Devices > 0; d-- {
			if dev := &all[i].Devices[d]; !claimed[dev.Index] {
				dev.Foreign = 1
				used.Devices--
			}
		}
	}
}

// ownPoolUsage is what attempts hold to which slurmctld has given nodes, as their claims on the pool
// as a whole say. The caller holds the lock.
func ownPoolUsage(attempts map[engine.Ref]*attempt) (sum ForeignUse) {
	for _, a := range attempts {
		if a.ended || a.order == nil || a.report.Phase < engine.Ready {
			continue
		}
		for _, c := range a.order.Claims {
			sum = sum.addUse(ForeignUse{int(c.Take.CPU.DivUp(resource.OneCPU)), c.Take.Memory, int(c.Take.Get("gres/gpu"))})
		}
	}
	return sum
}

func (o ForeignUse) addUse(p ForeignUse) ForeignUse {
	return ForeignUse{o.CPUs + p.CPUs, o.Memory + p.Memory, o.Devices + p.Devices}
}
