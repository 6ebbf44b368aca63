package render

import (
	"maps"
	"slices"
	"strconv"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// This file is about jobs of which each task has a pod of its own (job.Pod.PerTask). Several pods
// may be on one node then: claim i of the attempt is pod i's, and the same node stands in Nodes
// once for each.

// perTask reports whether each task has a pod of its own.
func (a *Attempt) perTask() bool { return a.Launch.Job.Spec.PodPerTask() }

// podClaims are those of pod i, in the order of the attempt's.
func (a *Attempt) podClaims(i int) (out []fleet.Claim) {
	if a.perTask() {
		return a.Launch.Claims[i : i+1]
	}
	for k := range a.Launch.Claims {
		if c := &a.Launch.Claims[k]; c.Node == a.Nodes[i].Name {
			out = append(out, *c)
		}
	}
	return out
}

// podOfClaim is the pod that claim k is of; -1: its node is not there.
func (a *Attempt) podOfClaim(k int) int {
	name := a.Launch.Claims[k].Node
	if k < len(a.Nodes) && a.Nodes[k].Name == name { // so it is if no two groups share a node, too
		return k
	}
	for i := range a.Nodes {
		if a.Nodes[i].Name == name && !a.perTask() {
			return i
		}
	}
	return -1
}

// Split gives each task of claims a claim of its own, with its share of what the claim takes, and
// beside it the node with no more devices than those. Bytes are rounded down; anything else has to
// divide. A node where the job has no task, as one of a --nodelist that is longer, has no pod. nodes
// are those of the claims, each once.
func Split(claims []fleet.Claim, nodes []Node) ([]fleet.Claim, []Node, error) {
	var out []fleet.Claim
	var on []Node
	for _, c := range claims {
		k := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == c.Node })
		if k < 0 {
			return nil, nil, fault.New(fault.Invalid, "there is no node %q in the pool", c.Node)
		}
		if c.Tasks == 0 {
			continue
		}
		take, ok := exactShare(c.Take, c.Tasks)
		if !ok || len(c.Devices)%c.Tasks != 0 || c.Whole {
			return nil, nil, fault.New(fault.Invalid, "what the job has of node %s does not divide among its %d tasks there", c.Node, c.Tasks).
				Advise("say what each task needs: --cpus-per-task, --mem-per-cpu, --gpus-per-task")
		}
		each := len(c.Devices) / c.Tasks
		for t := range c.Tasks {
			one := c
			one.Tasks, one.Take, one.Devices = 1, take, slices.Clone(c.Devices[t*each:(t+1)*each])
			out, on = append(out, one), append(on, nodes[k].withClaim(&one))
		}
	}
	if len(out) == 0 {
		return nil, nil, fault.New(fault.Invalid, "the job has no tasks on its nodes")
	}
	return out, on, nil
}

// withClaim is a node as a pod has it that has but this claim of it: of all its devices a node may have
// hundreds of pods.
func (n *Node) withClaim(c *fleet.Claim) Node {
	out := *n
	out.Devices, out.Ask, out.Pieces = nil, nil, nil
	out.Capacity = c.Take
	for _, d := range c.Devices {
		for k := range n.Devices {
			if n.Devices[k].Index != d.Index {
				continue
			}
			out.Devices = append(out.Devices, n.Devices[k])
			if k < len(n.Ask) {
				out.Ask = append(out.Ask, n.Ask[k])
			}
			if k < len(n.Pieces) {
				out.Pieces = append(out.Pieces, n.Pieces[k])
			}
		}
	}
	return out
}

// exactShare is what one of n has of amounts. false: they do not divide.
func exactShare(v resource.Vector, n int) (resource.Vector, bool) {
	by := resource.Amount(n)
	if n < 1 || v.CPU%by != 0 {
		return resource.Vector{}, false
	}
	out := resource.Vector{CPU: v.CPU / by, Memory: v.Memory / by, Disk: v.Disk / by}
	for _, x := range v.Named {
		if x.Amount%by != 0 {
			return resource.Vector{}, false
		}
		out = out.With(x.Name, x.Amount/by)
	}
	return out, true
}

// checkPerTask refuses a job of which each task is to have a pod, and cannot. What is said of nodes
// has to divide among the tasks, and how many of these a node has must be known before.
func (a *Attempt) checkPerTask() error {
	s := a.Launch.Job.Spec
	if a.OnHost() {
		return optionError("kubernetes", "leave pods: task out; or host_network, or name a pool without it", "pods of the same job listen on one port, and with host_network two of them cannot be on a node: pods: task does not go with it")
	}
	if !a.Placed && len(s.Groups) > 1 {
		return engine.About(fault.New(fault.Unsupported, "the job has several groups of tasks, and on how many nodes the pods of each are, Kubernetes' own scheduler does not say: nobody could show what runs where").
			Advise("leave pods: task out; or name a pool whose nodes Coxswain chooses; or submit each group as a job of its own"), "kubernetes")
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if err := wholeTasks(g); err != nil {
			return err
		}
		n := 0
		if a.Placed {
			n = TasksPerNode(g)
		} else if g.Nodes != (job.Range{}) || g.TasksPerNode > 0 {
			return engine.About(fault.New(fault.Unsupported, "how many nodes have the pods of tasks, Kubernetes' own scheduler is not told: it puts each where there is room").
				Advise("say how many tasks there are (--ntasks), and nothing of nodes; or name a pool whose nodes Coxswain chooses; or leave pods: task out"), "nodes", "ntasks-per-node", "tasks_per_node")
		}
		if err := checkDivides(g, n); err != nil {
			return err
		}
	}
	return nil
}

