package control

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/reason"
	"github.com/coxswain-sched/coxswain/reconcile"
	"github.com/coxswain-sched/coxswain/sched"
)

// Submission is a job with the large things that its spec names by hash.
type Submission struct {
	Spec   *job.Spec
	Script []byte   // of a Batch program
	Env    []string // NAME=VALUE of the submitter
	By     job.Actor
}

// Accepted is what became of a submission.
type Accepted struct {
	ID    job.ID // of the job, or of the array and its first task
	Tasks int    // of the array, numbered from ID on; 0: no array
}

// Submit accepts a job, or every task of an array, and returns the first number
// once it is durable. What can never run in this pool is fault.Invalid, a
// *RefusedError: nothing of it is kept.
func (c *Control) Submit(ctx context.Context, s Submission) (Accepted, error) {
	spec := *s.Spec
	if len(spec.Groups) == 0 {
		return Accepted{}, fault.New(fault.Invalid, "a job needs at least one task group")
	}
	if spec.Array != nil && len(spec.Array.Indices) == 0 {
		return Accepted{}, fault.New(fault.Invalid, "an array needs at least one index")
	}
	err := checkText(&spec)
	if err != nil {
		return Accepted{}, err
	}
	if spec.Program.Kind == job.Batch {
		if spec.Program.ScriptHash, err = c.cfg.Store.PutBlob(ctx, s.Script); err != nil {
			return Accepted{}, err
		}
	}
	if spec.Env.Hash, err = c.cfg.Store.PutBlob(ctx, joinEnv(s.Env)); err != nil {
		return Accepted{}, err
	}
	var id job.ID
	err = c.ask(ctx, 0, func(l *loop, answer func(error)) {
		if why := l.core.Feasible(&spec); len(why) > 0 {
			answer(&RefusedError{why})
			return
		}
		id = l.nextNumber()
		l.stage(kindSubmitted, id, submitted{id, &spec}, func() { answer(nil) }, answer)
	})
	if err != nil {
		return Accepted{}, err
	}
	out := Accepted{ID: id}
	if spec.Array != nil {
		out.Tasks = len(spec.Array.Indices)
	}
	return out, nil
}

// checkText refuses bytes that are not UTF-8 where a record of the journal would
// silently hold others.
func checkText(s *job.Spec) error {
	texts := append([]string{s.Name, s.WorkDir, s.Output.Stdout, s.Output.Stderr, s.Output.Stdin}, s.Program.Args...)
	for _, text := range append(texts, s.Env.Set...) {
		if !utf8.ValidString(text) {
			return fault.New(fault.Invalid, "%q is not UTF-8", text).
				Advise("give names and arguments in UTF-8, or set them inside of a script")
		}
	}
	return nil
}

// nextNumber is the first number that no record of the journal or of the batch uses.
func (l *loop) nextNumber() job.ID {
	next := l.state.next
	for _, s := range l.batch {
		if s.rec.Kind == kindSubmitted {
			v, err := decode[submitted](s.rec)
			if err != nil {
				panic(err) // staged by ourselves a moment ago
			}
			n := 1
			if v.Spec.Array != nil {
				n = len(v.Spec.Array.Indices)
			}
			next = v.First + job.ID(n)
		}
	}
	return next
}

// RefusedError is a job that could not run in this pool even if it were empty.
type RefusedError struct{ Reasons []reason.Reason }

// Error lists the reasons.
func (e *RefusedError) Error() string {
	text := ""
	for i, r := range e.Reasons {
		if i > 0 {
			text += "; "
		}
		text += r.String()
	}
	return text
}

// FaultKind is fault.Invalid.
func (e *RefusedError) FaultKind() fault.Kind { return fault.Invalid }

// Cancel ends a job: a pending one at once, a running one by SIGTERM and, after
// grace, SIGKILL (grace 0: SIGKILL at once, negative: the control plane's own).
// It returns when the wish is durable. Cancelling an ended job is no error.
func (c *Control) Cancel(ctx context.Context, id job.ID, by string, grace time.Duration) error {
	if grace < 0 {
		grace = c.cfg.Grace
	}
	return c.ask(ctx, id, func(l *loop, answer func(error)) {
		e, ok := l.state.jobs[id]
		switch {
		case !ok:
			answer(fault.New(fault.NotFound, "there is no job %d", id))
			return
		case e.State.Final():
			answer(nil)
			return
		}
		l.stage(kindCancel, id, cancel{By: by, Grace: grace}, func() {
			if a, ok := l.state.led.Of(id); ok {
				l.dispatch.Stop(reconcile.Ref(a), engine.Stop{Grace: grace, Reason: "cancelled by " + by})
			}
			answer(nil)
		}, answer)
	})
}

