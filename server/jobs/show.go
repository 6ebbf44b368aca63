package jobs

import (
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/health"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec/provenance"
)

// shownJob is a job as the API shows it to the caller. It shares the spec.
func (c *call) shownJob(v *state.View) *api.Job {
	j := &v.Job
	spec := j.Spec
	if c.Allowed(auth.SeeEnvironment, auth.Job(j.Name(), spec.Owner.UID)) != nil {
		spec = withoutValues(spec)
	}
	spec = withDigest(spec, v.Report.Image)
	out := &api.Job{
		ID: j.ID, Name: j.Name(), Array: j.Array, State: j.State.String(), Flags: flagsOf(j.Flags), Attempt: j.Attempt,
		Exit: j.Exit, Asks: asksOf(spec), Spec: spec, Submitted: j.Submitted, Eligible: v.Eligible, Started: j.Started, Ended: j.Ended,
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
	out.Retried, out.Used = v.Retried, v.Report.Used
	if j.State.Final() {
		out.Failure, out.FailedOn = string(v.Report.Failure), v.Report.FailedOn
	}
	out.Moved = poolMoves(v)
	for i := range v.Past {
		p := &v.Past[i]
		out.Past = append(out.Past, api.PastAttempt{
			Attempt: p.Attempt, Started: state.FromNanos(p.Started), Ended: state.FromNanos(p.Ended), Cause: string(p.Cause), Exit: p.Exit,
			Nodes: p.Nodes, Message: p.Message, Retry: p.Retry, Failure: string(p.Failure), FailedOn: p.FailedOn,
		})
	}
	for _, t := range v.Report.Tasks {
		out.Tasks = append(out.Tasks, api.Task{
			Step: t.Step, Rank: t.Rank, Node: t.Node, Running: t.Running, Started: t.Started, Ended: t.Ended, Exit: t.Exit,
			Cause: string(t.Cause), Log: t.Log != "", Name: t.Name,
		})
	}
	return out
}

// poolMoves is how a job moved between pools while it waited; nil: it did not.
func poolMoves(v *state.View) *api.PoolMoves {
	m := &v.PoolMoves
	if m.Count == 0 && m.Under == nil {
		return nil
	}
	out := &api.PoolMoves{Count: m.Count}
	if m.Count > 0 {
		out.Last = &api.PoolMove{From: m.From, To: m.To, At: state.FromNanos(m.At), Why: m.Why}
	}
	if u := m.Under; u != nil {
		out.Under = &api.PoolMove{From: u.From, To: u.To, Why: u.Why}
	}
	if v.Job.State == job.Pending {
		if out.Left = max(state.MostPoolMoves-m.Count, 0); out.Left > 0 && m.Count > 0 {
			out.Next = state.FromNanos(m.At).Add(state.PoolMoveRest)
		}
	}
	return out
}

// withDigest is a specification with the digest of its image, as the last attempt had it.
func withDigest(spec *job.Spec, digest string) *job.Spec {
	if digest == "" {
		return spec
	}
	s, p := *spec, job.Provenance{}
	if spec.Provenance != nil {
		p = *spec.Provenance
		p.Notes = slices.DeleteFunc(slices.Clone(p.Notes), provenance.IsImageNote)
	}
	p.Image, s.Provenance = digest, &p
	return &s
}

// asksOf sums what a specification asks for.
func asksOf(s *job.Spec) *api.Asks {
	d := s.Demand()
	a := &api.Asks{
		Nodes: d.Nodes, Tasks: d.Tasks, CPUs: d.CPUs, Memory: d.Memory, GPUs: d.GPUs, GPUType: d.GPUType,
		TimeLimit: s.TimeLimit.Seconds(), TimeMin: s.TimeMin.Seconds(),
	}
	if most := mostNodes(s); most > a.Nodes {
		a.MostNodes = most
	}
	return a
}

// listedJob is a job as a page of a list shows it. The indices of an array stand with the first of
// its tasks on the page alone: with each of a hundred thousand they would be gigabytes.
func (c *call) listedJob(v *state.View, arrays map[job.ID]bool) *api.Job {
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
func (c *call) idleNodes(v *state.View) (out []api.Idle) {
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

// withoutValues is a specification without the values of variables and the path of its webhook, which
// are for those alone who may see the environment.
func withoutValues(s *job.Spec) *job.Spec {
	if s.Notify == nil && len(s.Env.Set) == 0 && !strings.Contains(s.Env.Export, "=") && !strings.Contains(s.Source.Given["export"], "=") {
		return s
	}
	out := *s
	out.Env.Set, out.Notify = nil, s.Notify.Hidden()
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
