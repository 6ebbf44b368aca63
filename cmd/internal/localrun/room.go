package localrun

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Shape is what the user said about the virtual machine room; zero fields mean
// "as the jobs need".
type Shape struct {
	Nodes       int
	GPUsPerNode int // -1: not said
}

// Room is the machine room that jobs will find: nodes without names or addresses,
// which the engine gives them, and what was made up for them.
type Room struct {
	Nodes    []fleet.Node
	Names    []string // node names that jobs insist on, "" elsewhere
	Declared int      // devices that stand for hardware which is not here
	Notes    []string // what was made up, one sentence each
}

// Machine is what this computer really has.
type Machine struct {
	CPUs    int
	Memory  resource.Amount
	Devices []fleet.Device // those that are free

	// Held are devices that another server or run of this machine has, and Holder says who.
	Held   []fleet.Device
	Holder error
}

// need is what one node must have for the jobs to fit.
type need struct {
	nodes   int
	tasks   int // on one node
	take    resource.Vector
	devices map[string]int // by type, "" for any
	wanted  int            // devices of all jobs together, if they ran at once
	shares  bool
	names   []string
	feats   []string
	parts   []string
}

// BuildRoom sizes a room to what the jobs ask for, starting from the machine. The
// shape bounds it: what does not fit into a fixed shape is refused later, by name,
// when the job is submitted.
func BuildRoom(m Machine, shape Shape, specs []*job.Spec) (Room, error) {
	n := need{nodes: 1, devices: map[string]int{}}
	for _, s := range specs {
		n.addJob(s)
	}
	count := n.nodes
	if shape.Nodes > 0 {
		count = shape.Nodes
	}
	var r Room
	devs := 0
	for _, c := range n.devices {
		devs += min(c, maxDevices+1)
	}
	if count > MaxNodes || n.tasks > maxTasks || devs > maxDevices {
		return r, fault.New(fault.Invalid, "more is asked for than this machine can play: %s; a room has at most %d nodes with %d tasks and %d devices each",
			plural(count, "node"), MaxNodes, maxTasks, maxDevices).Advise("ask for less: cox run -s --nodes=4 -s --ntasks=8 FILE")
	}
	devices, declared, err := n.deviceSets(m, count, shape.GPUsPerNode)
	if err != nil {
		return r, err
	}
	capacity := resource.Vector{CPU: max(resource.CPUs(m.CPUs), n.take.CPU), Memory: max(m.Memory, n.take.Memory), Disk: n.take.Disk}
	capacity.Named = n.take.Named
	for i := range count {
		node := fleet.Node{State: fleet.Up, Virtual: true, Capacity: capacity, Features: n.feats, Parts: n.parts, Devices: devices[i]}
		r.Nodes = append(r.Nodes, node)
		name := ""
		if i < len(n.names) {
			name = n.names[i]
		}
		r.Names = append(r.Names, name)
		if declared {
			r.Declared += len(devices[i])
		}
	}
	if n.take.CPU > resource.CPUs(m.CPUs) {
		r.addNote("each node is given %s CPUs as asked; this machine has %d", resource.FormatCPU(n.take.CPU), m.CPUs)
	}
	if n.take.Memory > m.Memory {
		r.addNote("each node is given %s of memory as asked; this machine has %s", resource.FormatBytes(n.take.Memory), resource.FormatBytes(m.Memory))
	}
	if len(n.feats) > 0 {
		r.addNote("no node here has features; --constraint is met by declaring %q", n.feats)
	}
	return r, nil
}

// A room is processes of one machine, so its size has bounds.
const (
	MaxNodes   = 1000
	maxTasks   = 4096 // on one node
	maxDevices = 128  // on one node, as many as the core handles
)

