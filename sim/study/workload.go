package study

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sim/trace"
)

// Limits says which time limit a job has.
type Limits string

// The ways of giving limits.
const (
	Recorded Limits = "recorded" // what it asked for; where the trace does not say, as rounded
	Rounded  Limits = "rounded"  // its run time, rounded up to what people ask for
	Exact    Limits = "exact"    // its run time
	NoLimits Limits = "none"
)

// usual are the time limits that people ask for.
var usual = []time.Duration{
	5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 48 * time.Hour, 96 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour, 30 * 24 * time.Hour,
	60 * 24 * time.Hour, 120 * 24 * time.Hour, 365 * 24 * time.Hour,
}

func (l Limits) limitOf(j *trace.Job) time.Duration {
	switch {
	case l == NoLimits:
		return 0
	case l == Exact:
		return j.Run
	case l == Recorded && j.Limit > 0:
		return j.Limit
	}
	for _, u := range usual {
		if j.Run <= u {
			return u
		}
	}
	return j.Run
}

// shapes makes specifications out of records and shares those that are alike.
type shapes struct {
	qosOf   func(account, user string) string // of those who name none
	limits  Limits
	perNode int // GPUs of the largest node
	cpus    int // of the largest node
	known   map[shapeKey]*job.Spec
}

type shapeKey struct {
	cpus, gpus, milli int
	limit             time.Duration
	user, group       string
}

func newShapes(nodes []fleet.Node, limits Limits) *shapes {
	s := &shapes{limits: limits, known: map[shapeKey]*job.Spec{}}
	for _, n := range nodes {
		s.perNode = max(s.perNode, len(n.Devices))
		s.cpus = max(s.cpus, int(n.Capacity.CPU/resource.OneCPU))
	}
	return s
}

// specOf is what a record asks for: GPUs on as few nodes as can be, whole nodes first;
// processors on one machine if it is large enough, else on whole machines and a rest.
func (s *shapes) specOf(j *trace.Job) *job.Spec {
	key := shapeKey{j.CPUs, j.GPUs, j.Milli, s.limits.limitOf(j), j.User, j.Group}
	if known := s.known[key]; known != nil {
		return known
	}
	spec := &job.Spec{TimeLimit: key.limit, Account: j.Group, QOS: s.qosOf(j.Group, j.User), Owner: job.Owner{User: j.User}, Requeue: true}
	width, most := j.GPUs, s.perNode
	unit := func(g *job.TaskGroup, n int) {
		r := resource.DeviceRequest{Kind: "gpu", Count: n}
		if j.Milli > 0 {
			r.Share = resource.Share(j.Milli)
		}
		g.PerTask.Devices = []resource.DeviceRequest{r}
		g.PerTask.CPU = resource.CPUs(j.CPUs)
	}
	if j.GPUs == 0 {
		width, most = j.CPUs, s.cpus
		unit = func(g *job.TaskGroup, n int) { g.PerTask.CPU = resource.CPUs(n) }
	}
	most = max(1, most)
	if whole := width / most; whole > 0 {
		g := job.TaskGroup{Tasks: job.Count{Want: whole}, TasksPerNode: 1}
		if whole > 1 {
			g.Nodes = job.Range{Min: whole, Max: whole}
		}
		unit(&g, most)
		spec.Groups = append(spec.Groups, g)
	}
	if rest := width % most; rest > 0 {
		g := job.TaskGroup{Tasks: job.Count{Want: 1}}
		unit(&g, rest)
		spec.Groups = append(spec.Groups, g)
	}
	s.known[key] = spec
	return spec
}

// Specs makes specifications out of the records of a trace, for nodes like these. Jobs that are alike
// share one.
func Specs(nodes []fleet.Node, limits Limits) func(*trace.Job) *job.Spec {
	s := newShapes(nodes, limits)
	s.qosOf = defaultQOS(nil)
	return s.specOf
}
