package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// load is what several claims take from one node.
type load struct {
	cpu, memory, disk int64
	named             map[string]int64
	devices           map[int]int64
	bytes             map[int]int64 // of their memory, by parts that were asked for so
	whole             bool
	holders           int // attempts
}

// loadOn adds up what attempts claim of a node; of some of them, which are suspended, all
// but CPUs and devices.
func loadOn(name string, list []*attempt, counts, still func(*attempt) bool) load {
	var l load
	for _, a := range list {
		if !counts(a) {
			continue
		}
		here := false
		for i := range a.claims {
			if c := a.claims[i]; c.Node == name {
				here = true
				if still(a) {
					c.Take.CPU, c.Devices, c.Whole = 0, nil, false
				}
				l.addClaim(&c)
			}
		}
		if here {
			l.holders++
		}
	}
	return l
}

func (l *load) addClaim(c *fleet.Claim) {
	l.cpu += int64(c.Take.CPU)
	l.memory += int64(c.Take.Memory)
	l.disk += int64(c.Take.Disk)
	l.whole = l.whole || c.Whole
	for _, n := range c.Take.Named {
		if l.named == nil {
			l.named = map[string]int64{}
		}
		l.named[n.Name] += int64(n.Amount)
	}
	for _, d := range c.Devices {
		if l.devices == nil {
			l.devices = map[int]int64{}
		}
		if d.Bytes > 0 {
			if l.bytes == nil {
				l.bytes = map[int]int64{}
			}
			l.bytes[d.Index] += int64(d.Bytes)
			continue
		}
		l.devices[d.Index] += int64(d.Share)
	}
}

// overload says in which way a node carries more than it has; "" if it does not.
func (l *load) overload(n *node) string {
	type amount struct {
		what      string
		used, has int64
	}
	for _, x := range []amount{
		{"thousandths of a CPU", l.cpu, int64(n.Capacity.CPU)},
		{"bytes of memory", l.memory, int64(n.Capacity.Memory)},
		{"bytes of disk", l.disk, int64(n.Capacity.Disk)},
	} {
		if x.used > x.has {
			return fmt.Sprintf("%d %s are taken of %d", x.used, x.what, x.has)
		}
	}
	for name, used := range l.named {
		has := int64(n.Capacity.Get(name))
		if strings.HasPrefix(name, "port:") {
			has = 1
		}
		if used > has {
			return fmt.Sprintf("%d of %s are taken of %d", used, name, has)
		}
	}
	for i, share := range l.devices {
		switch {
		case !slices.ContainsFunc(n.Devices, func(d fleet.Device) bool { return d.Index == i }):
			return fmt.Sprintf("device %d is taken, which it does not have", i)
		case share > int64(resource.WholeDevice):
			return fmt.Sprintf("device %d is taken %d thousandths", i, share)
		}
	}
	for i, bytes := range l.bytes {
		at := slices.IndexFunc(n.Devices, func(d fleet.Device) bool { return d.Index == i })
		if at < 0 {
			return fmt.Sprintf("device %d is taken, which it does not have", i)
		}
		if has := int64(n.Devices[at].Memory); bytes > has-(has*l.devices[i]+999)/1000 {
			return fmt.Sprintf("%d bytes and %d thousandths are taken of device %d, which has %d bytes", bytes, l.devices[i], i, has)
		}
	}
	if l.whole && l.holders > 1 {
		return fmt.Sprintf("it is taken whole, and by %d attempts", l.holders)
	}
	return ""
}

// grantedLoad is what the journal grants on a node.
func (m *Model) grantedLoad(name string) load {
	return loadOn(name, m.live, (*attempt).isHeld, func(a *attempt) bool { return a.parked })
}

// runningLoad is what truly runs on a node.
func (m *Model) runningLoad(name string) load {
	return loadOn(name, m.live, func(a *attempt) bool { return slices.Contains(a.lives, name) && !(a.ghost && a.freed) }, func(a *attempt) bool { return a.paused || a.astray })
}

// differsFrom says how a published node differs from what is claimed of it; "" if it
// does not.
func (l *load) differsFrom(n *Node) string {
	switch {
	case int64(n.Used.CPU) != l.cpu:
		return fmt.Sprintf("%d thousandths of a CPU are shown as used, its attempts claim %d", n.Used.CPU, l.cpu)
	case int64(n.Used.Memory) != l.memory:
		return fmt.Sprintf("%d bytes of memory are shown as used, its attempts claim %d", n.Used.Memory, l.memory)
	case int64(n.Used.Disk) != l.disk:
		return fmt.Sprintf("%d bytes of disk are shown as used, its attempts claim %d", n.Used.Disk, l.disk)
	}
	for i, jobs := range n.Held {
		if len(jobs) > 0 && l.devices[i] == 0 {
			return fmt.Sprintf("device %d is shown as held by %s, no attempt claims it", i, formatIDs(jobs))
		}
	}
	for i := range l.devices {
		if len(n.Held[i]) == 0 {
			return fmt.Sprintf("device %d is shown as free, an attempt claims it", i)
		}
	}
	return ""
}

// missingTasks says what claims lack of the whole gang of a job; "" if nothing.
func missingTasks(spec *job.Spec, claims []fleet.Claim) string {
	for i, g := range spec.Groups {
		tasks, nodes := 0, map[string]bool{}
		least := leastTasks(&g)
		for _, c := range claims {
			if c.Group == i {
				tasks += c.Tasks
				nodes[c.Node] = true
			}
		}
		switch {
		case tasks < least:
			return fmt.Sprintf("%d of %d tasks", tasks, least)
		case len(nodes) < g.Nodes.Min:
			return fmt.Sprintf("%d of %d nodes", len(nodes), g.Nodes.Min)
		case g.Nodes.Max > 0 && len(nodes) > g.Nodes.Max:
			return fmt.Sprintf("%d nodes where at most %d were asked for", len(nodes), g.Nodes.Max)
		}
	}
	return ""
}

// leastTasks is the smallest number of tasks of a group.
func leastTasks(g *job.TaskGroup) int {
	if g.Elastic {
		return g.Nodes.Min * max(g.TasksPerNode, 1)
	}
	return g.Tasks.Least()
}

// sameClaims reports whether two lists of claims take the same.
func sameClaims(a, b []fleet.Claim) bool {
	return slices.EqualFunc(a, b, func(x, y fleet.Claim) bool {
		return x.Node == y.Node && x.Group == y.Group && x.Tasks == y.Tasks && x.Whole == y.Whole &&
			x.Take.CPU == y.Take.CPU && x.Take.Memory == y.Take.Memory && x.Take.Disk == y.Take.Disk &&
			slices.Equal(x.Take.Named, y.Take.Named) && slices.Equal(x.Devices, y.Devices)
	})
}
