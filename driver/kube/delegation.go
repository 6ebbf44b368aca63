package kube

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/preflight"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

var _ engine.Validator = (*Engine)(nil)

const (
	// refreshing bounds what is asked of the cluster before a job is taken or refused.
	refreshing = 5 * time.Second
	// fresh is for how long what the cluster can do is gone by without asking again.
	fresh = time.Minute
	// fresher is for how long it is where it can do nothing of the kind: that is soon mended.
	fresher = 5 * time.Second
)

// Receives reports whether working directories come with jobs (engine.UploadReceiver).
func (e *Engine) Receives() bool { return e.cfg.Terms.EffectiveWorkDir() == settings.WorkDirUpload }

// Admit is engine.Validator's. A job is refused as its launch would be, if what it names of
// files is nowhere in the pool's pods, or if it asks of them what it may not.
func (e *Engine) Admit(ctx context.Context, d *engine.JobDraft) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := e.cfg.Terms.CheckJob(d.Spec)
	if err == nil {
		err = e.checkLaunch(ctx, d)
	}
	if err != nil {
		return fault.New(fault.KindOf(err), "pool %s: %w", e.cfg.Terms.Pool, err).Advise("%s", fault.Remedy(err))
	}
	return nil
}

// checkLaunch refuses what a launch would refuse, by the same code: what cannot be said in pods, and
// where the cluster's scheduler chooses the nodes, what that is not told, and a gang that
// nothing in the cluster begins together. What the cluster does not answer is not certain.
func (e *Engine) checkLaunch(ctx context.Context, d *engine.JobDraft) error {
	o := &order{Job: &job.Job{Spec: d.Spec}, Script: d.Script, Env: d.Env}
	if err := o.readManifest(&e.cfg.Terms); err != nil {
		return err
	}
	err := e.renderAttempt(engine.Ref{}, o).CheckJob()
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, min(refreshing, e.cfg.Patience))
	defer cancel()
	if e.cfg.Terms.Placed {
		_, several := nodesFor(d.Spec)
		if err = e.checkVolumes(short, d.Spec, several); err != nil {
			return err
		}
		if err = e.checkManifestNodes(short, o); err != nil {
			return err
		}
		return e.checkPodCapacity(short, d.Spec)
	}
	if err = e.planDelegation(short, o); err == nil {
		if err = e.renderAttempt(engine.Ref{}, o).Check(); err == nil {
			err = e.checkVolumes(short, d.Spec, len(o.Nodes) > 1)
		}
		return err
	}
	if k := fault.KindOf(err); k != fault.Invalid && k != fault.Unsupported {
		return nil
	}
	return err
}

// servedGang is what begins the pods of a job together; nil: nothing that the pool may use. What the
// cluster serves is asked anew if it is not known of a moment ago, and before there is nothing.
func (e *Engine) servedGang(ctx context.Context) (*gang.Gang, []gang.Gang, error) {
	e.mu.Lock()
	served, asked := e.served, e.asked
	e.mu.Unlock()
	known := gang.Served(served)
	switch g, ok := gang.Choose(&e.cfg.Terms, known); {
	case ok && time.Since(asked) < fresh:
		return &g, known, nil
	case !ok && time.Since(asked) < fresher:
		return nil, known, nil
	}
	served, err := e.k.Served(ctx)
	if err != nil {
		return nil, nil, err
	}
	e.mu.Lock()
	e.served, e.asked = served, time.Now()
	e.mu.Unlock()
	all := gang.Served(served)
	if g, ok := gang.Choose(&e.cfg.Terms, all); ok {
		return &g, all, nil
	}
	return nil, all, nil
}

// Check looks at the cluster and at what the pool may do there. It makes nothing that stays.
func (e *Engine) Check(ctx context.Context) ([]engine.Finding, error) {
	return preflight.Check(ctx, e.k, e.cfg.Terms, e.inventory)
}
