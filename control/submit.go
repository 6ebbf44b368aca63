package control

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// Submission is a job with the large things that its spec names by hash.
type Submission struct {
	Spec   *job.Spec
	Script []byte   // of a Batch program
	Env    []string // NAME=VALUE of the submitter
	By     job.Actor

	Preview bool              // of an Estimate: what the engine would hand over, too
	Keeping map[string][]byte // of an Estimate and of Fits: secrets that are kept for the owner before the job is submitted
}

// Accepted is the answer to a submission.
type Accepted struct {
	ID    job.ID // of the job, or of the array and its first task
	Tasks int    // of the array, numbered from ID on; 0: no array
	Known bool   // the job was there already: it is the one with the part that the specification has
}

// Submit accepts a job, or every task of an array, and returns the first number once it is
// durable. A job that can never run in its pool is fault.Invalid, a *RefusedError: nothing of it
// is kept. A specification with a Part that a job in memory has is answered with that job.
func (c *Control) Submit(ctx context.Context, s Submission) (Accepted, error) {
	spec := *s.Spec
	if err := checkSpec(&spec, c.cfg.Clock.Now().UnixNano()); err != nil {
		return Accepted{}, err
	}
	if err := checkWhole(&s); err != nil {
		return Accepted{}, err
	}
	err := c.validateDraft(ctx, &engine.JobDraft{Spec: &spec, Script: s.Script, Env: s.Env}, nil)
	if err != nil {
		return Accepted{}, err
	}
	if spec.Program.Kind.HasScript() {
		if spec.Program.ScriptHash, err = c.cfg.Store.PutBlob(ctx, s.Script); err != nil {
			return Accepted{}, err
		}
	}
	if spec.Env.Hash, err = c.cfg.Store.PutBlob(ctx, joinEnv(s.Env)); err != nil {
		return Accepted{}, err
	}
	f, o := c.state.Specs.UseSpec(&spec)
	for range 10 {
		var out Accepted
		v := &state.AcceptedSubmission{Shared: f, OwnDelta: o, Delta: state.PackDelta(&o, &f.Def), Text: state.MustJSON(&o)}
		if v.Past, err = c.lookUp(ctx, o.Depends); err == nil {
			err = c.askLoop(ctx, message{}, func(l *loop, answer func(error)) { l.stageSubmission(v, s.By, &out, answer) })
		}
		switch {
		case err == nil:
			if out.Known {
				c.state.Specs.ReleaseSpec(f)
			}
			return out, nil
		case fault.KindOf(err) == fault.Unavailable:
			return Accepted{}, err // the loop may still take it: out and the form are its own
		case !errors.Is(err, errMoved):
			c.state.Specs.ReleaseSpec(f)
			return Accepted{}, err
		}
	}
	c.state.Specs.ReleaseSpec(f)
	return Accepted{}, fault.New(fault.Unavailable, "the jobs that it depends on could not be looked up")
}

// validateDraft asks the engine of the job's pool whether it ever runs such a job. keeping has secrets that are
// about to be kept.
func (c *Control) validateDraft(ctx context.Context, d *engine.JobDraft, keeping map[string][]byte) error {
	if err := c.checkSecrets(d.Spec, keeping); err != nil {
		return err
	}
	if k, ok := c.pools.EngineFor(d.Spec).(engine.Validator); ok {
		return k.Admit(ctx, d)
	}
	return nil
}

// checkSecrets refuses secrets that the engine of the job's pool cannot hand over, or that its owner
// neither has nor is about to have.
func (c *Control) checkSecrets(s *job.Spec, keeping map[string][]byte) error {
	if len(s.Secrets) == 0 {
		return nil
	}
	if c.cfg.Secret == nil {
		return fault.New(fault.Invalid, "secrets: nobody keeps any here").Advise("start a server (cox up -d), keep them there (cox secret set) and run the job through it")
	}
	if k, ok := c.pools.EngineFor(s).(engine.SecretTaker); !ok || !k.TakesSecrets() {
		return fault.New(fault.Unsupported, "secrets: jobs of this pool cannot have any").
			Advise("use a pool of this machine, or read a file that only you can read")
	}
	for _, one := range s.Secrets {
		value, kept := keeping[one.Name]
		var err error
		if !kept {
			value, err = c.cfg.Secret(s.Owner.UID, &one)
		}
		switch {
		case err != nil:
			return err
		case one.Env != "" && bytes.IndexByte(value, 0) >= 0:
			return fault.New(fault.Invalid, "secret %s has a NUL byte, which no variable can have", one.Name).Advise("hand it over as a file: secrets: [{name: %s, file: %s}]", one.Name, one.Name)
		}
	}
	return nil
}

// errMoved says that a job left memory while a request was on its way.
var errMoved = errors.New("a job left memory")

