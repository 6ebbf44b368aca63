package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Act is something that happens at a time of its own: a request, or an outrage.
type Act struct {
	Name string // unique in a plan
	At   time.Duration
	Do   func(*World)
}

// drawWorkload makes the requests and outrages of a seed.
func (w *World) drawWorkload() []Act {
	s := w.dice.streamFor("workload", "")
	n := 10 + s.intBelow(14)
	span := s.durationBetween(40*time.Second, 4*time.Minute)
	var acts []Act
	var subs []string // submissions so far
	for i := range n {
		name := fmt.Sprintf("r%d", i+1)
		d := w.dice.streamFor("request", name)
		at := d.durationBetween(0, span)
		if i < 3 || d.happensIn(50) {
			subs = append(subs, name)
			acts = append(acts, w.drawSubmission(name, at, slices.Clone(subs), d))
			continue
		}
		acts = append(acts, w.drawChange(name, at, slices.Clone(subs), d))
	}
	acts = append(acts, w.policyActs(span)...)
	acts = append(acts, w.controllerActs(span)...)
	return append(acts, w.drawOutrages(span)...)
}

// drawSubmission is the request to run something new.
func (w *World) drawSubmission(name string, at time.Duration, subs []string, d *stream) Act {
	spec, after := w.specOf(name, subs[:len(subs)-1], d)
	return Act{Name: name + " submits " + describeJob(spec), At: at, Do: func(w *World) {
		if spec := w.resolveNumbers(spec, after); spec != nil {
			w.submitJob(name, spec)
		}
	}}
}

// wait is a dependency on another submission, whose number is not known yet.
type wait struct {
	kind job.DependencyKind
	on   string
	kill *bool
}

// specOf makes a job.
func (w *World) specOf(name string, earlier []string, d *stream) (*job.Spec, *wait) {
	spec := &job.Spec{
		Name: name, Owner: job.Owner{User: pickOne(d, "ann", "bob"), UID: 1000}, Requeue: d.happensIn(50),
		Priority: int64(d.intBelow(3)), TimeLimit: pickOne(d, 0, 30*time.Second, time.Minute, 5*time.Minute), WorkDir: "/work",
		Program: job.Program{Kind: job.Batch, ScriptName: name}, Source: job.Source{Form: "sbatch"},
	}
	groups := 1
	if d.happensIn(12) {
		groups = 2
	}
	for range groups {
		spec.Groups = append(spec.Groups, groupOf(w.machine.nodes[0].Devices != nil, d))
	}
	w.assignOwner(spec, name)
	if e := w.dice.streamFor("retries", name); e.happensIn(20) {
		spec.Retries = &job.Retries{Count: 1 + e.intBelow(3), Backoff: time.Duration(e.intBelow(20)) * time.Second}
	}
	if e := w.dice.streamFor("elastic", name); groups == 1 && e.happensIn(22) {
		makeElastic(spec, e)
	}
	begin := w.start.Add(time.Duration(d.intBelow(180)) * time.Second)
	switch r := d.intBelow(100); {
	case r < 10:
		spec.Held = true
	case r < 20:
		spec.Begin = begin
	case r < 28:
		spec.Deadline = begin.Add(2 * time.Minute)
	case r < 40:
		spec.Array = &job.ArraySpec{Text: "0-3", Indices: []uint32{0, 1, 2, 3}[:2+d.intBelow(3)], MaxRunning: uint32(d.intBelow(3)), Step: 1}
	case r < 58 && len(earlier) > 0:
		kind := pickOne(d, job.After, job.AfterAny, job.AfterOK, job.AfterNotOK, job.Singleton)
		kill := d.happensIn(50)
		return spec, &wait{kind, earlier[d.intBelow(len(earlier))], &kill}
	}
	return spec, nil
}

// makeElastic makes a job that grows and shrinks while it runs.
func makeElastic(spec *job.Spec, d *stream) {
	g := &spec.Groups[0]
	cpus := g.PerTask.CPU
	*g = job.TaskGroup{Elastic: true, Nodes: job.Range{Min: 1, Max: 2 + d.intBelow(2)}, TasksPerNode: 1 + d.intBelow(2), PerTask: g.PerTask}
	if g.TasksPerNode == 2 {
		g.PerTask.CPU = min(cpus, resource.CPUs(2))
	}
	spec.Program = job.Program{Kind: job.Direct, Args: []string{"work"}}
}

// groupOf makes a task group that fits into an empty pool, mostly.
func groupOf(gpus bool, d *stream) job.TaskGroup {
	g := job.TaskGroup{Tasks: job.Count{Want: 1}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(1 + d.intBelow(3))}}}
	switch r := d.intBelow(10); {
	case r < 4:
	case r < 7:
		g.Tasks.Want = 2
		g.Nodes, g.TasksPerNode = job.Range{Min: 2, Max: 2}, 1
	case r < 8:
		g.Tasks.Want = 1 + d.intBelow(3)
		g.PerTask.CPU = resource.CPUs(1)
	case r < 9:
		g.Exclusive = true
	default:
		g.Constraint = job.Constraint{Text: "fast", Alternatives: [][]string{{"fast"}}}
	}
	if gpus && d.happensIn(30) {
		g.PerTask.Devices = []resource.DeviceRequest{{Kind: "gpu", Count: 1}}
	}
	return g
}

// describeJob says in few words what a job asks for.
func describeJob(s *job.Spec) string {
	text := "a job"
	switch {
	case s.Array != nil:
		text = fmt.Sprintf("an array of %d, %d at a time", len(s.Array.Indices), s.Array.MaxRunning)
	case len(s.Groups) > 1:
		text = "a job of two groups"
	case s.Elastic():
		text = "an elastic job"
	case s.Groups[0].Nodes.Min > 1:
		text = "a gang"
	}
	for _, x := range []struct {
		is   bool
		text string
	}{{s.Held, "held"}, {!s.Begin.IsZero(), "to begin later"}, {!s.Deadline.IsZero(), "with a deadline"}, {s.Requeue, "to be requeued"}, {s.Retries != nil, "to be retried"}} {
		if x.is {
			text += ", " + x.text
		}
	}
	return text
}

// resolveNumbers puts the numbers of accepted jobs into a specification; nil if there is
// none yet.
func (w *World) resolveNumbers(spec *job.Spec, after *wait) *job.Spec {
	if after == nil {
		return spec
	}
	c := job.DependencyClause{Kind: after.kind}
	if after.kind != job.Singleton {
		id, ok := w.jobs[after.on]
		if !ok {
			return spec
		}
		c.Jobs = []job.JobRef{{Job: id}}
	}
	out := *spec
	out.Depends = job.Dependency{Clauses: []job.DependencyClause{c}, KillIfNever: after.kill}
	return &out
}
