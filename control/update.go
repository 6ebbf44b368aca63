package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// field is one thing that an Update changes. Those that are not always changeable
// change only while a job waits.
type field struct {
	name   string
	always bool
	set    func(*job.Spec)
}

// partition is the field that another scheduler changes of a job in its queue.
const partition = "partition"

// isHandedOver reports whether the field was handed over to another scheduler with the job.
func (f *field) isHandedOver() bool {
	return !f.always || f.name == "time limit" || f.name == "priority" || f.name == "nice"
}

// changedFields lists what an update changes.
func (u *Update) changedFields() (out []field) {
	add := func(given bool, name string, always bool, set func(*job.Spec)) {
		if given {
			out = append(out, field{name, always, set})
		}
	}
	groups := func(set func(*job.TaskGroup)) func(*job.Spec) {
		return func(s *job.Spec) {
			for i := range s.Groups {
				set(&s.Groups[i])
			}
		}
	}
	add(u.Name != nil, "name", true, func(s *job.Spec) { s.Name = *u.Name })
	add(u.Comment != nil, "comment", true, func(s *job.Spec) { s.Comment = *u.Comment })
	add(u.Account != nil, "account", false, func(s *job.Spec) { s.Account = *u.Account })
	add(u.Partitions != nil, partition, false, func(s *job.Spec) { s.Partitions = slices.Clone(*u.Partitions) })
	add(u.QOS != nil, "qos", false, func(s *job.Spec) { s.QOS = *u.QOS })
	add(u.TimeLimit != nil, "time limit", true, func(s *job.Spec) { s.TimeLimit = *u.TimeLimit })
	add(u.TimeMin != nil, "least time", false, func(s *job.Spec) { s.TimeMin = *u.TimeMin })
	add(u.Begin != nil, "begin", false, func(s *job.Spec) { s.Begin = *u.Begin })
	add(u.Deadline != nil, "deadline", true, func(s *job.Spec) { s.Deadline = *u.Deadline })
	add(u.Depends != nil, "dependency", false, func(s *job.Spec) { s.Depends = *u.Depends })
	add(u.Priority != nil, "priority", true, func(s *job.Spec) { s.Priority = *u.Priority })
	add(u.Nice != nil, "nice", true, func(s *job.Spec) { s.Nice = *u.Nice })
	add(u.Requeue != nil, "requeue", true, func(s *job.Spec) { s.Requeue = *u.Requeue })
	add(u.MaxRunning != nil, "limit of running tasks", true, func(*job.Spec) {})
	add(u.Nodes != nil, "nodes", false, groups(func(g *job.TaskGroup) { g.Nodes = *u.Nodes }))
	add(u.NodeList != nil, "node list", false, groups(func(g *job.TaskGroup) { g.NodeList = slices.Clone(*u.NodeList) }))
	add(u.Exclude != nil, "excluded nodes", false, groups(func(g *job.TaskGroup) { g.Exclude = slices.Clone(*u.Exclude) }))
	add(u.Constraint != nil, "features", false, groups(func(g *job.TaskGroup) { g.Constraint = *u.Constraint }))
	return out
}

// checkFields refuses an update that no job could take.
func (u *Update) checkFields() error {
	switch {
	case len(u.changedFields()) == 0:
		return fault.New(fault.Invalid, "the update changes nothing").Advise("name a field to change")
	case u.TimeLimit != nil && *u.TimeLimit < 0, u.TimeMin != nil && *u.TimeMin < 0:
		return fault.New(fault.Invalid, "a time limit cannot be negative").Advise("0 is no limit")
	case u.Nodes != nil && (u.Nodes.Min < 1 || u.Nodes.Max != 0 && u.Nodes.Max < u.Nodes.Min):
		return fault.New(fault.Invalid, "%d to %d nodes are no range", u.Nodes.Min, u.Nodes.Max).Advise("give at least one node, and no smaller maximum than minimum")
	}
	var s job.Spec
	for _, f := range u.changedFields() {
		f.set(&s)
	}
	return checkText(&s)
}

// askUpdate stages the new specification of a job.
func (l *loop) askUpdate(w *changeRequest, e *state.JobRecord, req *request, u Update) error {
	if e.State.Final() {
		return fault.New(fault.Conflict, "job %s has ended (%s)", e.Name(), e.State)
	}
	spec := *state.ViewOf(e).Job.Spec
	spec.Groups = slices.Clone(spec.Groups)
	v := state.Update{State: state.StatePointer(e.State)}
	ref, altered := w.altered[e.ID]
	altered = altered && e.State.Holds() && reconcile.Ref(e.Allocation()) == ref
	if err := w.bars[e.ID]; err != nil && e.WaitsInPool() {
		return err
	}
	for _, f := range u.changedFields() {
		there := altered && f.name == partition
		if e.WaitsInPool() && f.isHandedOver() && !there {
			return e.RefuseHandedOver(f.name)
		}
		if !f.always && e.State != job.Pending && !there {
			return fault.New(fault.Conflict, "the %s of job %s cannot change any more: it is %s", f.name, e.Name(), e.State)
		}
		f.set(&spec)
		spec.Chosen = spec.Chosen.Without(f.name)
		v.Fields = append(v.Fields, f.name)
	}
	if err := l.checkUpdate(e, u, &spec); err != nil {
		return err
	}
	if err := w.bars[e.ID]; err != nil && e.State == job.Pending {
		return err
	}
	if u.MaxRunning != nil {
		v.MaxRunning = u.MaxRunning
	}
	if u.Priority != nil || u.Nice != nil {
		v.Queue = &state.QueuePlace{Priority: spec.Priority - spec.Nice, At: e.QueuedAt}
	}
	bare, o := state.SplitSpec(spec)
	o.Array = nil // an array has it once
	v.Own, v.Spec = &o, state.MustJSON(&bare)
	l.stageFor(req, state.KindUpdate, e.ID, w.by, v, func() {
		l.state.Depend.AddFates(w.past)
		if u.TimeLimit != nil {
			l.relimitAttempt(e)
		}
	})
	return nil
}

