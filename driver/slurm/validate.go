package slurm

import (
	"context"
	"errors"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/preflight"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/driver/slurm/validate"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

const (
	// refreshing bounds what is asked of the cluster before a job is taken or refused.
	refreshing = 5 * time.Second
	// unasked is how long nobody at the door asks again after there was no answer.
	unasked = 10 * time.Second
)

// Admit is engine.Validator's. A job that cannot be handed over is refused as its launch
// would be, by the same code; so is one of a user whom the cluster does not know, and one
// that no partition, account, QOS, reservation or number of licences of the cluster's can
// ever take, with Slurm's rule. What is not known or too old is left to Slurm, and so is what
// an inventory older than ten seconds says and a new one cannot be had for.
func (e *Engine) Admit(ctx context.Context, d *engine.JobDraft) error {
	d = e.placeDraft(d)
	if err := e.checkSubmittable(d.Spec, d.Script, d.Env); err != nil {
		return e.atDoor(err)
	}
	sub, err := e.draftSubmission(d)
	if err != nil {
		return e.atDoor(err)
	}
	if err := e.askWithBackoff(ctx, func(ctx context.Context) error { return e.checkOwner(ctx, sub) }); err != nil {
		return e.atDoor(err)
	}
	return e.byRule(ctx, d.Spec)
}

// atDoor says in which pool a job cannot be.
func (e *Engine) atDoor(err error) error {
	return fault.New(fault.KindOf(err), "pool %s: %w", e.cfg.Pool, err).Advise("%s", fault.Remedy(err))
}

// draftSubmission is what would be submitted of a job that is not taken yet: all that an attempt has,
// but for the numbers, which are 0, and the word in the lock's name.
func (e *Engine) draftSubmission(d *engine.JobDraft) (*site.Submission, error) {
	o := draftOrder(d)
	a := e.draftOf(engine.Ref{}, o)
	a.guard.User = a.user
	a.guard.UID = e.owners.uidOf(a.user)
	return e.renderSubmission(a)
}

// noToken stands in the name of a lock that nobody takes.
const noToken = "TOKEN"

// checkOwner asks whether a job's owner is one of the cluster's, and whether the way in can say it.
func (e *Engine) checkOwner(ctx context.Context, sub *site.Submission) error {
	if sub.User != "" {
		if _, err := e.owners.lookUpPerson(ctx, sub.User); err != nil {
			return err
		}
	}
	if f, ok := e.cfg.Site.(site.Fitter); ok {
		return f.Fits(ctx, sub)
	}
	return nil
}

// askWithBackoff asks the cluster something at the door. No answer is none, and then nobody asks for a
// while: jobs are taken meanwhile, and what is wrong shows when they are handed over.
func (e *Engine) askWithBackoff(ctx context.Context, f func(context.Context) error) error {
	if e.recentlySilent() {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, min(refreshing, e.cfg.Patience))
	defer cancel()
	err := f(short)
	if err == nil || fault.KindOf(err) != fault.Unavailable && !errors.Is(err, context.DeadlineExceeded) && short.Err() == nil {
		return err
	}
	if ctx.Err() == nil { // who asks is there still
		e.noteSilence()
	}
	return nil
}

// recentlySilent reports whether the cluster gave no answer a moment ago.
func (e *Engine) recentlySilent() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Now().Before(e.silent)
}

// noteSilence has nobody ask the cluster about jobs that are not taken yet for a while.
func (e *Engine) noteSilence() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.silent = time.Now().Add(unasked)
}

// byRule refuses what a rule of the cluster's never lets run.
func (e *Engine) byRule(ctx context.Context, spec *job.Spec) error {
	inv := e.freshInventory()
	if inv == nil {
		return nil
	}
	err := e.checkRules(inv, spec)
	if err == nil || time.Since(inv.Taken) < 10*time.Second {
		return err
	}
	fresh := false
	_ = e.askWithBackoff(ctx, func(ctx context.Context) error {
		err := e.takeStock(ctx)
		fresh = err == nil
		return err
	})
	if !fresh {
		return nil // it is not certain then
	}
	return e.checkRules(e.freshInventory(), spec)
}

// checkRules goes through the rules of an inventory; nil: none is known.
func (e *Engine) checkRules(inv *fleet.Inventory, spec *job.Spec) error {
	if inv == nil {
		return nil
	}
	if err := validate.Check(inv, spec, e.owners.submitUser(spec.Owner), e.cfg.Options); err != nil {
		return fault.New(fault.Invalid, "pool %s: Slurm never runs this job: %w", e.cfg.Pool, err).Advise("%s", fault.Remedy(err))
	}
	return nil
}

var _ engine.Checker = (*Engine)(nil)

// Check looks at the cluster, at what the pool may do there, and at the directory of locks (package
// preflight).
func (e *Engine) Check(ctx context.Context) ([]engine.Finding, error) {
	c := &e.cfg
	return preflight.Run(ctx, preflight.Config{
		Pool: c.Pool, Site: c.Site, Locks: c.Room, OnNodes: e.blind, Options: c.Options, Containers: c.Containers,
		Privileged: c.Privileged, Suspends: c.canSuspend(), RefusesRoot: c.Identity.Mode != AsService && !c.Identity.Root,
		Identity: e.owners.findings, Patience: c.Patience, Longest: c.Longest, Log: c.Log,
	})
}
