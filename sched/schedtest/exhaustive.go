package schedtest

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// free is what the book leaves on one node.
type free struct {
	node   fleet.Node
	vector resource.Vector
	shares []int64 // left of each device, in thousandths of a byte of its memory; 0 where it may not be used
	alone  bool    // nothing is held on it
	closed bool    // held whole, or not up
}

func (b *Book) freeNodes() []free {
	var out []free
	for _, n := range b.sortedNodes() {
		f := free{node: n, vector: n.Capacity, alone: true, closed: n.State != fleet.Up}
		f.shares = make([]int64, len(n.Devices))
		for i, d := range n.Devices {
			parent := slices.ContainsFunc(n.Devices, func(x fleet.Device) bool { return x.Parent != "" && x.Parent == d.UUID })
			if d.Foreign == 0 && !parent {
				f.shares[i] = heldOf(n, fleet.DeviceClaim{Index: d.Index, Share: resource.WholeDevice})
			}
		}
		for _, h := range b.Held {
			for _, c := range h.Claims {
				if c.Node != n.Name {
					continue
				}
				f.alone = false
				f.closed = f.closed || c.Whole
				f.vector = f.vector.Sub(c.Take)
				for _, x := range c.Devices {
					for i, d := range n.Devices {
						if d.Index == x.Index {
							f.shares[i] = max(0, f.shares[i]-heldOf(n, x))
						}
					}
				}
			}
		}
		out = append(out, f)
	}
	return out
}

// Fits reports whether any placement of a gang exists now, by trying all of them.
// Groups may collect at most one kind of device in total, and several groups none.
func (b *Book) Fits(spec *job.Spec) bool {
	return slices.ContainsFunc(b.formsOf(spec), b.fitsNow)
}

func (b *Book) fitsNow(spec *job.Spec) bool {
	partitions := spec.Partitions
	if len(partitions) == 0 {
		partitions = []string{""}
	}
	pools := map[string]bool{}
	for _, n := range b.Nodes {
		pools[n.Pool] = true
	}
	for pool := range pools {
		if spec.Pool != "" && spec.Pool != pool {
			continue
		}
		for _, p := range partitions {
			s := exhaustive{all: b.sortedNodes(), nodes: b.freeNodes(), spec: spec}
			for i := range s.nodes {
				n := &s.nodes[i]
				n.closed = n.closed || n.node.Pool != pool || p != "" && !inPartition(n.node, p)
			}
			s.tasks = make([][]int, len(spec.Groups))
			s.extra = make([][]int, len(spec.Groups))
			for g := range spec.Groups {
				s.tasks[g], s.extra[g] = make([]int, len(s.nodes)), make([]int, len(s.nodes))
				for i := range s.nodes {
					s.tasks[g][i] = unused
				}
			}
			s.known = make([]map[[4]int]bool, len(s.nodes))
			if s.tryGroup(0) {
				return true
			}
		}
	}
	return false
}

// FitsEmpty is Fits on the fleet without any running job; with up, every node is
// up and no device is in foreign use.
func (b *Book) FitsEmpty(spec *job.Spec, up bool) bool {
	e := NewBook()
	if !up {
		e.Forms = b.Forms
	}
	for name, n := range b.Nodes {
		if up {
			n.State = fleet.Up
			n.Devices = slices.Clone(n.Devices)
			for i := range n.Devices {
				n.Devices[i].Foreign = 0
			}
		}
		e.Nodes[name] = n
	}
	return e.Fits(spec)
}

const unused = -1

// exhaustive tries every division of every group over the nodes.
type exhaustive struct {
	all   []fleet.Node
	nodes []free
	spec  *job.Spec
	tasks [][]int // by group and node; unused: the node takes no part
	extra [][]int
	known []map[[4]int]bool // by node: whether it can serve tasks and extras of two groups
}

func (s *exhaustive) tryGroup(g int) bool {
	if g == len(s.spec.Groups) {
		return s.spec.Within == 0 || s.inOneDomain()
	}
	return s.tryNode(g, 0, 0, 0)
}