// validateUpdate asks the engines of waiting jobs whether they ever run the jobs as the update
// makes them.
func (c *Control) validateUpdate(ctx context.Context, u *Update, ids []job.ID) (map[job.ID]error, error) {
	out, judged := map[job.ID]error{}, map[*state.SharedSpec]error{}
	for _, id := range ids {
		c.state.RLock()
		e := c.state.Jobs[id]
		if e == nil || e.State != job.Pending {
			c.state.RUnlock()
			continue
		}
		f, spec := e.Shared, job.Spec{}
		why, again := judged[f]
		if !again {
			spec = *state.ViewOf(e).Job.Spec
		}
		c.state.RUnlock()
		if again {
			out[id] = why
			continue
		}
		k, ok := c.pools.EngineFor(&spec).(engine.Validator)
		if !ok {
			continue
		}
		spec.Groups = slices.Clone(spec.Groups)
		for _, change := range u.changedFields() {
			change.set(&spec)
		}
		var script []byte
		if hash := spec.Program.ScriptHash; hash != "" {
			var err error
			if script, err = c.cfg.Store.Blob(ctx, hash); err != nil {
				return nil, err
			}
		}
		judged[f] = k.Admit(ctx, &engine.JobDraft{Spec: &spec, Script: script})
		out[id] = judged[f]
	}
	return out, nil
}

// alterHandedOver has other schedulers change the jobs of an update that are in their queues, if
// the partition is all that changes there. Their refusals are in w.bars.
func (c *Control) alterHandedOver(ctx context.Context, w *changeRequest, u *Update) {
	if u.Partitions == nil || slices.ContainsFunc(u.changedFields(), func(f field) bool { return f.isHandedOver() && f.name != partition }) {
		return
	}
	w.altered = map[job.ID]engine.Ref{}
	for _, id := range w.ids {
		c.state.RLock()
		e := c.state.Jobs[id]
		if e == nil || !e.WaitsInPool() {
			c.state.RUnlock()
			continue
		}
		name, pool, ref, spec := e.Name(), e.Last.Pool, reconcile.Ref(e.Allocation()), job.Spec{Pool: e.Last.Pool}
		c.state.RUnlock()
		k, ok := c.pools.EngineFor(&spec).(engine.Alterer)
		if !ok {
			continue
		}
		err := k.Alter(ctx, ref, engine.Alteration{Partitions: *u.Partitions})
		if err == nil {
			w.altered[id] = ref
			continue
		}
		w.bars[id] = fault.New(fault.KindOf(err), "the partition of job %s was not changed in pool %s: %w", name, pool, err).
			Advise("%s", cmp.Or(fault.Remedy(err), fmt.Sprintf("take it back and change it: cox hold %s, then the change, then cox release %[1]s", name)))
	}
}

// checkUpdate refuses an update that this job cannot take.
func (l *loop) checkUpdate(e *state.JobRecord, u Update, spec *job.Spec) error {
	now := l.cfg.Clock.Now()
	if err := spec.Check(); err != nil {
		return fault.New(fault.Invalid, "job %s cannot be changed to this: %w", e.Name(), err).Advise("give that field another value")
	}
	switch {
	case u.MaxRunning != nil && e.Array == nil:
		return fault.New(fault.Invalid, "job %s is not part of an array", e.Name()).Advise("the limit of running tasks is an array's; leave it out")
	case u.Deadline != nil && !u.Deadline.IsZero() && !u.Deadline.After(now):
		return fault.New(fault.Invalid, "the deadline %s has passed", u.Deadline.UTC().Format(time.RFC3339)).Advise("give a later deadline")
	case u.Depends != nil && l.state.DependsOnItself(e, u.Depends):
		return fault.New(fault.Invalid, "job %s would wait for itself with the dependency %s", e.Name(), u.Depends).
			Advise("leave out the job that itself depends on %s", e.Name())
	case e.State.Holds() && u.TimeLimit != nil && isLongerLimit(*u.TimeLimit, e.TimeLimit()) && !l.canRelimit(e):
		return fault.New(fault.Unsupported, "the time limit of job %s cannot be raised while it runs: its engine keeps the one that it began with", e.Name()).
			Advise("requeue the job with a longer limit")
	}
	if e.State == job.Pending {
		if why := l.pools.WhyInfeasible(l.core, spec); len(why) > 0 {
			return &RefusedError{why}
		}
	}
	return nil
}

// canRelimit reports whether the engine of a job can change its time limit while it runs.
func (l *loop) canRelimit(e *state.JobRecord) bool {
	_, ok := l.pools.ByNameOrFirst(e.Last.Pool).Engine.(engine.Relimiter)
	return ok
}

// relimitAttempt tells the engine the present time limit of a job that runs.
func (l *loop) relimitAttempt(e *state.JobRecord) {
	if !e.State.Holds() || e.WaitsInPool() {
		return
	}
	for _, ref := range l.state.RunningRefs(e) {
		l.callsFor(e).Relimit(ref, e.TimeLimit())
	}
}

// isLongerLimit reports whether the limit a is longer than b; 0 is no limit.
func isLongerLimit(a, b time.Duration) bool { return b != 0 && (a == 0 || a > b) }
