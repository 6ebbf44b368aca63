// Package aggregate makes one node of a pool whose own scheduler places, and of a job for it
// what it takes of the pool as a whole.
//
// The model. The scheduling core decides whether and in which order such jobs are handed
// over, not where they run. So to the core the pool is one node with the sum of what its
// nodes have, and a gang of four nodes is one claim on that, four times as large. What is
// said of single nodes (features, topology, contiguity, how much fits on one) is for the
// other scheduler, and left out. Devices become counts: gres/gpu, and gres/gpu:h100 for
// those of a type; so a pool of any size is one node without devices.
//
// Guarantees: what a job takes is the least that it can run with, so that one which fits
// into the pool is never too large for the folded node. Equal specifications fold to equal
// ones, whatever the pool has.
//
// It does not judge whether a job fits onto real nodes, and knows no pool's scheduler.
package aggregate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// mark begins the names of folded nodes: no host is called like that.
const mark = "@"

// Counts of a folded node, beside its devices (Device).
const (
	// Nodes is how many nodes a claim is on, but for the first one of its job. There is
	// no end of them: jobs share nodes.
	Nodes = "pool/nodes"
	// Whole is how many nodes a claim has alone.
	Whole = "pool/whole-nodes"
)

// endless is what a folded node has of Nodes.
const endless = resource.Amount(1) << 40

// NodeName is what the folded node of a pool is called.
func NodeName(pool string) string { return mark + pool }

// Is reports whether a node is a folded one.
func Is(node string) bool { return strings.HasPrefix(node, mark) }

// Device is the name under which devices are counted, as policies name them: "gpu",
// "gpu:h100".
func Device(name string) string { return "gres/" + name }

// Count is how many devices of a name a vector has, in thousandths.
func Count(v resource.Vector, name string) resource.Amount {
	if len(v.Named) == 0 {
		return 0
	}
	return v.Get(Device(name)).Mul(int(resource.WholeDevice))
}

// Node folds the nodes of a pool. Those that take no new work count for nothing; what
// others hold is not taken off: who decides where work runs decides when, too.
func Node(pool string, nodes []fleet.Node) fleet.Node {
	out := fleet.Node{Name: NodeName(pool), Pool: pool, State: fleet.Down, Why: "no node of the pool is up"}
	counts := map[string]resource.Amount{}
	parts, features := map[string]bool{}, map[string]bool{}
	everywhere := false
	for i := range nodes {
		n := &nodes[i]
		out.Hosts = append(out.Hosts, n.Machines()...)
		if n.State != fleet.Up {
			continue
		}
		out.State, out.Why = fleet.Up, ""
		out.Capacity = out.Capacity.Add(n.Capacity)
		counts[Whole]++
		for _, d := range n.Devices {
			counts[Device(d.Kind)]++
			if kind := typedCount(index.Match{Kind: d.Kind, Type: d.Type, Profile: d.Profile}); kind != "" {
				counts[kind]++
				features[index.DeviceFeature(d.Type)] = true
			}
		}
		for _, p := range n.Parts {
			parts[p] = true
		}
		everywhere = everywhere || len(n.Parts) == 0
		for _, f := range n.Features {
			features[f] = true
		}
	}
	if out.State == fleet.Up {
		counts[Nodes] = endless
	}
	for name, n := range counts {
		out.Capacity = out.Capacity.With(name, out.Capacity.Get(name).Add(n))
	}
	if !everywhere {
		out.Parts = sortedNames(parts)
	}
	out.Features = sortedNames(features)
	slices.Sort(out.Hosts)
	out.Hosts = slices.Compact(out.Hosts)
	return out
}

// typedCount is the count of devices of a type or a profile; empty: neither is said.
func typedCount(m index.Match) string {
	if m.Type == "" && m.Profile == "" {
		return ""
	}
	return Device(m.Name())
}

