package limit

import (
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/sched/class"
)

// Places of the things that every table has. Others follow by name.
const (
	cpu = iota
	memory
	disk
	node
	fixed
)

var fixedNames = [fixed]string{"cpu", "memory", "disk", "node"}

// Table numbers the countable things (TRES) that a policy limits.
type Table struct {
	names   []string          // by number
	devices []device          // those that are devices
	named   []int             // those that are none of the others
	one     []resource.Amount // scratch: of one node
}

// device is a number for devices of a kind, or of one type of it.
type device struct {
	kind, typ string // typ "": any
	tres      int
}

func newTable(p *account.Policy) *Table {
	more := map[string]bool{}
	for l := range everyLimits(p) {
		for _, t := range l.allTRES() {
			for name := range t {
				more[name] = true
			}
		}
	}
	for i := range p.Licenses {
		more[license+p.Licenses[i].Name] = true
	}
	t := &Table{names: slices.Clone(fixedNames[:])}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if slices.Contains(fixedNames[:], name) {
			continue
		}
		n := len(t.names)
		t.names = append(t.names, name)
		kind, typ, typed := strings.Cut(name, ":")
		switch {
		case name == "gpu" || typed:
			t.devices = append(t.devices, device{kind, typ, n})
		case name == "billing" || strings.HasPrefix(name, license):
		default:
			t.named = append(t.named, n)
		}
	}
	return t
}

// license begins the names of licences.
const license = "license/"

// numberOf is the place of a name; -1: nothing limits it.
func (t *Table) numberOf(name string) int { return slices.Index(t.names, name) }

// Typed reports whether a type of device is limited.
func (t *Table) Typed() bool {
	return slices.ContainsFunc(t.devices, func(d device) bool { return d.typ != "" })
}

// Use is what a job takes, or would take: by number in the table.
type Use struct {
	Held     []resource.Amount
	Fullest  []resource.Amount // most on one of its nodes
	Seconds  int64             // that it takes at most
	Endless  bool              // it has no time limit
	AsUsed   bool              // of minutes it takes nothing before it has used them
	Rests    bool              // its time waits: Seconds are left of it
	Priority int64
}

// Clear makes a use of nothing.
func (t *Table) Clear(u *Use) {
	u.Held = zeroedList(u.Held, len(t.names))
	u.Fullest = zeroedList(u.Fullest, len(t.names))
	u.Rests = false
}