// wholeTasks refuses what a group asks for that is of no single task.
func wholeTasks(g *job.TaskGroup) error {
	for _, x := range []struct {
		is                 bool
		option, what, mend string
	}{
		{g.Exclusive, "exclusive", "--exclusive is about whole nodes", "leave it out"},
		{g.AllMemory, "mem", "all memory of a node (--mem=0) is of no single task", "say --mem-per-cpu, or memory_per_task in the native form"},
		{g.Total.DeviceCount() > 0, "gpus", "--gpus is of all tasks together", "say --gpus-per-task"},
		{!g.Total.Vector.IsZero(), "total", "total is of all tasks together", "say what each task needs"},
		{g.Distribution != "" && g.Distribution != "block", "distribution", "with a pod for each task ranks go over the nodes in blocks", "leave --distribution out"},
	} {
		if x.is {
			return optionError(x.option, x.mend+"; or leave pods: task out", "each task is to have a pod of its own (pods: task), and %s", x.what)
		}
	}
	return nil
}

// TasksPerNode is how many tasks each node of a group will have where we choose the nodes; 0: nobody
// knows, as where several nodes have to share --ntasks: they have as many each as there is room for.
func TasksPerNode(g *job.TaskGroup) int {
	n, want := g.Nodes, g.Tasks.Want
	switch {
	case n == (job.Range{}):
		return 0
	case want == 0:
		return max(g.TasksPerNode, 1)
	case n.Min != n.Max || g.Tasks.Least() != want:
		return 0
	case n.Min == 1, g.TasksPerNode*n.Min == want:
		return want / n.Min
	}
	return 0
}

// checkDivides refuses what a group asks for of each node, if that does not divide among n tasks; 0:
// how many these are is not known.
func checkDivides(g *job.TaskGroup, n int) error {
	if g.PerNode.Vector.IsZero() && g.PerNode.DeviceCount() == 0 {
		return nil
	}
	option, mend := "mem", "say --mem-per-cpu, or memory_per_task in the native form"
	switch {
	case g.PerNode.DeviceCount() > 0:
		option, mend = "gpus-per-node", "say --gpus-per-task"
	case g.PerNode.Memory > 0:
	case g.PerNode.Disk > 0:
		option, mend = "tmp", "say per_task: {disk: …} in the native form"
	case g.PerNode.CPU > 0:
		option, mend = "overcommit", "say --cpus-per-task"
	default:
		option, mend = "gres", "say --tres-per-task, or per_task in the native form"
	}
	if n == 0 {
		return engine.About(fault.New(fault.Invalid, "each task is to have a pod of its own (pods: task), and what is asked for of each node (--%s) is to be divided: how many tasks a node has is not known", option).
			Advise("%s; or, where Coxswain chooses the nodes, say --nodes with one number and --ntasks-per-node; or leave pods: task out", mend), option, "gres", "per_node")
	}
	_, ok := exactShare(g.PerNode.Vector, n)
	for _, r := range g.PerNode.Devices {
		ok = ok && r.Count%n == 0
	}
	if !ok {
		return engine.About(fault.New(fault.Invalid, "each task is to have a pod of its own (pods: task), and what is asked for of each node does not divide among its %d tasks", n).
			Advise("%s; or make it a multiple of %d; or leave pods: task out", mend, n), option, "gres", "per_node")
	}
	return nil
}

// jobPerTask is a job as its processes know it if each task has a pod, which is a node to srun: what
// was said of nodes is not true of pods. It has so many tasks.
func jobPerTask(j *job.Job, tasks int) *job.Job {
	out, spec := *j, *j.Spec
	out.Spec = &spec
	spec.Groups = slices.Clone(spec.Groups)
	for i := range spec.Groups {
		g := &spec.Groups[i]
		g.TasksPerNode = min(g.TasksPerNode, 1)
	}
	spec.Source.Given = maps.Clone(spec.Source.Given)
	if spec.Source.Given == nil {
		spec.Source.Given = map[string]string{}
	}
	maps.DeleteFunc(spec.Source.Given, func(option, _ string) bool { return slices.Contains(ofNodes, option) })
	spec.Source.Given["ntasks"] = strconv.Itoa(tasks)
	return &out
}

// ofNodes are the options that say how much each node has.
var ofNodes = []string{"nodes", "ntasks-per-node", "tasks-per-node", "ntasks-per-socket", "mem", "gres", "gpus-per-node", "gpus-per-socket", "tmp", "mincpus"}
