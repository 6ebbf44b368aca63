package control

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/eligible"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/store"
)

// Submission is a job with the large things that its spec names by hash.
type Submission struct {
	Spec   *job.Spec
	Script []byte   // of a Batch program
	Env    []string // NAME=VALUE of the submitter
	By     job.Actor

	Preview bool // of an Estimate: what the engine would hand over, too
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
	if err := checkSpec(&spec, c.cfg.Clock.Now().UnixNano()); err != nil {
		return Accepted{}, err
	}
	if err := checkWhole(&s); err != nil {
		return Accepted{}, err
	}
	err := c.validateDraft(ctx, &engine.Draft{Spec: &spec, Script: s.Script, Env: s.Env})
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
	f, o := c.state.specs.useSpec(&spec)
	for range 10 {
		var out Accepted
		v := &acceptedSubmission{shared: f, ownDelta: o, delta: packDelta(&o, &f.def), text: mustJSON(&o)}
		if v.past, err = c.lookUp(ctx, o.Depends); err == nil {
			err = c.askLoop(ctx, message{}, func(l *loop, answer func(error)) { l.stageSubmission(v, s.By, &out, answer) })
		}
		switch {
		case err == nil:
			return out, nil
		case fault.KindOf(err) == fault.Unavailable:
			return Accepted{}, err // the loop may still take it: out and the form are its own
		case !errors.Is(err, errMoved):
			c.state.specs.releaseSpec(f)
			return Accepted{}, err
		}
	}
	c.state.specs.releaseSpec(f)
	return Accepted{}, fault.New(fault.Unavailable, "the jobs that it depends on could not be looked up")
}

// validateDraft asks the engine of the job's pool whether it ever runs such a job.
func (c *Control) validateDraft(ctx context.Context, d *engine.Draft) error {
	if k, ok := c.engineFor(d.Spec).(engine.Doorkeeper); ok {
		return k.Admit(ctx, d)
	}
	return nil
}

// engineFor is the engine of a job's pool; nil: there is no such pool, and it is refused for
// that.
func (c *Control) engineFor(spec *job.Spec) engine.Engine {
	if spec.Pool != "" && c.pools.byName(spec.Pool) == nil {
		return nil
	}
	return c.pools.byNameOrFirst(spec.Pool).Engine
}

// errMoved says that a job left memory while a request was on its way.
var errMoved = errors.New("a job left memory")

// stageSubmission stages a submission that was checked and counts its numbers.
func (l *loop) stageSubmission(v *acceptedSubmission, by job.Actor, out *Accepted, answer func(error)) {
	p, err := l.pools.forJob(&v.shared.spec)
	if err != nil {
		answer(err)
		return
	}
	if why := l.whyNever(v.shared); p.known && len(why) > 0 {
		answer(&RefusedError{why})
		return
	}
	if !l.state.knowsAll(v.ownDelta.Depends, v.past) {
		answer(errMoved)
		return
	}
	done, err := l.countSubmission(&v.shared.spec, v.taskCount())
	if err != nil {
		answer(err)
		return
	}
	answered := answer
	answer = func(err error) { done(); answered(err) }
	v.first = l.numbers
	out.ID = v.first
	if v.ownDelta.Array != nil {
		out.Tasks = v.taskCount()
	}
	l.numbers += job.ID(v.taskCount())
	if planted.EarlyNumber {
		answer(nil)
		answer = func(error) {}
	}
	l.stageFor(&request{answer: answer}, kindSubmitted, v.first, by, v, nil)
}

// whyNever says what keeps a form from fitting into its pool while that is empty. Nothing
// does as long as the core has not heard of all its nodes: what cannot be known is not refused.
func (l *loop) whyNever(f *sharedSpec) []reason.Reason {
	if p := l.pools.byNameOrFirst(f.spec.Pool); !p.Delegated && l.reached != l.fleet { // real nodes are told at once
		return nil
	}
	if f.judged != l.fleet {
		f.judged, f.never = l.fleet, l.whyInfeasible(&f.spec)
	}
	return f.never
}

// maxTasks bounds an array: each task is a job of its own from the beginning.
const maxTasks = 1_000_000

// checkSpec refuses what no pool could run or no journal could hold.
func checkSpec(s *job.Spec, now int64) error {
	if err := s.Check(); err != nil {
		return fault.New(fault.Invalid, "no job can be like this: %w", err).Advise("give that field another value")
	}
	switch {
	case s.Elastic() && s.Program.Kind == job.Batch:
		return fault.New(fault.Invalid, "a batch script cannot be elastic: nothing would run on the nodes that are added").
			Advise("give the command itself (command:), which every task runs, also those that are added")
	case s.Array != nil && len(s.Array.Indices) > maxTasks:
		return fault.New(fault.Invalid, "an array of %d tasks is too large", len(s.Array.Indices)).
			Advise("submit at most %d tasks at once", maxTasks)
	case !s.Deadline.IsZero() && s.Deadline.UnixNano() <= now:
		return fault.New(fault.Invalid, "the deadline %s has passed", s.Deadline.UTC().Format("2006-01-02T15:04:05")).
			Advise("give a later deadline")
	}
	return checkText(s)
}

