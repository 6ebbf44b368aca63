// Package schedtest holds what tests of the core share: a book that checks every
// decision by counting anew, an exhaustive search that knows whether a gang fits,
// generators, and scenarios written as transcripts.
//
// It is written from the meaning of job.TaskGroup and shares no code with the
// core. It is slow, and meant for fleets of a few nodes.
package schedtest

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// Book keeps who holds what, from decisions and events alone.
type Book struct {
	Nodes map[string]fleet.Node
	Held  map[job.ID]Held
	// Forms lists what a job with wishes may start as now, the preferred one first; nil:
	// all of its forms.
	Forms func(*job.Spec) []*job.Spec `json:"-"`

	ByNode bool `json:"-"` // ranks go over the nodes in their order, as Slurm's do, not leaf by leaf
}

// formsOf is Forms, and a job without wishes itself.
func (b *Book) formsOf(spec *job.Spec) []*job.Spec {
	if !spec.Wishful() {
		return []*job.Spec{spec}
	}
	if b.Forms != nil {
		return b.Forms(spec)
	}
	var out []*job.Spec
	for _, f := range spec.Forms(job.DefaultSwitchWait) {
		out = append(out, f.Spec)
	}
	return out
}

// Held is what a running job has.
type Held struct {
	Spec   *job.Spec
	Claims []fleet.Claim
	Until  sched.Instant

	License  string // of alternatives that it asked for, the one that it has
	Priority int64  // for who keeps it there
}

// Asked is the specification with the licence that the job has.
func (h *Held) Asked() *job.Spec {
	if h.License == "" {
		return h.Spec
	}
	s := *h.Spec
	s.Licenses = h.License
	return &s
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{Nodes: map[string]fleet.Node{}, Held: map[job.ID]Held{}}
}

// Start enters a decision and reports what is wrong with it.
func (b *Book) Start(d sched.Start, spec *job.Spec) error {
	if _, ok := b.Held[d.Job]; ok {
		return fmt.Errorf("job %d runs already", d.Job)
	}
	var err error
	for _, form := range b.formsOf(spec) {
		if err = b.Conforms(form, d.Claims); err == nil {
			spec = form
			break
		}
	}
	if err != nil {
		return fmt.Errorf("job %d: %w", d.Job, err)
	}
	for _, c := range d.Claims {
		if n := b.Nodes[c.Node]; n.State != fleet.Up {
			return fmt.Errorf("job %d: starts on node %s, which is %s", d.Job, n.Name, n.State)
		}
		for _, x := range c.Devices {
			if !slices.ContainsFunc(b.Nodes[c.Node].Devices, func(y fleet.Device) bool { return y.Index == x.Index && y.Foreign == 0 }) {
				return fmt.Errorf("job %d: node %s has no free device %d", d.Job, c.Node, x.Index)
			}
		}
	}
	h := Held{Spec: spec, Until: d.Until, License: d.License}
	for _, c := range d.Claims { // one after the other: two groups may share a node
		if err := b.checkNode(c.Node, c); err != nil {
			return fmt.Errorf("job %d: %w", d.Job, err)
		}
		h.Claims = append(h.Claims, c)
		b.Held[d.Job] = h
	}
	return nil
}

// Add enters what a running job is given beside what it has.
func (b *Book) Add(id job.ID, claims []fleet.Claim) error {
	h := b.Held[id]
	g := &h.Spec.Groups[claims[0].Group]
	var tasks []int
	for _, c := range append(slices.Clone(h.Claims), claims...) {
		if c.Group == claims[0].Group {
			tasks = append(tasks, c.Tasks)
		}
	}
	if err := Counts(g, tasks); err != nil {
		return fmt.Errorf("job %d, with what is added: %w", id, err)
	}
	alone := *g // what it has may stand on nodes that are others by now
	alone.Nodes = job.Range{Min: len(claims), Max: len(claims)}
	if err := b.Conforms(&job.Spec{Pool: h.Spec.Pool, Partitions: h.Spec.Partitions, Groups: []job.TaskGroup{alone}}, asFirstGroup(claims)); err != nil {
		return fmt.Errorf("job %d: %w", id, err)
	}
	for _, c := range claims {
		if slices.ContainsFunc(h.Claims, func(o fleet.Claim) bool { return o.Node == c.Node }) {
			return fmt.Errorf("job %d: is given node %s, which it has", id, c.Node)
		}
		if pool := b.Nodes[h.Claims[0].Node].Pool; b.Nodes[c.Node].Pool != pool {
			return fmt.Errorf("job %d: is in pool %q and is given node %s", id, pool, c.Node)
		}
		if n := b.Nodes[c.Node]; n.State != fleet.Up {
			return fmt.Errorf("job %d: is given node %s, which is %s", id, n.Name, n.State)
		}
		if err := b.checkNode(c.Node, c); err != nil {
			return fmt.Errorf("job %d: %w", id, err)
		}
		h.Claims = append(slices.Clone(h.Claims), c)
		b.Held[id] = h
	}
	return nil
}

