package slurm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// requeuedJob is a job that Slurm has put back into its queue, for a node that failed, a
// preemption, an administrator. The attempt has ended; the job is held, and waits for the
// next attempt of the same job, which takes it over with its place in Slurm's queue. If none
// comes it is ended.
type requeuedJob struct {
	Job      job.ID     `json:"job"`
	ID       uint32     `json:"id"`
	Ref      engine.Ref `json:"ref"`   // of the attempt that its script names
	Token    string     `json:"token"` // of that
	Restarts int        `json:"restarts"`
	Held     bool       `json:"held"` // by us: who held it before goes on doing so
	User     string     `json:"user"`
	Comment  string     `json:"comment"`
	Asked    string     `json:"asked"` // what it asks for
	Time     time.Time  `json:"time"`
}

// lockGuard is where its next beginning has its lock.
func (p *requeuedJob) lockGuard(dir string) script.Guard {
	return script.Guard{Ref: p.Ref, Dir: dir, Token: p.Token}
}

// requestDigest is a digest of all that a job says of itself, so that the next attempt is seen to
// be the same job for Slurm.
func requestDigest(j *job.Job) string {
	b, err := json.Marshal(j.Spec)
	if err != nil {
		panic("a job's specification: " + err.Error()) // plain data
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// handleRequeued deals with a job that Slurm has put back by itself: its processes were ended
// before, on all nodes that answer. It is not to begin again under this attempt.
func (e *Engine) handleRequeued(a *attempt, j *site.Job) error {
	if j.Completing {
		return nil // they live
	}
	b, err := e.readStartRecord(a, a.base, 0)
	if err != nil {
		return err
	}
	e.mu.Lock()
	r, stop := a.report, a.stop
	e.mu.Unlock()
	if b == nil {
		if err := e.fenceRestart(a, j.Restarts); err != nil {
			return err
		}
		return e.endUnstarted(a, engine.Unready, fmt.Sprintf("Slurm could not begin job %d, and put it back (%s)", a.id, j.Reason))
	}
	kept := false
	if stop == nil && j.State == site.Pending && e.cfg.sbatchSettings().AdoptsRequeued(a.order.Job) {
		if kept, err = e.holdRequeued(a, j); err != nil {
			return err
		}
	}
	if !kept {
		if err := e.fenceRestart(a, j.Restarts); err != nil {
			return err
		}
		if began, err := e.restartBegan(a, j.Restarts); began || err != nil {
			return err
		}
	}
	cause, message, at := e.controller.requeueCause(a, j, b)
	r.Ended, r.Exit = at, job.ExitCode{Signal: sigkill}
	if r.Cause == "" {
		r.Cause, r.Message = cause, message
	}
	return e.reportEnded(a, r)
}

// requeueCause says why Slurm put a job back into its queue, and when its run ended. slurmctld does
// not say it of the job that waits: accounting has it of the run that began so, which may be
// long ago, and others may have followed. Where it has not, it is as if a node was lost now.
func (k *controller) requeueCause(a *attempt, j *site.Job, b *startRecord) (engine.Cause, string, time.Time) {
	text, now := "Slurm put the job back into its queue", time.Now()
	ctx, cancel := k.callContext()
	defer cancel()
	past, _ := k.site.Past(ctx, []uint32{a.id})
	var run *site.Job
	for i := range past {
		p := &past[i]
		if p.ID == a.id && !p.Ended.IsZero() && !p.Ended.Before(b.date) && !p.Ended.After(now) && (run == nil || p.Ended.Before(run.Ended)) {
			run = p
		}
	}
	switch {
	case run == nil:
		return engine.NodeLost, text + " (" + j.Reason + ")", now
	case run.State == site.Preempted:
		return engine.Preempted, text + ": it was preempted", run.Ended
	case run.State == site.NodeFailed:
		return engine.NodeLost, text + ": a node failed, of " + strings.Join(run.Nodes, ","), run.Ended
	}
	return engine.NodeLost, text + " (" + j.Reason + ")", run.Ended
}

// fenceRestart keeps a job from beginning, and ends it if it is still ours.
func (e *Engine) fenceRestart(a *attempt, restarts int) error {
	ctx, cancel := e.controller.callContext()
	defer cancel()
	if _, err := e.fenceLock(ctx, a, restarts); err != nil {
		return err
	}
	now, err := e.controller.currentJob(ctx, a)
	if err != nil || now == nil || now.State.Final() || now.Completing {
		return err
	}
	return e.owners.siteToChange(a.user).End(ctx, a.id)
}

// restartBegan reports whether a requeued job's next beginning has the lock: its end is waited for.
func (e *Engine) restartBegan(a *attempt, restarts int) (bool, error) {
	ctx, cancel := e.controller.callContext()
	defer cancel()
	held, err := e.fenceLock(ctx, a, restarts)
	if err != nil || held == fenced {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r := a.report
	r.Phase, r.Message = max(r.Phase, engine.Ending), "Slurm put the job back and began it again; that is being ended"
	if r.Cause == "" {
		r.Cause = engine.NodeLost
	}
	e.publishReport(a, r)
	return true, nil
}

// holdRequeued holds a requeued job for the next attempt. false: it has begun.
func (e *Engine) holdRequeued(a *attempt, j *site.Job) (bool, error) {
	ctx, cancel := e.controller.callContext()
	defer cancel()
	now, err := e.controller.currentJob(ctx, a)
	if err != nil || now == nil || now.State != site.Pending {
		return false, err
	}
	p := &requeuedJob{
		Job: a.order.Job.ID, ID: a.id, Ref: a.guard.Ref, Token: a.guard.Token, Restarts: j.Restarts, Held: !now.Held, User: a.user, Comment: now.Comment,
		Asked: requestDigest(a.order.Job), Time: time.Now(),
	}
	if p.Held {
		err := e.owners.siteToChange(a.user).Update(ctx, a.id, site.Change{Hold: true})
		if fault.KindOf(err) == fault.Unsupported { // by this way in
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if now, err = e.controller.currentJob(ctx, a); err != nil || now == nil || now.State != site.Pending || !now.Held || now.Restarts != p.Restarts {
			return false, err // it was faster
		}
	}
	return true, e.log.Append(&entry{Kind: spared, Ref: a.ref, Spare: p})
}

// adoptRequeued hands an attempt the job that Slurm has kept of the one before. false: there is none,
// or not as it should be.
func (e *Engine) adoptRequeued(a *attempt) (bool, error) {
	p := e.log.requeuedJob(a.order.Job.ID)
	switch {
	case p == nil || a.handover.unanswered:
		return false, nil
	case p.Asked != requestDigest(a.order.Job) || p.User != a.user:
		return false, e.discardRequeued(p)
	}
	ctx, cancel := e.controller.callContext()
	defer cancel()
	j, err := e.controller.spareJob(ctx, p, jobComment(a))
	if err != nil {
		return false, err
	}
	if j == nil || j.State != site.Pending || j.Restarts != p.Restarts {
		return false, e.discardRequeued(p)
	}
	err = e.takeOver(a, p)
	if err != nil && fault.KindOf(err) != fault.Unavailable {
		return false, e.discardRequeued(p)
	}
	return err == nil, err
}

// takeOver gives a spare to an attempt.
func (e *Engine) takeOver(a *attempt, p *requeuedJob) error {
	ctx, cancel := e.controller.callContext()
	defer cancel()
	guard := p.lockGuard(e.cfg.Room.Dir())
	if err := e.putSecrets(ctx, a, &guard, p.Restarts); err != nil {
		return err
	}
	text := jobComment(a)
	if err := e.owners.siteToChange(p.User).Update(ctx, p.ID, site.Change{Comment: &text}); err != nil {
		return err
	}
	if err := e.log.Append(&entry{Kind: adopted, Ref: a.ref, ID: p.ID, Spare: p}); err != nil {
		return err
	}
	e.mu.Lock()
	a.useRequeuedLock(p)
	e.mu.Unlock()
	return e.recordJobID(a, p.ID)
}

// letGo releases a job that was held for its attempt, once: who holds it later keeps it held.
func (e *Engine) letGo(a *attempt, j *site.Job) error {
	e.mu.Lock()
	p := a.held
	e.mu.Unlock()
	if p == nil {
		return nil
	}
	if j.Held && j.State == site.Pending {
		ctx, cancel := e.controller.callContext()
		defer cancel()
		if err := e.owners.siteToChange(a.user).Update(ctx, a.id, site.Change{Release: true}); err != nil {
			return err
		}
	}
	free := *p
	free.Held = false
	if err := e.log.Append(&entry{Kind: adopted, Ref: a.ref, ID: a.id, Spare: &free}); err != nil {
		return err
	}
	e.mu.Lock()
	a.held = nil
	e.mu.Unlock()
	return nil
}

// useRequeuedLock has an attempt use the lock of a spare's next beginning.
func (a *attempt) useRequeuedLock(p *requeuedJob) {
	a.guard.Ref, a.guard.Token, a.base = p.Ref, p.Token, p.Restarts
	a.prefix = p.Ref.String() + "-" + p.Token
	if p.Held {
		a.held = p
	}
}

// discardRequeued ends a spare that nobody takes over. Its lock is fenced first.
func (e *Engine) discardRequeued(p *requeuedJob) error {
	ctx, cancel := e.controller.callContext()
	defer cancel()
	g := p.lockGuard(e.cfg.Room.Dir())
	if _, _, err := e.cfg.Room.Take(ctx, baseName(g.Lock(p.Restarts)), fenced); err != nil {
		return err
	}
	j, err := e.controller.spareJob(ctx, p, p.Comment)
	if err != nil {
		return err
	}
	if j != nil && !j.State.Final() {
		if err := e.owners.siteToChange(p.User).End(ctx, p.ID); err != nil {
			return err
		}
	}
	return e.log.Append(&entry{Kind: unspared, Spare: p})
}

// discardUnclaimed ends the spares that nobody has taken over in time.
func (e *Engine) discardUnclaimed() error {
	var errs []error
	for _, p := range e.log.requeuedJobs() {
		if time.Since(p.Time) > e.cfg.Adopt {
			errs = append(errs, e.discardRequeued(p))
		}
	}
	return errors.Join(errs...)
}