// stageSubmission stages a submission that was checked and counts its numbers.
func (l *loop) stageSubmission(v *state.AcceptedSubmission, by job.Actor, out *Accepted, answer func(error)) {
	if l.knownPart(v.OwnDelta.Part, out, answer) {
		return
	}
	p, err := l.pools.ForJob(&v.Shared.Spec)
	if err != nil {
		answer(err)
		return
	}
	if why := l.whyNever(v.Shared); p.Known && len(why) > 0 {
		answer(&RefusedError{why})
		return
	}
	if !l.state.KnowsAll(v.OwnDelta.Depends, v.Past) {
		answer(errMoved)
		return
	}
	done, err := l.countSubmission(&v.Shared.Spec, v.TaskCount())
	if err != nil {
		answer(err)
		return
	}
	answered := answer
	answer = func(err error) { done(); answered(err) }
	v.First = l.numbers
	answer = l.noteArrival(v.OwnDelta.Part, v.First, answer)
	out.ID = v.First
	if v.OwnDelta.Array != nil {
		out.Tasks = v.TaskCount()
	}
	l.numbers += job.ID(v.TaskCount())
	if planted.EarlyNumber {
		answer(nil)
		answer = func(error) {}
	}
	l.stageFor(&request{answer: answer}, state.KindSubmitted, v.First, by, v, nil)
}

// whyNever says what keeps a shared specification from fitting into its pool even if that were
// empty. It says nothing until the core has heard of all nodes of the pool: nobody is refused
// for what is not known.
func (l *loop) whyNever(f *state.SharedSpec) []reason.Reason {
	if p := l.pools.ByNameOrFirst(f.Spec.Pool); !p.Delegated && l.reached != l.fleet { // real nodes are told at once
		return nil
	}
	if f.Judged != l.fleet {
		f.Judged, f.Never = l.fleet, l.pools.WhyInfeasible(l.core, &f.Spec)
	}
	return f.Never
}

// checkSpec refuses what no pool could run or no journal could hold.
func checkSpec(s *job.Spec, now int64) error {
	if err := s.Check(); err != nil {
		return fault.New(fault.Invalid, "no job can be like this: %w", err).Advise("give that field another value")
	}
	switch {
	case s.Elastic() && s.Program.Kind != job.Direct:
		return fault.New(fault.Invalid, "only a command can be elastic: nothing would run on the nodes that are added").
			Advise("give the command itself (command:), which every task runs, also those that are added")
	case s.Array != nil && len(s.Array.Indices) > state.MaxTasks:
		return fault.New(fault.Invalid, "an array of %d tasks is too large", len(s.Array.Indices)).
			Advise("submit at most %d tasks at once", state.MaxTasks)
	case !s.Deadline.IsZero() && s.Deadline.UnixNano() <= now:
		return fault.New(fault.Invalid, "the deadline %s has passed", s.Deadline.UTC().Format("2006-01-02T15:04:05")).
			Advise("give a later deadline")
	}
	return checkText(s)
}

// checkWhole refuses NUL characters in scripts and environments: an environment is stored with
// one behind each variable.
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
	if s.Serve != nil {
		for _, p := range []*job.Probe{s.Serve.Startup, s.Serve.Readiness, s.Serve.Liveness} {
			if p == nil {
				continue
			}
			if err := errors.Join(check(p.HTTP), check(p.Exec...)); err != nil {
				return err
			}
		}
	}
	if s.Part != nil {
		if err := check(s.Part.Controller); err != nil {
			return err
		}
	}
	return errors.Join(
		check(s.Name, s.Comment, s.WorkDir, s.Output.Stdout, s.Output.Stderr, s.Output.Stdin),
		check(s.Program.Args...), check(s.Program.Step...), check(s.Program.Client), check(s.Env.Set...), check(s.Env.Export),
	)
}

// lookUp finds the fates in the store that a dependency needs and memory does not have. An
// unknown number is fault.Invalid.
func (c *Control) lookUp(ctx context.Context, d *job.Dependency) (map[job.ID]*state.PastFates, error) {
	var out map[job.ID]*state.PastFates
	if d == nil {
		return nil, nil
	}
	for _, clause := range d.Clauses {
		for _, ref := range clause.Jobs {
			c.state.RLock()
			known := c.state.KnowsFate(ref)
			c.state.RUnlock()
			if known || out[ref.Job] != nil {
				continue
			}
			p, err := state.StoredFates(ctx, c.cfg.Store, ref.Job)
			if err != nil {
				return nil, err
			}
			if _, task := p.FateOf(state.TaskIndex(ref)); len(*p) == 0 || ref.Task != nil && !task {
				return nil, fault.New(fault.Invalid, "the job depends on job %s, which does not exist", ref).
					Advise("correct the number (cox queue and cox history list jobs), or leave the dependency out")
			}
			if out == nil {
				out = map[job.ID]*state.PastFates{}
			}
			out[ref.Job] = p
		}
	}
	return out, nil
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

// countSubmission counts n jobs that are about to be accepted, or refuses them. The caller calls
// done when it is known whether they were: then they are counted as jobs.
func (l *loop) countSubmission(s *job.Spec, n int) (done func(), err error) {
	door := l.state.Submits.LimitDoor(l.state.Policies.CurrentPolicy(), l.coming)
	if door == nil {
		return func() {}, nil
	}
	k := state.SubmitKey(s)
	if why := door.Refuses(k, n); why.Code != reason.None {
		return nil, tooMany(why)
	}
	door.Add(k, n)
	l.coming[k] += n
	return func() {
		if l.coming[k] -= n; l.coming[k] == 0 {
			delete(l.coming, k)
		}
		if d := l.state.Submits.Door; d != nil {
			d.Add(k, -n)
		}
	}, nil
}

func tooMany(why reason.Reason) error {
	return fault.New(fault.Conflict, "%s: %s may have %d waiting and running, has %d, and %d more were submitted", why.Code.Limit(), why.Holder, why.Most, why.Used, why.Need).
		Advise("wait until some have ended, cancel some (cox cancel), or submit fewer at once")
}