// asFirstGroup is claims of one group as those of the first.
func asFirstGroup(claims []fleet.Claim) []fleet.Claim {
	out := slices.Clone(claims)
	for i := range out {
		out[i].Group = 0
	}
	return out
}

// checkNode adds up everything that is held on a node and reports why it cannot hold
// one more claim. Resources that the claim does not ask for are not looked at: a
// node may have shrunk below what is held on it.
func (b *Book) checkNode(name string, more fleet.Claim) error {
	n := b.Nodes[name]
	used := more.Take
	shares := map[int]int64{} // of each device, in thousandths of a byte of its memory
	for _, d := range more.Devices {
		shares[d.Index] += heldOf(n, d)
	}
	whole, claims := more.Whole, 0
	for _, h := range b.Held {
		for _, c := range h.Claims {
			if c.Node != name {
				continue
			}
			used = used.Add(c.Take)
			whole = whole || c.Whole
			claims++
			for _, d := range c.Devices {
				if _, asked := shares[d.Index]; asked {
					shares[d.Index] += heldOf(n, d)
				}
			}
		}
	}
	over := used.Sub(n.Capacity)
	asked := func(amount, over resource.Amount) bool { return over > 0 && amount > 0 }
	if asked(more.Take.CPU, over.CPU) || asked(more.Take.Memory, over.Memory) || asked(more.Take.Disk, over.Disk) {
		return fmt.Errorf("node %s: %+v of %+v is held", name, used, n.Capacity)
	}
	for _, x := range over.Named {
		if asked(more.Take.Get(x.Name), x.Amount) {
			return fmt.Errorf("node %s: %d of %d %s is held", name, used.Get(x.Name), n.Capacity.Get(x.Name), x.Name)
		}
	}
	for i, s := range shares {
		if all := heldOf(n, fleet.DeviceClaim{Index: i, Share: resource.WholeDevice}); s > all {
			return fmt.Errorf("node %s: device %d is held %d of %d", name, i, s, all)
		}
	}
	if whole && claims > 0 {
		return fmt.Errorf("node %s is held whole and by others", name)
	}
	return nil
}

// Conforms reports how claims differ from what a specification asks for, whatever
// is free.
func (b *Book) Conforms(spec *job.Spec, claims []fleet.Claim) error {
	byGroup := make([][]fleet.Claim, len(spec.Groups))
	last := 0
	for _, c := range claims {
		if c.Group < last || c.Group >= len(spec.Groups) {
			return fmt.Errorf("claims are not in order of groups")
		}
		last = c.Group
		if b.Nodes[c.Node].Pool != b.Nodes[claims[0].Node].Pool {
			return fmt.Errorf("two pools hold one gang")
		}
		if p := b.Nodes[c.Node].Pool; spec.Pool != "" && spec.Pool != p {
			return fmt.Errorf("node %s of pool %q, not of %q", c.Node, p, spec.Pool)
		}
		byGroup[c.Group] = append(byGroup[c.Group], c)
	}
	if len(spec.Partitions) > 0 && !slices.ContainsFunc(spec.Partitions, func(p string) bool {
		return !slices.ContainsFunc(claims, func(c fleet.Claim) bool { return !inPartition(b.Nodes[c.Node], p) })
	}) {
		return fmt.Errorf("no partition of %v has all of its nodes", spec.Partitions)
	}
	if err := b.checkRanks(claims); err != nil && !b.ByNode {
		return err
	}
	var nodes []fleet.Node
	for _, c := range claims {
		nodes = append(nodes, b.Nodes[c.Node])
	}
	if !oneDomain(spec.Within, nodes) {
		return fmt.Errorf("the groups are not within one domain of level %d", spec.Within)
	}
	for i := range spec.Groups {
		if err := b.checkGroup(&spec.Groups[i], byGroup[i]); err != nil {
			return fmt.Errorf("group %d: %w", i, err)
		}
	}
	return nil
}