func sortedNames(set map[string]bool) []string {
	var out []string
	for s := range set {
		if s != "" {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// Spec is what a specification takes of a pool as a whole: each group one claim, of the
// fewest nodes and tasks that will do. Everything but the place is as it was; the
// reservation is one of the pool's own scheduler, and so are the licences that it counts.
func Spec(spec *job.Spec) *job.Spec {
	out := *spec
	out.Within, out.Wish, out.Levels, out.Reservation = 0, job.Wish{}, nil, ""
	out.Licenses, out.LicensesThere = countedLicenses(spec), nil
	shape := class.Compile(spec)
	out.Groups = make([]job.TaskGroup, len(spec.Groups))
	for i := range spec.Groups {
		out.Groups[i] = foldGroup(&spec.Groups[i], &shape.Groups[i], i == 0)
	}
	return &out
}

// countedLicenses are those of a job that its pool's own scheduler does not count. Of alternatives it
// counts all or none.
func countedLicenses(spec *job.Spec) string {
	switch {
	case len(spec.LicensesThere) == 0:
		return spec.Licenses
	case strings.Contains(spec.Licenses, "|"):
		return ""
	}
	list, _ := account.ParseLicenses(spec.Licenses) // refused at the door
	var ours []string
	for _, l := range list {
		if !slices.Contains(spec.LicensesThere, l.Name) {
			ours = append(ours, fmt.Sprintf("%s:%d", l.Name, l.Count))
		}
	}
	return strings.Join(ours, ",")
}

// foldGroup folds one group; g is what it was compiled to.
func foldGroup(of *job.TaskGroup, g *class.Group, first bool) job.TaskGroup {
	tasks, nodes := g.Least, g.MinNodes
	if g.Each > 0 {
		tasks = g.Each * nodes
	} else if g.Cap > 0 {
		nodes = max(nodes, (tasks+g.Cap-1)/g.Cap)
	}
	take := g.Base.Scale(nodes).Add(g.Step.Scale(tasks)).Add(g.Extra.Scale(g.TotalCount())).Add(g.Total)
	for _, part := range []struct {
		needs []class.Need
		times int
	}{{g.BaseDevices, nodes}, {g.StepDevices, tasks}, {g.TotalDevices, 1}} {
		for i := range part.needs {
			take = take.Add(needAsCounts(&part.needs[i], part.times))
		}
	}
	more := nodes
	if first {
		more--
	}
	take = take.With(Nodes, resource.Amount(more))
	if g.Whole {
		take = take.With(Whole, resource.Amount(nodes))
	}
	return job.TaskGroup{
		Name: of.Name, Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: tasks}, CPUsPerTask: of.CPUsPerTask,
		PerNode: resource.Requirements{Vector: take},
	}
}

// needAsCounts is a need as counts. A part of a device counts for its part, rounded up for all
// of them together.
func needAsCounts(n *class.Need, times int) resource.Vector {
	each := resource.WholeDevice
	if n.Share > 0 {
		each = n.Share
	}
	a := resource.Amount(each).Mul(n.Count).Mul(times).DivUp(resource.Amount(resource.WholeDevice))
	v := resource.Vector{}.With(Device(n.Kind), a)
	if kind := typedCount(n.Match); kind != "" {
		v = v.With(kind, a)
	}
	return v
}

// Seen are claims on real nodes, of a job whose claims are on a pool as a whole: it was seen
// on these nodes, in the order of its groups. What it took is spread evenly over them: more is
// not known. Of its devices nobody knows which they are: their index is -1.
func Seen(claims []fleet.Claim, nodes []string) []fleet.Claim {
	var out []fleet.Claim
	for i := range claims {
		c := &claims[i]
		n := int(c.Take.Get(Nodes))
		if i == 0 {
			n++
		}
		if i == len(claims)-1 {
			n = len(nodes) // what the other scheduler gave beyond the least
		}
		n = min(max(n, 0), len(nodes))
		out = append(out, spreadClaim(c, nodes[:n])...)
		nodes = nodes[n:]
	}
	return out
}

func spreadClaim(c *fleet.Claim, nodes []string) []fleet.Claim {
	out := make([]fleet.Claim, len(nodes))
	gpus := int(c.Take.Get(Device("gpu")))
	for i, name := range nodes {
		part := func(all resource.Amount) resource.Amount {
			n := resource.Amount(len(nodes))
			a := all / n
			if resource.Amount(i) < all%n {
				a++
			}
			return a
		}
		out[i] = fleet.Claim{
			Node: name, Group: c.Group, Tasks: int(part(resource.Amount(c.Tasks))), Whole: c.Take.Get(Whole) > 0,
			Take: resource.Vector{CPU: part(c.Take.CPU), Memory: part(c.Take.Memory), Disk: part(c.Take.Disk)},
		}
		for range int(part(resource.Amount(gpus))) {
			out[i].Devices = append(out[i].Devices, fleet.DeviceClaim{Index: -1, Share: resource.WholeDevice})
		}
	}
	return out
}
