package jobs

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func (s *Service) registerUsage() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{job}/usage", Verb: auth.SeeJob, ID: "getUsage", Tag: "jobs", Owned: true,
		Summary: "What a job used, by step and node",
		About: "CPU time, memory, bytes read and written, GPUs, of the last attempt. Of a job that runs its engine measures it now, " +
			"where it can (local pools, pods, and Slurm with jobacct_gather). The number of an array names a task of it, as with getJob.",
	}, func(c *call, in *JobPath) (*api.Usage, error) {
		v, err := c.findAny(in.Job, auth.SeeJob)
		if err != nil {
			return nil, err
		}
		return c.usageOf(&v)
	})
}

// usageOf is what a job used, or has used so far.
func (c *call) usageOf(v *state.View) (*api.Usage, error) {
	out := &api.Usage{Job: v.Job.ID, Name: v.Job.Name(), State: v.Job.State.String(), Used: v.Report.Used}
	if v.Job.State == job.Running && out.Used == nil {
		if x := c.s.poolSampler(v.Pool); x != nil {
			live, err := x.Usage(c.Ctx(), v.Ref)
			// It ended just now, or its pool does not say.
			if k := fault.KindOf(err); err != nil && k != fault.Conflict && k != fault.NotFound && k != fault.Unsupported && k != fault.Permission {
				return nil, err
			}
			out.Running, out.Used = err == nil, live
		}
	}
	out.Steps = stepsOf(v, out.Used)
	return out, nil
}

// poolSampler measures what jobs of a pool use while they run; nil: its engine cannot.
func (s *Service) poolSampler(pool string) engine.UsageSampler {
	e := s.cfg.Plane.AddedEngine(pool)
	if e == nil {
		return s.cfg.Usage
	}
	x, _ := e.(engine.UsageSampler)
	return x
}

// stepsOf lists the steps of a job: of its tasks, and of what was measured.
func stepsOf(v *state.View, used *rusage.Record) []api.Step {
	out := []api.Step{}
	tasks := v.Report.Tasks // by step
	for len(tasks) > 0 {
		n := 1
		for n < len(tasks) && tasks[n].Step == tasks[0].Step {
			n++
		}
		out = append(out, stepOf(v, tasks[:n], used.Step(tasks[0].Step)))
		tasks = tasks[n:]
	}
	out = append(out, untoldSteps(v, used)...)
	if x := used.Step(engine.ExternStep); x != nil { // commands beside the tasks
		one := api.Step{ID: "extern", Name: "extern", State: job.Completed.String(), Started: v.Job.Started, Ended: v.Job.Ended, Used: x, Tasks: 1}
		if v.Job.Ended.IsZero() {
			one.State = job.Running.String()
		}
		names := claimedNodes(v)
		one.Nodes, one.Count = hostlist.Compress(names), len(names)
		out = slices.Insert(out, min(len(out), 1), one)
	}
	return out
}

// untoldSteps are steps of a job that run and of which no task was reported: in pods, tasks are
// known once they have ended.
func untoldSteps(v *state.View, used *rusage.Record) (out []api.Step) {
	if used == nil || v.Job.State != job.Running {
		return nil
	}
	for i := range used.Steps {
		x := &used.Steps[i]
		told := slices.ContainsFunc(v.Report.Tasks, func(t engine.TaskReport) bool { return t.Step == x.Step })
		if told || x.Running == 0 || x.Step == engine.ExternStep {
			continue
		}
		one := stepOf(v, []engine.TaskReport{{Step: x.Step, Running: true}}, x)
		one.Tasks, one.CPUs = x.Tasks, stepCPUs(v, x.Step, x.Tasks)
		names := claimedNodes(v)
		one.Nodes, one.Count = hostlist.Compress(names), len(names)
		out = append(out, one)
	}
	return out
}

// stepOf is one step, of its tasks.
func stepOf(v *state.View, tasks []engine.TaskReport, used *rusage.Step) api.Step {
	out := api.Step{ID: strconv.Itoa(tasks[0].Step), Tasks: len(tasks), Used: used, State: job.Completed.String()}
	if tasks[0].Step == engine.BatchStep {
		out.ID, out.Name = "batch", "batch"
	}
	if used != nil {
		out.Tasks = max(out.Tasks, used.Tasks) // engines may not tell where each one ran
	}
	var names []string
	running := false
	worst := tasks[0]
	for i := range tasks {
		t := &tasks[i]
		out.Name = cmp.Or(out.Name, t.Name)
		if !slices.Contains(names[max(0, len(names)-1):], t.Node) && !slices.Contains(names, t.Node) {
			names = append(names, t.Node)
		}
		if !t.Started.IsZero() && (out.Started.IsZero() || t.Started.Before(out.Started)) {
			out.Started = t.Started
		}
		if t.Ended.After(out.Ended) {
			out.Ended = t.Ended
		}
		running = running || t.Running
		if t.Exit.Shell() > worst.Exit.Shell() || t.Cause == engine.OutOfMemory && worst.Cause != engine.OutOfMemory {
			worst = *t
		}
	}
	out.Exit = worst.Exit
	out.Nodes, out.Count = hostlist.Compress(names), len(names)
	out.CPUs = stepCPUs(v, tasks[0].Step, out.Tasks)
	if running {
		out.State, out.Ended = job.Running.String(), v.Job.Ended
		return out
	}
	out.State = stepState(v, &worst).String()
	return out
}

// stepCPUs is how many CPUs a step has, of the number of its tasks.
func stepCPUs(v *state.View, step, tasks int) int {
	demand := v.Demand()
	if step == engine.BatchStep {
		return (int(demand.CPUs) + max(demand.Nodes, 1) - 1) / max(demand.Nodes, 1)
	}
	return min(int(demand.CPUs), max(tasks*max(firstGroup(v).CPUsPerTask, 1), 1))
}

// stepState is how a step ended, by that of its tasks that ended worst.
func stepState(v *state.View, worst *engine.TaskReport) job.State {
	switch {
	case worst.Cause == engine.OutOfMemory:
		return job.OutOfMemory
	case worst.Cause == engine.NodeLost:
		return job.NodeFail
	case worst.Exit.OK():
		return job.Completed
	case worst.Exit.Signal != 0 && v.Job.State != job.Failed && v.Job.State != job.Completed:
		return job.Cancelled // with the job
	}
	return job.Failed
}

// claimedNodes are the nodes of a job, in the order of its ranks.
func claimedNodes(v *state.View) (names []string) {
	for _, c := range v.Claims {
		if !slices.Contains(names, c.Node) {
			names = append(names, c.Node)
		}
	}
	return names
}

// usedSummary is a record without what it has of each node and step.
func usedSummary(v *state.View) string {
	if v.Report.Used == nil {
		return ""
	}
	short := *v.Report.Used
	short.Nodes, short.Steps = nil, nil
	return cellJSON(&short)
}

// stepsCell is the column of a job's steps.
func stepsCell(v *state.View) string {
	if len(v.Report.Tasks) == 0 {
		return ""
	}
	return cellJSON(stepsOf(v, v.Report.Used))
}

func cellJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("column: " + err.Error()) // plain data
	}
	return string(b)
}
