package server

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/health"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

// shownJob is a job as the API shows it to the caller. It shares the spec.
func (c *call) shownJob(v *control.View) *api.Job {
	j := &v.Job
	spec := j.Spec
	if c.Allowed(auth.SeeEnvironment, auth.Job(j.Name(), spec.Owner.UID)) != nil {
		spec = withoutValues(spec)
	}
	out := &api.Job{
		ID: j.ID, Name: j.Name(), Array: j.Array, State: j.State.String(), Flags: flagsOf(j.Flags), Attempt: j.Attempt,
		Exit: j.Exit, Spec: spec, Submitted: j.Submitted, Eligible: v.Eligible, Started: j.Started, Ended: j.Ended,
		Priority: v.Priority, Pool: v.Pool, Files: v.Report.Files, Message: statusMessage(v), StartsBy: v.StartsBy,
		Saved: v.Saved.At, SavedAs: v.Saved.As,
	}
	if j.State == job.Pending && v.Why.Code != "" {
		why := v.Why
		out.Why = &why
	}
	for _, c := range v.Claims {
		claim := api.Claim{
			Node: c.Node, Group: c.Group, Tasks: c.Tasks, CPUs: float64(c.Take.CPU) / float64(resource.OneCPU),
			Memory: int64(c.Take.Memory), Whole: c.Whole,
		}
		for _, d := range c.Devices {
			if d.Index < 0 {
				claim.Unnamed++
				continue
			}
			claim.Devices = append(claim.Devices, d.Index)
		}
		out.Claims = append(out.Claims, claim)
	}
	out.Idle = c.idleNodes(v)
	for _, t := range v.Report.Tasks {
		out.Tasks = append(out.Tasks, api.Task{
			Step: t.Step, Rank: t.Rank, Node: t.Node, Running: t.Running, Started: t.Started, Ended: t.Ended, Exit: t.Exit,
			Cause: string(t.Cause), Log: t.Log != "",
		})
	}
	return out
}

// listedJob is a job as a page of a list shows it. The indices of an array stand with the first of
// its tasks on the page alone: with each of a hundred thousand they would be gigabytes.
func (c *call) listedJob(v *control.View, arrays map[job.ID]bool) *api.Job {
	out := c.shownJob(v)
	if out.Array == nil || out.Spec.Array == nil {
		return out
	}
	if arrays[out.Array.Job] {
		spec, array := *out.Spec, *out.Spec.Array
		array.Indices = []uint32{}
		spec.Array, out.Spec = &array, &spec
	}
	arrays[out.Array.Job] = true
	return out
}

// idleNodes lists the nodes on which a running job holds devices and does nothing.
func (c *call) idleNodes(v *control.View) (out []api.Idle) {
	if c.s.cfg.Idle == nil || v.Job.State != job.Running {
		return nil
	}
	found := c.s.cfg.Idle(v.Ref)
	for _, cl := range v.Claims { // in the order of its ranks
		i := slices.IndexFunc(found, func(i health.Idle) bool { return i.Node == cl.Node })
		if i < 0 || len(cl.Devices) == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Node == cl.Node {
			out[n-1].Devices += len(cl.Devices)
			continue
		}
		out = append(out, api.Idle{Node: cl.Node, Devices: len(cl.Devices), Processes: found[i].Processes, Since: found[i].Since})
	}
	return out
}

// withoutValues is a specification without the values of variables, which are for
// those alone who may see the environment.
func withoutValues(s *job.Spec) *job.Spec {
	if len(s.Env.Set) == 0 && !strings.Contains(s.Env.Export, "=") && !strings.Contains(s.Source.Given["export"], "=") {
		return s
	}
	out := *s
	out.Env.Set = nil
	for _, kv := range s.Env.Set {
		name, _, _ := strings.Cut(kv, "=")
		out.Env.Set = append(out.Env.Set, name)
	}
	out.Env.Export = namesAlone(s.Env.Export)
	out.Source.Given = maps.Clone(s.Source.Given)
	if v, ok := out.Source.Given["export"]; ok {
		out.Source.Given["export"] = namesAlone(v)
	}
	return &out
}

// namesAlone leaves of "ALL,A=1,B" the names. A value may hold a comma: what follows
// the first one goes with it.
func namesAlone(export string) string {
	var names []string
	for part := range strings.SplitSeq(export, ",") {
		name, _, value := strings.Cut(part, "=")
		names = append(names, name)
		if value {
			break
		}
	}
	return strings.Join(names, ",")
}

// shownNode is a node as the API shows it, without jobs that the caller may not see;
// engines are those of the pools.
func (c *call) shownNode(v *control.NodeView, engines map[string]string) api.Node {
	n := &v.Node
	out := api.Node{
		Name: n.Name, Pool: n.Pool, Engine: engines[n.Pool], State: string(n.State), Why: n.Why, Address: n.Address,
		Virtual: n.Virtual, Hosts: n.Hosts, Features: n.Features, Partitions: n.Parts, Path: n.Path, Sockets: n.Sockets,
		CPUs: float64(n.Capacity.CPU) / float64(resource.OneCPU), CPUsUsed: float64(v.Used.CPU) / float64(resource.OneCPU),
		Memory: int64(n.Capacity.Memory), MemoryUsed: int64(v.Used.Memory), Jobs: c.jobNames(v.Jobs),
	}
	if d := v.Drained; d != nil {
		out.Why, out.Since, out.By = d.Reason, d.At, d.By.Name
	}
	if aggregate.Is(n.Name) {
		out.Counted = countedOf(n, v.Used)
	}
	for _, d := range n.Devices {
		out.Devices = append(out.Devices, api.Device{Device: d, Jobs: c.jobNames(v.Held[d.Index])})
	}
	return out
}

// countedOf are the GPUs of a pool as a whole, all of them and then by type.
func countedOf(n *fleet.Node, used resource.Vector) (out []api.Counted) {
	for _, x := range n.Capacity.Named {
		if name, ok := strings.CutPrefix(x.Name, aggregate.Device("")); ok && (name == "gpu" || strings.HasPrefix(name, "gpu:")) {
			out = append(out, api.Counted{Name: name, All: int64(x.Amount), Used: int64(used.Get(x.Name))})
		}
	}
	slices.SortFunc(out, func(a, b api.Counted) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// jobNames are jobs as they are shown, "7_3", without those that may not be seen.
func (c *call) jobNames(ids []job.ID) (out []string) {
	for _, id := range ids {
		name, seen := strconv.FormatUint(uint64(id), 10), true
		c.s.cfg.Plane.Scan(control.Filter{After: id - 1}, func(v *control.View) bool {
			if v.Job.ID == id {
				name, seen = v.Job.Name(), c.MaySee(v)
			}
			return false
		})
		if seen {
			out = append(out, name)
		}
	}
	return out
}