// checkRanks reports claims whose ranks do not go leaf by leaf.
func (b *Book) checkRanks(claims []fleet.Claim) error {
	for level := 1; level <= 8; level++ {
		seen := map[string]bool{}
		for i, c := range claims {
			path := b.Nodes[c.Node].Path
			here := fmt.Sprint(c.Group, path[:min(level, len(path))])
			if i > 0 {
				before := b.Nodes[claims[i-1].Node].Path
				if here == fmt.Sprint(claims[i-1].Group, before[:min(level, len(before))]) {
					continue
				}
			}
			if seen[here] {
				return fmt.Errorf("ranks leave the domain %v and come back to it", path)
			}
			seen[here] = true
		}
	}
	return nil
}

// oneDomain reports whether nodes share a domain of a level; 0: they need not.
func oneDomain(level int, nodes []fleet.Node) bool {
	domains := map[string]bool{}
	for _, n := range nodes {
		path := n.Path
		if level != 0 && len(path) < max(level, 1) {
			return false
		}
		if level > 0 {
			path = path[:level]
		}
		domains[fmt.Sprint(path)] = true
	}
	return level == 0 || len(domains) <= 1
}

func inPartition(n fleet.Node, p string) bool {
	return len(n.Parts) == 0 || slices.Contains(n.Parts, p)
}

func (b *Book) checkGroup(g *job.TaskGroup, claims []fleet.Claim) error {
	tasks := make([]int, len(claims))
	names := make([]string, len(claims))
	for i, c := range claims {
		if slices.Contains(names[:i], c.Node) {
			return fmt.Errorf("node %s twice", c.Node)
		}
		tasks[i], names[i] = c.Tasks, c.Node
		if c.Whole != g.Exclusive {
			return fmt.Errorf("node %s: whole is %v", c.Node, c.Whole)
		}
	}
	if err := Counts(g, tasks); err != nil {
		return err
	}
	if !AllowedTogether(g, b.sortedNodes(), names) {
		return fmt.Errorf("nodes %v are not what was asked for", names)
	}
	extra, sum := 0, resource.Vector{}
	for _, c := range claims {
		x, more, err := b.checkClaim(g, c)
		if err != nil {
			return err
		}
		if x == 0 && totalCount(g) >= len(claims) && !g.Exclusive {
			return fmt.Errorf("node %s gives none of the devices asked for in total", c.Node)
		}
		extra, sum = extra+x, sum.Add(more)
	}
	if extra != totalCount(g) && !g.Exclusive {
		return fmt.Errorf("%d of %d devices asked for in total", extra, totalCount(g))
	}
	if !g.Exclusive && (!sum.Covers(g.Total.Vector) || !g.Total.Vector.Covers(sum)) {
		return fmt.Errorf("%+v was collected, %+v asked for", sum, g.Total.Vector)
	}
	return nil
}

// checkClaim checks one node's claim and returns how many of the devices, and how much
// else, are beyond what its tasks take.
func (b *Book) checkClaim(g *job.TaskGroup, c fleet.Claim) (extra int, more resource.Vector, err error) {
	n := b.Nodes[c.Node]
	var wants []resource.DeviceRequest
	wants = append(wants, g.PerNode.Devices...)
	for range c.Tasks {
		wants = append(wants, g.PerTask.Devices...)
	}
	if !slices.IsSortedFunc(c.Devices, func(a, b fleet.DeviceClaim) int { return a.Index - b.Index }) {
		return 0, more, fmt.Errorf("node %s: devices are not sorted", c.Node)
	}
	held := map[int]int64{}
	for _, d := range c.Devices {
		held[d.Index] = heldOf(n, d)
	}
	for extra = 0; extra <= totalCount(g); extra++ {
		if takesExactly(n, held, append(slices.Clone(wants), totalDevices(g, extra)...), g.Exclusive) {
			break
		}
	}
	if extra > totalCount(g) {
		return 0, more, fmt.Errorf("node %s: devices %v do not serve %v", c.Node, c.Devices, wants)
	}
	need := Need(g, n, c.Tasks, extra)
	if !c.Take.Covers(need) {
		return 0, more, fmt.Errorf("node %s: takes %+v, needs %+v", c.Node, c.Take, need)
	}
	return extra, c.Take.Sub(need), nil
}