func (r *Room) addNote(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// addJob widens the need by one job: its groups stand on nodes of their own.
func (n *need) addJob(s *job.Spec) {
	nodes := 0
	for i := range s.Groups {
		g := &s.Groups[i]
		c := nodesOf(g)
		nodes += c
		tasks := tasksOn(g, c)
		n.tasks = max(n.tasks, tasks)
		take := g.PerNode.Vector.Add(g.PerTask.Vector.Scale(tasks)).Add(divideVector(g.Total.Vector, c))
		devs := map[string]int{}
		per := 0
		for _, d := range g.PerNode.Devices {
			n.addDevice(devs, &per, d, d.Count)
		}
		for _, d := range g.PerTask.Devices {
			n.addDevice(devs, &per, d, d.Count*tasks)
		}
		for _, d := range g.Total.Devices {
			n.addDevice(devs, &per, d, (d.Count+c-1)/c)
		}
		take = take.Add(g.PerDevice.Scale(per))
		n.take = maxVector(n.take, take)
		for t, c := range devs {
			n.devices[t] = max(n.devices[t], c)
		}
		runs := 1
		if s.Array != nil {
			runs = len(s.Array.Indices)
		}
		n.wanted += min(per, maxDevices) * min(c, MaxNodes) * runs
		n.names = union(n.names, g.NodeList)
		if len(g.Constraint.Alternatives) > 0 {
			n.feats = union(n.feats, g.Constraint.Alternatives[0])
		}
		nodes = max(nodes, len(g.NodeList))
	}
	n.parts = union(n.parts, s.Partitions)
	n.nodes = max(n.nodes, nodes)
	slices.Sort(n.feats)
}

func (n *need) addDevice(devs map[string]int, per *int, d resource.DeviceRequest, count int) {
	*per += count
	if !d.Whole() {
		n.shares = true
		if d.Share > 0 && d.Bytes == 0 { // shares of one device can lie together on it
			fit := int(resource.WholeDevice / d.Share)
			count = (count + fit - 1) / fit
		}
	}
	devs[d.Type] += count
}

// deviceSets gives every node its devices: real ones where the machine has enough,
// otherwise declared ones, for all nodes alike. It takes no more real ones than the jobs can use,
// and is an error where there are enough of them and others have some.
func (n *need) deviceSets(m Machine, nodes, fixed int) (sets [][]fleet.Device, declared bool, err error) {
	per := 0
	for _, c := range n.devices {
		per += c
	}
	if fixed >= 0 {
		per = fixed
	}
	if nodes == 1 && fixed < 0 && per <= len(m.Devices) && n.typesFit(m.Devices) {
		return [][]fleet.Device{m.Devices[:min(max(per, n.wanted), len(m.Devices))]}, false, nil
	}
	if per > 0 && nodes*per <= len(m.Devices) && n.typesFit(m.Devices) {
		for i := range nodes {
			sets = append(sets, m.Devices[i*per:(i+1)*per])
		}
		return sets, false, nil
	}
	if all := slices.Concat(m.Devices, m.Held); len(m.Held) > 0 && per > 0 && nodes*per <= len(all) && n.typesFit(all) {
		return nil, false, fault.New(fault.Conflict, "%s needed, and %d of this machine's %d are free: %w", plural(nodes*per, "GPU"), len(m.Devices), len(all), m.Holder).
			Advise("wait for them, or send the job to the server that has them (cox submit); --share runs it all the same: two jobs are on one GPU then, slow each other down and may run out of its memory")
	}
	types := n.typeList(per)
	for range nodes {
		var set []fleet.Device
		for i, t := range types {
			set = append(set, fleet.Device{Index: i, Minor: -1, Kind: "gpu", Type: t, NUMA: -1, Declared: true})
		}
		sets = append(sets, set)
	}
	return sets, per > 0, nil
}

// typesFit reports whether the machine's devices serve every type that is asked for.
func (n *need) typesFit(have []fleet.Device) bool {
	for t := range n.devices {
		if t != "" && slices.ContainsFunc(have, func(d fleet.Device) bool { return d.Type != t }) {
			return false
		}
	}
	return true
}

// typeList names the type of each of a node's declared devices.
func (n *need) typeList(per int) []string {
	var names []string
	for t := range n.devices {
		if t != "" {
			names = append(names, t)
		}
	}
	slices.Sort(names)
	var out []string
	for _, t := range names {
		for range n.devices[t] {
			out = append(out, t)
		}
	}
	rest := "gpu"
	if len(names) == 1 {
		rest = names[0]
	}
	for len(out) < per {
		out = append(out, rest)
	}
	return out[:per]
}

// nodesOf is the number of nodes that a group needs at least.
func nodesOf(g *job.TaskGroup) int {
	switch {
	case g.Nodes.Min > 0:
		return g.Nodes.Min
	case g.TasksPerNode > 0 && g.Tasks.Least() > 0:
		return (g.Tasks.Least() + g.TasksPerNode - 1) / g.TasksPerNode
	}
	return 1
}

// tasksOn is the largest number of tasks that one of c nodes carries.
func tasksOn(g *job.TaskGroup, c int) int {
	if g.Tasks.Least() == 0 && g.TasksPerNode > 0 {
		return g.TasksPerNode // on every node
	}
	t := (max(g.Tasks.Least(), 1) + c - 1) / c
	if g.TasksPerNode > 0 {
		t = min(t, g.TasksPerNode)
	}
	return t
}

func divideVector(v resource.Vector, n int) resource.Vector {
	out := resource.Vector{CPU: v.CPU.DivUp(resource.Amount(n)), Memory: v.Memory.DivUp(resource.Amount(n)), Disk: v.Disk.DivUp(resource.Amount(n))}
	for _, x := range v.Named {
		out = out.With(x.Name, x.Amount.DivUp(resource.Amount(n)))
	}
	return out
}

func maxVector(a, b resource.Vector) resource.Vector {
	out := resource.Vector{CPU: max(a.CPU, b.CPU), Memory: max(a.Memory, b.Memory), Disk: max(a.Disk, b.Disk), Named: slices.Clone(a.Named)}
	for _, x := range b.Named {
		out = out.With(x.Name, max(out.Get(x.Name), x.Amount))
	}
	return out
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}