// checkWhole refuses NUL characters where they would end or split what they stand in:
// an environment is kept with one behind each variable.
func checkWhole(s *Submission) error {
	if bytes.IndexByte(s.Script, 0) >= 0 {
		return fault.New(fault.Invalid, "the script has a NUL character: it is a binary file").
			Advise("submit a script that starts it: cox submit -- PROGRAM")
	}
	for _, kv := range s.Env {
		if strings.IndexByte(kv, 0) >= 0 {
			name, _, _ := strings.Cut(kv, "=")
			return fault.New(fault.Invalid, "the variable %.40q of the environment has a NUL character", name).
				Advise("leave the variable out: no process can have it")
		}
	}
	return nil
}

// checkText refuses bytes that are not UTF-8 where a record of the journal would
// silently hold others, and NUL characters, which no argument and no file name can have.
func checkText(s *job.Spec) error {
	check := func(texts ...string) error {
		for _, text := range texts {
			if !utf8.ValidString(text) {
				return fault.New(fault.Invalid, "%q is not UTF-8", text).
					Advise("give names and arguments in UTF-8, or set them inside of a script")
			}
			if strings.IndexByte(text, 0) >= 0 {
				return fault.New(fault.Invalid, "%.40q has a NUL character", text).
					Advise("leave it out: names and arguments end at it")
			}
		}
		return nil
	}
	return errors.Join(
		check(s.Name, s.Comment, s.WorkDir, s.Output.Stdout, s.Output.Stderr, s.Output.Stdin),
		check(s.Program.Args...), check(s.Env.Set...), check(s.Env.Export),
	)
}

// lookUp finds in the store what a dependency names and memory does not know. An
// unknown number is fault.Invalid.
func (c *Control) lookUp(ctx context.Context, d *job.Dependency) (map[job.ID]*pastFates, error) {
	var out map[job.ID]*pastFates
	if d == nil {
		return nil, nil
	}
	for _, clause := range d.Clauses {
		for _, ref := range clause.Jobs {
			c.state.RLock()
			known := c.state.knowsFate(ref)
			c.state.RUnlock()
			if known || out[ref.Job] != nil {
				continue
			}
			p, err := storedFates(ctx, c.cfg.Store, ref.Job)
			if err != nil {
				return nil, err
			}
			if _, task := p.fateOf(taskIndex(ref)); len(*p) == 0 || ref.Task != nil && !task {
				return nil, fault.New(fault.Invalid, "it depends on job %s, which does not exist", ref).
					Advise("check the number with squeue or sacct, or leave the dependency out")
			}
			if out == nil {
				out = map[job.ID]*pastFates{}
			}
			out[ref.Job] = p
		}
	}
	return out, nil
}

func taskIndex(ref job.JobRef) uint32 {
	if ref.Task == nil {
		return 0
	}
	return *ref.Task
}

// knowsAll reports whether everything that a dependency names is in memory or in what
// was looked up.
func (s *state) knowsAll(d *job.Dependency, found map[job.ID]*pastFates) bool {
	if d == nil {
		return true
	}
	for _, c := range d.Clauses {
		for _, ref := range c.Jobs {
			if found[ref.Job] == nil && !s.knowsFate(ref) {
				return false
			}
		}
	}
	return true
}

// storedFates reads from the store what became of a job or of the tasks of an array; an
// empty past if there is none.
func storedFates(ctx context.Context, st store.Store, id job.ID) (*pastFates, error) {
	p := pastFates{}
	note := func(row store.JobRow) error {
		var s job.State
		if err := s.UnmarshalText([]byte(row.State)); err != nil {
			return err
		}
		i := uint32(0)
		if row.Array != 0 {
			i = uint32(row.Task)
		}
		p[i] = eligible.Fate{State: s, Started: row.Started, Ended: row.Ended}
		return nil
	}
	row, err := st.Job(ctx, uint64(id))
	switch {
	case fault.KindOf(err) == fault.NotFound:
	case err != nil:
		return nil, err
	case row.Array == uint64(id):
		return &p, st.History(ctx, store.Query{Array: row.Array}, note)
	case row.Array == 0:
		return &p, note(row)
	default: // a task, by the number of its own
		p[0] = eligible.Fate{}
		if err := note(row); err != nil {
			return nil, err
		}
		p[0] = p[uint32(row.Task)]
	}
	return &p, nil
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