// Need is what a node gives for so many tasks and extra devices.
func Need(g *job.TaskGroup, n fleet.Node, tasks, extra int) resource.Vector {
	devices := g.PerNode.DeviceCount() + tasks*g.PerTask.DeviceCount() + extra
	v := g.PerNode.Add(g.PerTask.Scale(tasks)).Add(g.PerDevice.Scale(devices))
	if g.AllMemory {
		v.Memory = max(v.Memory, n.Capacity.Memory)
	}
	if g.Exclusive {
		v.CPU = max(v.CPU, n.Capacity.CPU)
	}
	return v
}

func totalCount(g *job.TaskGroup) int { return g.Total.DeviceCount() }

// totalDevices is so many devices of the one kind that a group collects in total.
func totalDevices(g *job.TaskGroup, n int) []resource.DeviceRequest {
	if len(g.Total.Devices) == 0 || n == 0 {
		return nil
	}
	r := g.Total.Devices[0]
	r.Count = n
	return []resource.DeviceRequest{r}
}

// Counts reports whether a group may run on so many nodes with these tasks.
func Counts(g *job.TaskGroup, tasks []int) error {
	n, sum := len(tasks), 0
	asked := g.Nodes != job.Range{}
	for _, t := range tasks {
		sum += t
	}
	switch {
	case n == 0 || n < g.Nodes.Min || n < len(g.NodeList) || g.Nodes.Max > 0 && n > g.Nodes.Max:
		return fmt.Errorf("%d nodes", n)
	case asked && g.Tasks.Want == 0:
		for _, t := range tasks {
			if t != max(g.TasksPerNode, 1) {
				return fmt.Errorf("%d tasks on a node", t)
			}
		}
		return nil
	case sum < max(g.Tasks.Least(), 1) || sum > max(g.Tasks.Want, 1):
		return fmt.Errorf("%d tasks", sum)
	case sum < n && n > max(g.Nodes.Min, len(g.NodeList), totalCount(g)):
		return fmt.Errorf("%d tasks on %d nodes", sum, n)
	}
	for _, t := range tasks {
		if t == 0 && sum >= n || t > 1 && sum < n || g.TasksPerNode > 0 && t > g.TasksPerNode {
			return fmt.Errorf("%d of %d tasks on one of %d nodes", t, sum, n)
		}
	}
	return nil
}

// AllowedTogether reports whether a set of nodes is one that a group may have,
// whatever is free on them. All nodes of the fleet are given in node order.
func AllowedTogether(g *job.TaskGroup, all []fleet.Node, names []string) bool {
	for _, want := range g.NodeList {
		if !slices.Contains(names, want) {
			return false
		}
	}
	satisfies := func(n fleet.Node, features []string) bool {
		return !slices.ContainsFunc(features, func(f string) bool { return !slices.Contains(n.Features, f) })
	}
	common := make([]bool, len(g.Constraint.Alternatives))
	for i := range common {
		common[i] = true
	}
	var at []int
	for i, n := range all {
		if !slices.Contains(names, n.Name) {
			continue
		}
		at = append(at, i)
		any := len(common) == 0
		for k, alternative := range g.Constraint.Alternatives {
			ok := satisfies(n, alternative)
			any = any || ok
			common[k] = common[k] && ok
		}
		if !any || slices.Contains(g.Exclude, n.Name) {
			return false
		}
	}
	if g.Constraint.Same && len(common) > 0 && !slices.Contains(common, true) {
		return false
	}
	return (!g.Contiguous || at[len(at)-1]-at[0] == len(at)-1) && closeBy(g, all, at)
}

