package slurm

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs"
	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Launch takes an attempt: it is on disk when it returns, and sent soon after.
func (e *Engine) Launch(ctx context.Context, l *engine.Launch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	placed := e.placeLaunch(l)
	w, err := e.checkLaunch(ctx, placed)
	if err != nil {
		return err
	}
	if err := e.makeUpload(l); err != nil {
		return err
	}
	o := &order{Job: placed.Job, Claims: l.Claims, Avoid: l.Avoid, Script: l.Script, Env: placed.Env, Grace: l.Grace, Token: e.log.cluster + randomWord()[:8], Digest: kit.LaunchDigest(l), Time: time.Now()}
	if placed.Job.Spec.Serve != nil {
		o.Ports = e.cfg.ServicePorts
	}
	if err := e.acceptLaunch(l.Ref, o, w, l.Secrets); err != nil {
		return err
	}
	return e.log.Sync()
}

func (e *Engine) acceptLaunch(ref engine.Ref, o *order, w *sbatchargs.Job, given []engine.Secret) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return kit.Closed(engineName)
	}
	if a := e.attempts[ref]; a != nil {
		if a.digest != o.Digest {
			return fault.New(fault.Conflict, "attempt %s was launched before, as something else", ref)
		}
		return nil
	}
	if e.log.IsFenced(ref) {
		return fault.New(fault.Conflict, "attempt %s was given up or forgotten", ref)
	}
	if err := e.Refuse(ref, o.Claims); err != nil {
		return err
	}
	if err := e.secrets.Keep(ref, given); err != nil {
		return engine.Unwritten(ref, err)
	}
	if err := e.log.Append(&entry{Kind: launched, Ref: ref, Launch: o}); err != nil {
		return engine.Unwritten(ref, err)
	}
	a := e.newAttempt(ref, o)
	a.sbatch = w
	e.attempts[ref] = a
	e.cache.Publish(a.report)
	e.wg.Go(func() { e.driveAttempt(a) })
	return nil
}

// checkLaunch refuses what cannot be handed over, and says the rest in sbatch's words.
func (e *Engine) checkLaunch(ctx context.Context, l *engine.Launch) (*sbatchargs.Job, error) {
	refused := func(err error) (*sbatchargs.Job, error) {
		return nil, fault.New(fault.KindOf(err), "launch of attempt %s: %w", l.Ref, err).Advise("%s", fault.Remedy(err))
	}
	if l.Job == nil || l.Job.Spec == nil || len(l.Claims) == 0 {
		return refused(fault.New(fault.Invalid, "a job and claims are needed"))
	}
	if l.Adds != nil {
		return refused(fault.New(fault.Unsupported, "a gang cannot grow or shrink on Slurm"))
	}
	if err := e.checkSubmittable(l.Job.Spec, l.Script, l.Env); err != nil {
		return refused(err)
	}
	if e.cfg.Placed {
		switch name, err := e.firstUnknownNode(ctx, l.Claims); {
		case err != nil:
			return nil, err
		case name != "":
			return refused(fault.New(fault.Invalid, "there is no node %q in pool %s", name, e.cfg.Pool))
		}
	}
	w, err := e.cfg.avoiding(l.Avoid).Build(l.Job, l.Ref, l.Claims, l.Script)
	if err != nil {
		return refused(err)
	}
	return w, nil
}

// checkSubmittable refuses a job that cannot be handed over wherever it is to run, but for what Slurm has
// no words for.
func (e *Engine) checkSubmittable(s *job.Spec, script []byte, env []string) error {
	if err := e.owners.checkMayOwn(s.Owner); err != nil {
		return err
	}
	if e.cfg.Identity.Mode == AsUID && s.Nice < 0 {
		return engine.About(fault.New(fault.Permission, "a negative nice would be asked for with root's rights in pool %s", e.cfg.Pool).Advise("leave it out"), "nice")
	}
	refuse := func(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }
	switch {
	case s.Program.Kind == job.Batch && len(script) == 0:
		return refuse("the script is empty")
	case s.Program.Kind == job.Direct && len(s.Program.Args) == 0:
		return refuse("no command is given")
	case !s.Program.Kind.Known():
		return refuse("%q is no kind of program", s.Program.Kind)
	case s.Elastic():
		return engine.About(fault.New(fault.Unsupported, "a gang cannot grow or shrink on Slurm").Advise("give a fixed number of nodes"), "elastic")
	case len(s.Groups) == 0:
		return refuse("the job has no group of tasks")
	case !filepath.IsAbs(s.WorkDir):
		return engine.About(refuse("the working directory %q is not absolute", s.WorkDir), "chdir", "workdir")
	case slices.ContainsFunc(env, func(v string) bool { return strings.ContainsRune(v, 0) }):
		return refuse("the environment holds a NUL byte")
	}
	if err := e.checkSecrets(s.Secrets); err != nil {
		return err
	}
	return e.checkServe(s.Serve)
}

// sbatchSettings is what the pool says of how a job is put to sbatch.
func (c *Config) sbatchSettings() sbatchargs.Settings {
	return sbatchargs.Settings{Options: c.Options, Placed: c.Placed, Containers: c.Containers}
}

// avoiding is sbatchSettings for a job that slurmctld is to keep off some nodes.
func (c *Config) avoiding(nodes []string) sbatchargs.Settings {
	s := c.sbatchSettings()
	s.Avoid = nodes
	return s
}

// renderSubmission is an attempt as it is handed over: its job as sbatch takes it (package
// sbatchargs), with its lock added (driver/slurm/script).
func (e *Engine) renderSubmission(a *attempt) (*site.Submission, error) {
	o := a.order
	w := a.sbatch
	if w == nil {
		var err error
		if w, err = e.cfg.avoiding(o.Avoid).Build(o.Job, a.ref, o.Claims, o.Script); err != nil {
			return nil, err
		}
	}
	return e.submissionOf(a, w), nil
}

// submissionOf is an attempt as it is handed over with what sbatch gets for its job.
func (e *Engine) submissionOf(a *attempt, w *sbatchargs.Job) *site.Submission {
	o := a.order
	s := &site.Submission{
		Script: script.Wrap(w.Script, &a.guard), Args: w.Args, Env: sbatchargs.Environment(o.Job, o.Env, &a.guard), Dir: o.Job.Spec.WorkDir,
		Options: append(append(slices.Clone(e.cfg.Options), w.Options...), "--comment="+jobComment(a)), User: a.user,
	}
	for _, of := range w.Components {
		s.Components = append(s.Components, append(append(slices.Clone(e.cfg.Options), of...), "--comment="+jobComment(a)))
	}
	return s
}

// jobComment is what an attempt's job has for a comment: its tag, and what the user says.
func jobComment(a *attempt) string {
	if text := a.order.Job.Spec.Comment; text != "" {
		return a.tag + " " + text
	}
	return a.tag
}