// Hold keeps a pending job from starting, or lets it go again.
func (c *Control) Hold(ctx context.Context, id job.ID, by string, on bool) error {
	return c.ask(ctx, id, func(l *loop, answer func(error)) {
		e, ok := l.state.jobs[id]
		switch {
		case !ok:
			answer(fault.New(fault.NotFound, "there is no job %d", id))
		case e.State.Final():
			answer(fault.New(fault.Conflict, "job %s has ended (%s)", e.Name(), e.State))
		default:
			l.stage(kindHold, id, hold{by, on}, func() { answer(nil) }, answer)
		}
	})
}

// Requeue ends a running job and lets it wait for a new attempt; an ended job waits
// again.
func (c *Control) Requeue(ctx context.Context, id job.ID, by string) error {
	return c.ask(ctx, id, func(l *loop, answer func(error)) {
		e, ok := l.state.jobs[id]
		switch {
		case !ok:
			answer(fault.New(fault.NotFound, "there is no job %d", id))
			return
		case e.State == job.Pending:
			answer(nil)
			return
		case e.State.Final() && job.Check(e.State, job.Pending, job.ByUser) != nil:
			answer(fault.New(fault.Conflict, "job %s is %s and cannot run again", e.Name(), e.State))
			return
		}
		l.stage(kindRequeue, id, requeue{by}, func() {
			if a, ok := l.state.led.Of(id); ok {
				l.dispatch.Stop(reconcile.Ref(a), engine.Stop{Grace: l.cfg.Grace, Reason: "requeued by " + by})
			}
			answer(nil)
		}, answer)
	})
}

// Signal sends a signal to a running job and nothing more.
func (c *Control) Signal(ctx context.Context, id job.ID, signal int, to engine.Scope) error {
	return c.ask(ctx, id, func(l *loop, answer func(error)) {
		a, ok := l.state.led.Of(id)
		if !ok {
			answer(fault.New(fault.Conflict, "job %d does not run", id))
			return
		}
		l.dispatch.Signal(reconcile.Ref(a), signal, to)
		answer(nil)
	})
}

// Job returns one job; fault.NotFound if there is none of that number.
func (c *Control) Job(ctx context.Context, id job.ID) (View, error) {
	var v View
	err := c.ask(ctx, 0, func(l *loop, answer func(error)) {
		e, ok := l.state.jobs[id]
		if !ok {
			answer(fault.New(fault.NotFound, "there is no job %d", id))
			return
		}
		v = l.view(e)
		answer(nil)
	})
	if err != nil {
		return View{}, err // the loop may be writing to v
	}
	return v, nil
}

// Jobs returns every job by number, with the number of the last change that the
// list reflects, for Watch.
func (c *Control) Jobs(ctx context.Context) ([]View, uint64, error) {
	var views []View
	var change uint64
	err := c.ask(ctx, 0, func(l *loop, answer func(error)) {
		for _, id := range l.state.order {
			views = append(views, l.view(l.state.jobs[id]))
		}
		change = c.changes.Last()
		answer(nil)
	})
	if err != nil {
		return nil, 0, err // the loop may be writing to views
	}
	return views, change, nil
}

// Reasons returns every gate that keeps a pending job waiting, the first blocker
// first; none for a job that does not wait.
func (c *Control) Reasons(ctx context.Context, id job.ID) ([]reason.Reason, error) {
	var why []reason.Reason
	err := c.ask(ctx, 0, func(l *loop, answer func(error)) {
		e, ok := l.state.jobs[id]
		if !ok {
			answer(fault.New(fault.NotFound, "there is no job %d", id))
			return
		}
		if e.State == job.Pending {
			why = slices.Clone(l.core.Reasons(l.instant(), id))
		}
		answer(nil)
	})
	if err != nil {
		return nil, err // the loop may be writing to why
	}
	return why, nil
}

// Nodes returns the nodes of the pool by name.
func (c *Control) Nodes(ctx context.Context) ([]fleet.Node, error) {
	var nodes []fleet.Node
	err := c.ask(ctx, 0, func(l *loop, answer func(error)) {
		for _, n := range l.nodes {
			nodes = append(nodes, n)
		}
		slices.SortFunc(nodes, func(a, b fleet.Node) int { return compareNames(a.Name, b.Name) })
		answer(nil)
	})
	if err != nil {
		return nil, err // the loop may be writing to nodes
	}
	return nodes, nil
}

// Next waits for changes of jobs after the given number; see event.Log.Next.
func (c *Control) Next(ctx context.Context, after uint64) ([]View, uint64, bool, error) {
	return c.changes.Next(ctx, after)
}

// Check verifies every invariant of the state; for tests.
func (c *Control) Check(ctx context.Context) error {
	return c.ask(ctx, 0, func(l *loop, answer func(error)) { answer(l.state.check()) })
}

func compareNames(a, b string) int {
	if len(a) != len(b) { // v2 before v10
		return len(a) - len(b)
	}
	return slices.Compare([]byte(a), []byte(b))
}

func joinEnv(env []string) []byte {
	var b []byte
	for _, kv := range env {
		b = append(append(b, kv...), 0)
	}
	return b
}

func extended(e *entry, until sched.Instant) sched.Event {
	return sched.Extended{Job: e.ID, Until: until}
}