// closeBy reports whether nodes share the domain that a group has to be within, and
// stand in segments.
func closeBy(g *job.TaskGroup, all []fleet.Node, at []int) bool {
	leaves, domains := map[string]int{}, map[string]bool{}
	if !slices.ContainsFunc(all, func(n fleet.Node) bool { return len(n.Path) > 0 }) {
		h := *g
		h.Segment = 0
		g = &h
	}
	for _, i := range at {
		path := all[i].Path
		leaves[fmt.Sprint(path)]++
		if g.Within > 0 {
			path = path[:min(g.Within, len(path))]
		}
		if g.Within != 0 && len(path) < max(g.Within, 1) || g.Segment > 1 && len(all[i].Path) == 0 {
			return false
		}
		domains[fmt.Sprint(path)] = true
	}
	if g.Within != 0 && len(domains) > 1 {
		return false
	}
	if g.Switches > 0 && !fewLeaves(g.Switches, all, at) {
		return false
	}
	if g.Segment > 1 && len(at) <= g.Segment {
		return len(leaves) == 1
	}
	for _, n := range leaves {
		if g.Segment > 1 && n%g.Segment != 0 {
			return false
		}
	}
	return true
}

// fewLeaves reports whether nodes are in so many leaves at most. One without a path is a
// leaf; where nobody has one there are none to count.
func fewLeaves(most int, all []fleet.Node, at []int) bool {
	leaves := map[string]bool{}
	for _, i := range at {
		if len(all[i].Path) == 0 {
			leaves[all[i].Name] = true
		} else {
			leaves[fmt.Sprint(all[i].Path)] = true
		}
	}
	return len(leaves) <= most || !slices.ContainsFunc(all, func(n fleet.Node) bool { return len(n.Path) > 0 })
}

// sortedNodes lists the nodes in node order. Names in tests have one digit.
func (b *Book) sortedNodes() []fleet.Node {
	out := make([]fleet.Node, 0, len(b.Nodes))
	for _, n := range b.Nodes {
		out = append(out, n)
	}
	slices.SortFunc(out, func(x, y fleet.Node) int {
		if x.Name < y.Name {
			return -1
		}
		return 1
	})
	return out
}

// deviceMatches reports whether a device can serve a request.
func deviceMatches(d fleet.Device, r resource.DeviceRequest) bool {
	return d.Kind == r.KindOf() && d.Profile == r.Profile && (r.Type == "" || r.Type == d.Type) && d.Memory >= max(r.Memory, r.Bytes)
}

// takenOf is how much of a device one unit of a request takes, in thousandths of a byte of
// its memory (of one byte, where that is not known).
func takenOf(d fleet.Device, r resource.DeviceRequest) int64 {
	switch {
	case r.Profile == "" && r.Bytes > 0:
		return 1000 * int64(r.Bytes)
	case r.Whole() || r.Profile != "":
		return 1000 * max(int64(d.Memory), 1)
	}
	return int64(r.Share) * max(int64(d.Memory), 1)
}

// heldOf is how much of a device a claim holds, in the same unit.
func heldOf(n fleet.Node, c fleet.DeviceClaim) int64 {
	for _, d := range n.Devices {
		if d.Index != c.Index {
			continue
		}
		if c.Bytes > 0 {
			return 1000 * int64(c.Bytes)
		}
		return int64(c.Share) * max(int64(d.Memory), 1)
	}
	return 0
}

// takesExactly reports whether shares of devices are exactly what the requests take
// together, or with more, at least that.
func takesExactly(n fleet.Node, held map[int]int64, wants []resource.DeviceRequest, more bool) bool {
	var units []resource.DeviceRequest
	for _, w := range wants {
		for range w.Count {
			units = append(units, w)
		}
	}
	left := make([]int64, len(n.Devices))
	for i, d := range n.Devices {
		left[i] = held[d.Index]
	}
	return packUnits(n.Devices, left, units, !more)
}

// packUnits tries every way of putting the units on the devices; with all, nothing may be left.
func packUnits(devices []fleet.Device, left []int64, units []resource.DeviceRequest, all bool) bool {
	if len(units) == 0 {
		return !all || !slices.ContainsFunc(left, func(n int64) bool { return n > 0 })
	}
	u := units[0]
	for i, d := range devices {
		if s := takenOf(d, u); left[i] >= s && deviceMatches(d, u) {
			left[i] -= s
			ok := packUnits(devices, left, units[1:], all)
			left[i] += s
			if ok {
				return true
			}
		}
	}
	return false
}
