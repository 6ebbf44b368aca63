package render

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Spread says, where the cluster's own scheduler chooses the nodes, how many pods a job has and
// what each takes: one for each node that it asks for, at least one a group, or one for each task
// if it asks for that. The nodes have made-up names, NODE 0 and so on. gpu says by which name a whole GPU is asked for; it is called only
// for a job that asks for one. claim says which devices a request is for; nil: devices are asked for
// by a name.
func Spread(s *job.Spec, gpu func() (string, error), claim func(resource.DeviceRequest) (Piece, error)) ([]Node, []fleet.Claim, error) {
	var nodes []Node
	var claims []fleet.Claim
	for gi := range s.Groups {
		g := &s.Groups[gi]
		if err := RefusePlacement(g); err != nil {
			return nil, nil, err
		}
		n, tasks := groupSize(g)
		if s.PodPerTask() {
			n = tasks
		}
		for i := range n {
			here := tasks / n
			if i < tasks%n {
				here++
			}
			c := fleet.Claim{Node: fmt.Sprintf("node %d", len(nodes)), Group: gi, Tasks: here, Take: g.PerNode.Vector.Add(g.PerTask.Scale(here)), Whole: g.Exclusive}
			node := Node{Node: fleet.Node{Name: c.Node}}
			for _, need := range []struct {
				r     []resource.DeviceRequest
				times int
			}{{g.PerNode.Devices, 1}, {g.PerTask.Devices, here}, {deviceShare(g.Total.Devices, n, i), 1}} {
				for _, r := range need.r {
					name, piece := "", Piece{}
					var err error
					if claim != nil {
						piece, err = claim(r)
					} else {
						name, err = resourceName(r, gpu)
					}
					if err != nil {
						return nil, nil, err
					}
					for range r.Count * need.times {
						k := len(node.Ask)
						node.Ask = append(node.Ask, name)
						if claim != nil {
							node.Pieces = append(node.Pieces, piece)
						}
						node.Devices = append(node.Devices, fleet.Device{Index: k, Minor: -1, NUMA: -1, Kind: r.KindOf(), Profile: r.Profile})
						c.Devices = append(c.Devices, fleet.DeviceClaim{Index: k, Share: resource.WholeDevice})
					}
				}
			}
			c.Take = c.Take.Add(g.PerDevice.Scale(len(c.Devices))).Add(vectorShare(g.Total.Vector, n))
			node.Capacity = c.Take
			nodes, claims = append(nodes, node), append(claims, c)
		}
	}
	if len(nodes) == 0 {
		return nil, nil, fault.New(fault.Invalid, "the job has no group of tasks")
	}
	return nodes, claims, nil
}

// groupSize is how many nodes and tasks a group has.
func groupSize(g *job.TaskGroup) (nodes, tasks int) {
	nodes, tasks = max(1, g.Nodes.Min), g.Tasks.Least()
	switch {
	case tasks == 0 && g.TasksPerNode > 0:
		tasks = nodes * g.TasksPerNode
	case g.TasksPerNode > 0:
		nodes = max(nodes, (tasks+g.TasksPerNode-1)/g.TasksPerNode)
	}
	return nodes, max(tasks, nodes)
}

// RefusePlacement refuses what a group says of where it is to run: the cluster's scheduler is not
// told yet.
func RefusePlacement(g *job.TaskGroup) error {
	say := func(option string, is bool) error {
		if !is {
			return nil
		}
		name := "--" + option
		if option == "within" { // of the native form alone
			name = option
		}
		return engine.About(fault.New(fault.Unsupported, "%s is not handed over to Kubernetes' own scheduler", name).Advise("leave it out, or name a pool whose nodes Coxswain chooses"), option)
	}
	for _, err := range []error{
		say("nodelist", len(g.NodeList) > 0), say("exclude", len(g.Exclude) > 0), say("exclusive", g.Exclusive), say("contiguous", g.Contiguous),
		say("switches", g.Switches > 0), say("mem", g.AllMemory), say("constraint", len(g.Constraint.Alternatives) > 0),
		say("within", g.Within != 0), say("segment", g.Segment > 0),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// resourceName is the name of the resource of which a request is.
func resourceName(r resource.DeviceRequest, gpu func() (string, error)) (string, error) {
	refuse := func(advice, format string, args ...any) (string, error) {
		return "", engine.About(fault.New(fault.Invalid, format, args...).Advise("%s", advice), "gres")
	}
	switch {
	case !r.Whole() && r.Profile == "":
		return refuse("ask for whole devices or for a MIG profile", "a share of a device is not to be had on Kubernetes")
	case r.Profile != "":
		return "nvidia.com/mig-" + strings.ToLower(r.Profile), nil
	case r.Type != "" || r.Memory > 0:
		return refuse("ask for devices by number alone, or name a pool whose nodes Coxswain chooses", "the type or the memory of a device is not handed over to Kubernetes' own scheduler")
	case r.KindOf() != "gpu":
		return refuse("ask for a GPU", "devices of kind %q are not known on Kubernetes", r.KindOf())
	}
	return gpu()
}

// deviceShare is what node i of n has of devices that are asked for of all together.
func deviceShare(all []resource.DeviceRequest, n, i int) []resource.DeviceRequest {
	out := make([]resource.DeviceRequest, len(all))
	for k, r := range all {
		r.Count = (r.Count + n - 1 - i) / n
		out[k] = r
	}
	return out
}

// vectorShare is an n-th of a vector, rounded up.
func vectorShare(v resource.Vector, n int) resource.Vector {
	out := resource.Vector{CPU: v.CPU.DivUp(resource.Amount(n)), Memory: v.Memory.DivUp(resource.Amount(n)), Disk: v.Disk.DivUp(resource.Amount(n))}
	for _, x := range v.Named {
		out = out.With(x.Name, x.Amount.DivUp(resource.Amount(n)))
	}
	return out
}
