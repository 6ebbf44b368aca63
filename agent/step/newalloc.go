package step

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Place says where an attempt lives on disk.
type Place struct {
	Dir     string                                          // the attempt's own directory
	Cluster string                                          // name of the control plane; empty: cox
	Bin     string                                          // directory of srun and its like; empty: PATH is left alone
	Socket  func(int) string                                // the unix socket of a node, by its index in Alloc.Nodes
	Shown   func(fleet.Node, fleet.Device) deviceenv.Device // how programs are told of a device; nil: guessed
}

// NewAlloc describes an attempt of a job by its claims. The nodes stand in the
// order in which the claims first name them; the claims of one group on one node
// are one part. It fails if a claim names a node that is not among the nodes.
func NewAlloc(j *job.Job, claims []fleet.Claim, nodes []fleet.Node, at Place, started time.Time) (*Alloc, error) {
	spec := j.Spec
	a := &Alloc{
		Job: j.ID, Attempt: max(j.Attempt, 1), Array: j.Array, Name: jobName(j),
		Owner: spec.Owner, Account: spec.Account, QOS: spec.QOS, Licenses: spec.Licenses, Cluster: cmp.Or(at.Cluster, "cox"),
		Reservation: spec.Source.Given["reservation"],
		Dir:         at.Dir, Bin: at.Bin, WorkDir: spec.WorkDir, SubmitDir: spec.Source.Submit, SubmitHost: spec.Source.Host,
		Output: spec.Output, Requeue: spec.Requeue, Command: commandText(spec), Direct: spec.Program.Kind == job.Direct,
		Submitted: j.Submitted, Started: started, TimeLimit: spec.TimeLimit,
		Given: spec.Source.Given, Export: spec.Env.Export, Set: spec.Env.Set,
	}
	if a.SubmitDir == "" {
		a.SubmitDir = spec.WorkDir
	}
	if len(spec.Partitions) > 0 {
		a.Partition = spec.Partitions[0]
	}
	for _, g := range spec.Groups {
		a.Groups = append(a.Groups, AllocGroup{
			Name: g.Name, CPUsPerTask: g.CPUsPerTask, TasksPerNode: g.TasksPerNode,
			Overcommit: g.Overcommit, Distribution: g.Distribution,
			MemoryMB: int64(g.PerNode.Memory / resource.MiB), GPUsPerNode: g.PerNode.DeviceCount(),
		})
	}
	for _, c := range claims {
		if err := a.addClaim(c, nodes, at); err != nil {
			return nil, err
		}
	}
	return a, a.Check()
}

// addClaim enters one claim.
func (a *Alloc) addClaim(c fleet.Claim, nodes []fleet.Node, at Place) error {
	k := slices.IndexFunc(nodes, func(n fleet.Node) bool { return n.Name == c.Node })
	if k < 0 {
		return fmt.Errorf("allocation of job %s: node %s of its claim is not known", a.Job, c.Node)
	}
	if c.Group < 0 || c.Group >= len(a.Groups) {
		return fmt.Errorf("allocation of job %s: it has no task group %d", a.Job, c.Group)
	}
	node := nodes[k]
	n := a.NodeIndex(node.Name)
	if n < 0 {
		n = len(a.Nodes)
		made := AllocNode{Name: node.Name, Address: node.Address, Virtual: node.Virtual, Path: strings.Join(node.Path, "."), CPUs: wholeCPUs(node.Capacity.CPU), Vendors: at.nodeVendors(node)}
		if at.Socket != nil {
			made.Socket = at.Socket(n)
		}
		a.Nodes = append(a.Nodes, made)
		if a.Partition == "" { // none was asked for: the node's first, or its pool
			a.Partition = node.Pool
			if len(node.Parts) > 0 {
				a.Partition = node.Parts[0]
			}
		}
	}
	take := c.Take
	if c.Whole {
		take.CPU = max(take.CPU, node.Capacity.CPU)
		take.Memory = max(take.Memory, node.Capacity.Memory)
	}
	part := Part{Node: n, Tasks: c.Tasks, CPUs: wholeCPUs(take.CPU), MemoryMB: int64(take.Memory / resource.MiB), Whole: c.Whole}
	for _, d := range c.Devices {
		part.Devices = append(part.Devices, at.describeDevice(node, d))
	}
	g := &a.Groups[c.Group]
	g.Tasks += c.Tasks
	g.addPart(part)
	return nil
}