func zeroedList(list []resource.Amount, n int) []resource.Amount {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

// Shape adds what a shape takes wherever it is placed.
func (t *Table) Shape(u *Use, shape *class.Shape) {
	nodes := 0
	for i := range shape.Groups {
		g := &shape.Groups[i]
		t.Least(u, max(g.MinNodes-nodes, 0), g.All, g.One) // groups may share nodes
		nodes = max(nodes, g.MinNodes)
		tasks, each := g.Least, 0
		switch {
		case g.Each > 0:
			tasks, each = g.Each*g.MinNodes, g.Each
		case len(g.TotalDevices) == 0 && g.Least >= g.MinNodes:
			each = 1
		}
		alone := 0
		if len(shape.Groups) == 1 {
			alone = 1
		}
		add := func(list []class.Need, all, one int) {
			for _, d := range list {
				a := resource.Amount(d.Share).Mul(d.Count)
				t.LeastDevices(u, d.Kind, d.Type, a.Mul(all), a.Mul(one*alone))
			}
		}
		add(g.BaseDevices, g.MinNodes, 1)
		add(g.StepDevices, tasks, each)
		add(g.TotalDevices, 1, 0)
	}
}

// Least adds what a part of a job takes at least: of all nodes together, and of the
// node that gives most.
func (t *Table) Least(u *Use, nodes int, all, one resource.Vector) {
	u.Held[node] = u.Held[node].Add(resource.Amount(nodes))
	t.addVector(u.Held, all)
	t.one = zeroedList(t.one, len(t.names))
	t.one[node] = 1
	t.addVector(t.one, one)
	of := t.one[node]
	for i, a := range t.one {
		u.Fullest[i] = max(u.Fullest[i], partOfNode(a, of))
	}
}

// LeastDevices adds devices of a kind, so many thousandths of them in all and on the
// node that gives most. typ "": of any type.
func (t *Table) LeastDevices(u *Use, kind, typ string, all, one resource.Amount) {
	for _, d := range t.devices {
		if d.kind == kind && (d.typ == "" || d.typ == typ) {
			u.Held[d.tres] = u.Held[d.tres].Add(all)
			u.Fullest[d.tres] = u.Fullest[d.tres].Add(one)
		}
	}
}

func (t *Table) addVector(to []resource.Amount, v resource.Vector) {
	to[cpu] = to[cpu].Add(v.CPU)
	to[memory] = to[memory].Add(v.Memory)
	to[disk] = to[disk].Add(v.Disk)
	for _, n := range t.named {
		to[n] = to[n].Add(v.Get(t.names[n]))
	}
	if len(v.Named) == 0 {
		return
	}
	to[node] = to[node].Add(v.Get(aggregate.Nodes)) // of a pool as a whole
	for _, d := range t.devices {
		to[d.tres] = to[d.tres].Add(aggregate.Count(v, t.names[d.tres]))
	}
}

// partOfNode is the part of an amount that one node has, where so many nodes are one.
func partOfNode(a, nodes resource.Amount) resource.Amount {
	if nodes <= 1 {
		return a
	}
	return a.DivUp(nodes)
}

// Claims adds what claims hold. find describes a node, nil if nobody knows it: what
// its devices are is then not known either.
func (t *Table) Claims(u *Use, claims []fleet.Claim, find func(fleet.NodeKey) *fleet.Node) {
	if n := len(claims); n > 0 && claims[0].Group != claims[n-1].Group { // two groups may share a node
		claims = slices.Clone(claims)
		slices.SortStableFunc(claims, func(a, b fleet.Claim) int { return strings.Compare(a.Node, b.Node) })
	}
	for i, k := 0, 0; i < len(claims); i = k {
		t.one = zeroedList(t.one, len(t.names))
		t.one[node] = 1
		n := find(claims[i].Key())
		for k = i; k < len(claims) && claims[k].Node == claims[i].Node; k++ {
			t.addVector(t.one, claims[k].Take)
			t.addClaimDevices(t.one, &claims[k], n)
		}
		of := t.one[node]
		for j, a := range t.one {
			u.Held[j] = u.Held[j].Add(a)
			u.Fullest[j] = max(u.Fullest[j], partOfNode(a, of))
		}
	}
}

// addClaimDevices adds the devices of a claim.
func (t *Table) addClaimDevices(to []resource.Amount, c *fleet.Claim, n *fleet.Node) {
	if len(t.devices) == 0 {
		return
	}
	for _, x := range c.Devices {
		kind, typ := "gpu", ""
		if n != nil {
			if i := slices.IndexFunc(n.Devices, func(d fleet.Device) bool { return d.Index == x.Index }); i >= 0 {
				kind, typ = n.Devices[i].Kind, n.Devices[i].Type
			}
		}
		for _, d := range t.devices {
			if d.kind == kind && (d.typ == "" || d.typ == typ) {
				to[d.tres] += resource.Amount(x.Share)
			}
		}
	}
}

// inTime is the unit in which minutes of something are counted: memory and disk in
// MiB, so that sums fit.
func inTime(tres int, a resource.Amount) resource.Amount {
	if tres == memory || tres == disk {
		return a.DivUp(resource.MiB)
	}
	return a
}

// minutesToSeconds turns a bound in minutes into seconds of that unit.
func minutesToSeconds(tres int, a resource.Amount) resource.Amount {
	if tres == memory || tres == disk {
		if a < resource.Unlimited/60 {
			return a.Mul(60) / resource.MiB
		}
		return (a / resource.MiB).Mul(60)
	}
	return a.Mul(60)
}

// Names lists the things by number.
func (t *Table) Names() []string { return t.names }