// inOneDomain reports whether all groups are within the domain that the job asks for.
func (s *exhaustive) inOneDomain() bool {
	var used []fleet.Node
	for i := range s.nodes {
		if slices.ContainsFunc(s.tasks, func(tasks []int) bool { return tasks[i] != unused }) {
			used = append(used, s.nodes[i].node)
		}
	}
	return oneDomain(s.spec.Within, used)
}

func (s *exhaustive) tryNode(g, i, tasks, extra int) bool {
	tg := &s.spec.Groups[g]
	if i == len(s.nodes) {
		return extra == totalCount(tg) && s.checkDivision(g) && s.tryGroup(g+1)
	}
	most := max(tg.Tasks.Want, tg.TasksPerNode, 1)
	for t := unused; t <= most; t++ {
		for x := 0; x <= totalCount(tg)-extra; x++ {
			if t == unused && x > 0 || t > 0 && tg.Tasks.Want > 0 && tasks+t > tg.Tasks.Want {
				break
			}
			s.tasks[g][i], s.extra[g][i] = t, x
			if (t == unused || s.nodeServes(i, g)) && s.tryNode(g, i+1, tasks+max(t, 0), extra+x) {
				return true
			}
		}
	}
	s.tasks[g][i], s.extra[g][i] = unused, 0
	return false
}

// checkDivision checks a finished division of one group.
func (s *exhaustive) checkDivision(g int) bool {
	tg := &s.spec.Groups[g]
	var counts []int
	var names []string
	for i, t := range s.tasks[g] {
		if t == unused {
			continue
		}
		counts, names = append(counts, t), append(names, s.nodes[i].node.Name)
	}
	for i, t := range s.tasks[g] {
		if t != unused && s.extra[g][i] == 0 && totalCount(tg) >= len(counts) && totalCount(tg) > 0 {
			return false
		}
	}
	if len(names) == 0 || Counts(tg, counts) != nil || !AllowedTogether(tg, s.all, names) {
		return false
	}
	var spare resource.Vector
	for i, t := range s.tasks[g] {
		if t != unused {
			spare = spare.Add(s.nodes[i].vector.Sub(Need(tg, s.nodes[i].node, t, s.extra[g][i])))
		}
	}
	return tg.Total.Vector.IsZero() || spare.Covers(tg.Total.Vector)
}

// nodeServes reports whether a node can give what groups 0..g take of it.
func (s *exhaustive) nodeServes(i, g int) bool {
	key := [4]int{unused, 0, unused, 0}
	for k := 0; k <= g && k < 2; k++ {
		key[2*k], key[2*k+1] = s.tasks[k][i], s.extra[k][i]
	}
	if s.known[i] == nil {
		s.known[i] = map[[4]int]bool{}
	}
	ok, seen := s.known[i][key]
	if !seen {
		ok = s.servesNow(i, g)
		s.known[i][key] = ok
	}
	return ok
}

func (s *exhaustive) servesNow(i, g int) bool {
	f := &s.nodes[i]
	var units []resource.DeviceRequest
	var take resource.Vector
	groups, whole := 0, false
	for k := 0; k <= g; k++ {
		t, x := s.tasks[k][i], s.extra[k][i]
		if t == unused {
			continue
		}
		tg := &s.spec.Groups[k]
		groups, whole = groups+1, whole || tg.Exclusive
		take = take.Add(Need(tg, f.node, t, x))
		wants := append(slices.Clone(tg.PerNode.Devices), totalDevices(tg, x)...)
		for range t {
			wants = append(wants, tg.PerTask.Devices...)
		}
		for _, w := range wants {
			for range w.Count {
				units = append(units, w)
			}
		}
	}
	if f.closed || whole && (!f.alone || groups > 1) || !f.vector.Covers(take) {
		return false
	}
	slices.SortFunc(units, func(a, b resource.DeviceRequest) int { return cmp.Compare(roughSize(b), roughSize(a)) })
	return packUnits(f.node.Devices, f.shares, units, false)
}

// roughSize orders units so that the large ones are tried first.
func roughSize(r resource.DeviceRequest) int64 { return takenOf(fleet.Device{Memory: resource.GiB}, r) }