// addPart adds to the group's part on the same node, or appends one.
func (g *AllocGroup) addPart(p Part) {
	for i := range g.Parts {
		if have := &g.Parts[i]; have.Node == p.Node {
			have.Tasks += p.Tasks
			have.CPUs += p.CPUs
			have.MemoryMB += p.MemoryMB
			have.Devices = append(have.Devices, p.Devices...)
			have.Whole = have.Whole || p.Whole
			slices.SortFunc(have.Devices, func(x, y AllocDevice) int { return x.Index - y.Index })
			return
		}
	}
	g.Parts = append(g.Parts, p)
}

// describeDevice describes one claimed device of a node.
func (at Place) describeDevice(node fleet.Node, c fleet.DeviceClaim) AllocDevice {
	out := AllocDevice{Index: c.Index, Kind: "gpu", Share: int(c.Share), Bytes: int64(c.Bytes), Shown: deviceenv.Device{Vendor: deviceenv.Declared, Index: c.Index}}
	for _, d := range node.Devices {
		if d.Index == c.Index {
			out.Kind, out.Type, out.UUID, out.Shown = d.Kind, d.Type, d.UUID, at.shownDevice(node, d)
		}
	}
	return out
}

// ShownDevice is how a device is named to programs.
func (at Place) ShownDevice(node fleet.Node, d fleet.Device) deviceenv.Device {
	return at.shownDevice(node, d)
}

// shownDevice is how a device is named to programs: as the place says, else by what its
// description gives away.
func (at Place) shownDevice(node fleet.Node, d fleet.Device) deviceenv.Device {
	if at.Shown != nil {
		return at.Shown(node, d)
	}
	out := deviceenv.Device{Vendor: deviceenv.NVIDIA, Index: d.Index}
	switch {
	case d.Declared:
		out.Vendor = deviceenv.Declared
	case strings.HasPrefix(d.Type, "mi"), strings.HasPrefix(d.Type, "amd"):
		out.Vendor = deviceenv.AMD
	case d.Profile != "":
		out.Instance = d.UUID
	}
	return out
}

// nodeVendors lists whose hardware is in a node.
func (at Place) nodeVendors(n fleet.Node) []deviceenv.Vendor {
	var out []deviceenv.Vendor
	for _, d := range n.Devices {
		if v := at.shownDevice(n, d).Vendor; v != deviceenv.Declared && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// NodeIndex finds a node by name; -1 if the allocation has none of that name.
func (a *Alloc) NodeIndex(name string) int {
	return slices.IndexFunc(a.Nodes, func(n AllocNode) bool { return n.Name == name })
}

// wholeCPUs rounds up to whole CPUs, at least one.
func wholeCPUs(cpu resource.Amount) int { return max(int(cpu.DivUp(resource.OneCPU)), 1) }

// jobName is the name that sbatch would give.
func jobName(j *job.Job) string {
	switch {
	case j.Spec.Name != "":
		return j.Spec.Name
	case j.Spec.Program.ScriptName != "":
		return j.Spec.Program.ScriptName
	case len(j.Spec.Program.Args) > 0:
		return j.Spec.Program.Args[0]
	}
	return "sbatch"
}

// commandText is what scontrol shows as the job's command.
func commandText(s *job.Spec) string {
	words := s.Program.Args
	if s.Program.Kind == job.Batch {
		name := s.Source.File
		if name == "" || name == "-" {
			name = s.Program.ScriptName
		}
		words = append([]string{name}, words...)
	}
	return strings.Join(words, " ")
}
