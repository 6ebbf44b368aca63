package server

import (
	"strconv"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/resource"
)

// shown is a job as the API shows it. It shares the spec.
func shown(v *control.View) *api.Job {
	j := &v.Job
	out := &api.Job{
		ID: j.ID, Name: j.Name(), Array: j.Array, State: j.State.String(), Flags: flagsOf(j.Flags), Attempt: j.Attempt,
		Exit: j.Exit, Spec: j.Spec, Submitted: j.Submitted, Eligible: v.Eligible, Started: j.Started, Ended: j.Ended,
		Priority: v.Priority, Pool: v.Pool, Files: v.Report.Files, Message: message(v), StartsBy: v.StartsBy,
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
			claim.Devices = append(claim.Devices, d.Index)
		}
		out.Claims = append(out.Claims, claim)
	}
	for _, t := range v.Report.Tasks {
		out.Tasks = append(out.Tasks, api.Task{
			Step: t.Step, Rank: t.Rank, Node: t.Node, Running: t.Running, Started: t.Started, Ended: t.Ended, Exit: t.Exit,
			Cause: string(t.Cause), Log: t.Log != "",
		})
	}
	return out
}

// shownNode is a node as the API shows it; names says how jobs are shown, and leaves
// out those that the caller may not see.
func (c *call) shownNode(v *control.NodeView) api.Node {
	n := &v.Node
	out := api.Node{
		Name: n.Name, Pool: n.Pool, Engine: c.s.engineOf(n.Pool), State: string(n.State), Why: n.Why, Address: n.Address,
		Virtual: n.Virtual, Features: n.Features, Partitions: n.Parts, Path: n.Path, Sockets: n.Sockets,
		CPUs: float64(n.Capacity.CPU) / float64(resource.OneCPU), CPUsUsed: float64(v.Used.CPU) / float64(resource.OneCPU),
		Memory: int64(n.Capacity.Memory), MemoryUsed: int64(v.Used.Memory), Jobs: c.jobNames(v.Jobs),
	}
	if d := v.Drained; d != nil {
		out.Why, out.Since, out.By = d.Reason, d.At, d.By.Name
	}
	for _, d := range n.Devices {
		out.Devices = append(out.Devices, api.Device{Device: d, Jobs: c.jobNames(v.Held[d.Index])})
	}
	return out
}

// jobNames are jobs as they are shown, "7_3", without those that may not be seen.
func (c *call) jobNames(ids []job.ID) (out []string) {
	for _, id := range ids {
		name, seen := strconv.FormatUint(uint64(id), 10), true
		c.s.cfg.Plane.Scan(control.Filter{After: id - 1}, func(v *control.View) bool {
			if v.Job.ID == id {
				name, seen = v.Job.Name(), c.sees(v)
			}
			return false
		})
		if seen {
			out = append(out, name)
		}
	}
	return out
}

func (s *Server) engineOf(pool string) string {
	for _, p := range s.cfg.Pools {
		if p.Name == pool {
			return p.Engine
		}
	}
	return ""
}
