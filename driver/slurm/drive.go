package slurm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Pauses between calls that got no answer.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
)

// driveAttempt does for one attempt what is due, until it has ended or the engine is closed.
func (e *Engine) driveAttempt(a *attempt) {
	failed := 0
	for {
		due, err := e.stepAttempt(a)
		if e.ctx.Err() != nil {
			return
		}
		e.mu.Lock()
		over := a.ended
		e.mu.Unlock()
		if over {
			e.locks.cancel(a)
			e.endSecrets(a)
			return
		}
		if err != nil {
			due = min(firstPause<<min(failed, 10), lastPause)
			failed++
			e.reportWaiting(a, err)
			e.cfg.Log.Warn("slurm", "attempt", a.ref.String(), "error", err)
		} else {
			failed = 0
		}
		if !e.waitForWake(a, due, err != nil) {
			return
		}
	}
}

// reportWaiting reports why an attempt is not handed over yet.
func (e *Engine) reportWaiting(a *attempt, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.id != 0 || a.ended || a.stop != nil {
		return
	}
	r := a.report
	r.Message = "not handed over to Slurm yet: " + why.Error()
	if advice := fault.Remedy(why); advice != "" {
		r.Message += "; " + advice
	}
	e.publishReport(a, r)
}

// waitForWake waits until an attempt is woken, or for a time if that is not 0; after a failure no
// shorter for being woken. false: the engine is closed.
func (e *Engine) waitForWake(a *attempt, due time.Duration, failed bool) bool {
	var timer <-chan time.Time
	if due > 0 {
		t := time.NewTimer(due)
		defer t.Stop()
		timer = t.C
	}
	wake := a.wake
	if failed {
		wake = nil
	}
	select {
	case <-timer:
	case <-wake:
	case <-e.ctx.Done():
		return false
	}
	return true
}

// stepAttempt does what is due now, and says after which time there is more; 0: when woken.
func (e *Engine) stepAttempt(a *attempt) (time.Duration, error) {
	e.mu.Lock()
	id, stop := a.id, a.stop
	e.mu.Unlock()
	if id == 0 {
		if stop != nil {
			return e.giveUp(a)
		}
		return 0, e.handOver(a)
	}
	if err := e.judgeJob(a); err != nil {
		return 0, err
	}
	return e.endAttempt(a)
}

// handOver submits an attempt's job, unless Slurm has it already.
func (e *Engine) handOver(a *attempt) error {
	leave, ok := e.send.Acquire(e.ctx, a.user, a.halt)
	if !ok {
		a.wakeUp() // it is to end, or the engine is
		return nil
	}
	e.mu.Lock()
	stopped := a.stop != nil
	e.mu.Unlock()
	if stopped { // while it waited for its turn
		leave(false)
		a.wakeUp()
		return nil
	}
	began := time.Now()
	err := e.asSender(a)
	leave(e.cfg.callHung(err, began))
	return err
}

// senderConfig is an attempt that a sender hands over.
type senderConfig struct {
	a    *attempt
	over chan error
}

// asSender has a sender submit an attempt: the stack of a goroutine that does so for the
// first time grows, and that of each attempt would.
func (e *Engine) asSender(a *attempt) error {
	r := senderConfig{a, make(chan error, 1)}
	select {
	case e.errands <- r:
	default: // all are away
		e.wg.Go(func() { e.runSender(r) })
	}
	return <-r.over
}

// runSender submits one attempt after another, until the engine is closed.
func (e *Engine) runSender(r senderConfig) {
	for {
		r.over <- e.submitInTurn(r.a)
		select {
		case r = <-e.errands:
		case <-e.ctx.Done():
			return
		}
	}
}

// submitInTurn is handOver, in its turn.
func (e *Engine) submitInTurn(a *attempt) error {
	if a.handover.unanswered {
		j, err := e.controller.findSubmitted(a)
		if err != nil {
			return err
		}
		if j != nil {
			if p := e.log.requeuedJob(a.order.Job.ID); p != nil && p.ID == j.ID {
				return e.takeOver(a, p)
			}
			return e.recordJobID(a, j.ID)
		}
	}
	if done, err := e.adoptRequeued(a); done || err != nil {
		return err
	}
	if err := e.prepareLockDirectory(); err != nil {
		return err
	}
	err := e.resolveOwner(a)
	var s *site.Submission
	if err == nil {
		s, err = e.renderSubmission(a)
	}
	if err == nil {
		err = e.putOwnSecrets(a)
	}
	if err == nil {
		e.mu.Lock()
		a.handover.tried = time.Now()
		e.mu.Unlock()
		a.handover.unanswered, a.handover.repeated = true, a.handover.unanswered
		ctx, cancel := e.controller.callContext()
		var id uint32
		id, err = e.cfg.Site.Submit(ctx, s)
		cancel()
		if err == nil {
			return e.recordJobID(a, id)
		}
	}
	if e.ctx.Err() != nil || fault.KindOf(err) == fault.Unavailable || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return e.endRefused(a, err)
}

// prepareLockDirectory sees to it that the directory of locks is there before a job looks for it: it may be on
// a login node that was away when the engine was opened.
func (e *Engine) prepareLockDirectory() error {
	ctx, cancel := e.controller.callContext()
	defer cancel()
	_, err := e.cfg.Room.Look(ctx, nil)
	return err
}

// resolveOwner finds out who an attempt's owner is on the cluster.
func (e *Engine) resolveOwner(a *attempt) error {
	if a.user == "" {
		return nil
	}
	ctx, cancel := e.controller.callContext()
	defer cancel()
	p, err := e.owners.lookUpPerson(ctx, a.user)
	a.guard.User, a.guard.UID = a.user, p.UID
	return err
}

// endRefused ends an attempt that slurmctld has refused. Should what it said have meant
// something else, the lock keeps the job from beginning.
func (e *Engine) endRefused(a *attempt, why error) error {
	if a.handover.unanswered {
		ctx, cancel := e.controller.callContext()
		defer cancel()
		held, err := e.fenceLock(ctx, a, 0)
		if err != nil {
			return err
		}
		if held != fenced {
			return fault.New(fault.Unavailable, "%w; yet it began", why)
		}
	}
	switch {
	case fault.KindOf(why) == fault.Exhausted, strings.Contains(why.Error(), "SubmitJob"): // AssocMaxSubmitJobLimit, QOSGrpSubmitJobsLimit …: some will have ended
		return e.endUnstarted(a, engine.Unready, why.Error())
	case len(a.order.Avoid) > 0 && !e.cfg.Placed && hasNoSuchNodes(why) && !e.isRefusedEverywhere(a):
		return e.endUnstarted(a, engine.Unready, fmt.Sprintf("%s; it may not have %s, whose machines other pools own (cox machines)", why, hostlist.Compress(a.order.Avoid)))
	case e.cfg.Placed: // perhaps for the nodes that were chosen
		return e.endUnstarted(a, engine.LaunchFailed, why.Error())
	}
	return e.endUnstarted(a, engine.Refused, fmt.Sprintf("%s (change what Slurm names, or name another pool, and submit it again)", why))
}

// hasNoSuchNodes reports whether slurmctld refused a job because it has no nodes for it, whatever is free.
func hasNoSuchNodes(why error) bool {
	return why != nil && strings.Contains(why.Error(), "node configuration is not available")
}

// isRefusedEverywhere reports whether slurmctld has no nodes for an attempt's job even if it may have those that other
// pools own. false: it has, or cannot be asked.
func (e *Engine) isRefusedEverywhere(a *attempt) bool {
	k, ok := e.cfg.Site.(site.StartEstimator)
	if !ok {
		return false
	}
	o := a.order
	w, err := e.cfg.sbatchSettings().Build(o.Job, a.ref, o.Claims, o.Script)
	if err != nil {
		return false
	}
	ctx, cancel := e.controller.callContext()
	defer cancel()
	_, err = k.EstimateStart(ctx, e.submissionOf(a, w))
	return hasNoSuchNodes(err)
}

// recordJobID notes the number of an attempt's job.
func (e *Engine) recordJobID(a *attempt, id uint32) error {
	if err := e.log.Append(&entry{Kind: sent, Ref: a.ref, ID: id}); err != nil {
		return err
	}
	e.dropSecrets(a.ref)
	e.mu.Lock()
	defer e.mu.Unlock()
	slim := *a.order
	slim.Script, slim.Env, slim.Avoid = nil, nil, nil
	a.order, a.sbatch, a.id, a.handover.unanswered = &slim, nil, id, false
	a.handover.numbered = time.Now()
	a.poll.at, a.poll.job, a.poll.unknownSince = a.handover.numbered, nil, time.Time{}
	if r := a.report; a.stop == nil && r.Message != "" { // why it was not handed over
		r.Message = ""
		e.publishReport(a, r)
	}
	a.wakeUp()
	return nil
}

// endUnstarted ends an attempt of which nothing is or will be in Slurm.
func (e *Engine) endUnstarted(a *attempt, cause engine.Cause, message string) error {
	e.mu.Lock()
	r := a.report
	e.mu.Unlock()
	r.Phase, r.Gone, r.Uncertain, r.Ended, r.Message = engine.Ended, true, false, time.Now(), message
	r.Started = time.Time{} // it was taken for running, perhaps
	if r.Cause == "" {
		r.Cause = cause
	}
	if r.Exit.OK() {
		r.Exit = job.ExitCode{Signal: sigterm}
		if cause == engine.LaunchFailed || cause == engine.Unready || cause == engine.Refused {
			r.Exit = job.ExitCode{Status: 1}
		}
	}
	return e.recordLastReport(a, r)
}

// recordLastReport writes the last word of an attempt down and says it.
func (e *Engine) recordLastReport(a *attempt, r engine.Report) error {
	r.ExpectedStart, r.Held = time.Time{}, false
	if err := e.log.Append(&entry{Kind: ended, Ref: a.ref, Digest: a.digest, Report: &r}); err != nil {
		return err
	}
	e.mu.Lock()
	if !r.Started.IsZero() && a.report.Phase < engine.Running {
		e.publishReport(a, a.runningReport(r))
	}
	if !a.ended {
		close(a.gone)
	}
	a.ended, a.order, a.sbatch = true, nil, nil
	e.board.Drop(a.ref)
	e.publishReport(a, r)
	e.mu.Unlock()
	return nil
}

// giveUp ends an attempt that slurmctld has perhaps not heard of: the lock is fenced, so
// that whatever arrives late begins nothing, and what has arrived is cancelled.
func (e *Engine) giveUp(a *attempt) (time.Duration, error) {
	e.mu.Lock()
	stop := a.stop
	e.mu.Unlock()
	if !a.handover.unanswered {
		return 0, e.endUnstarted(a, stop.Cause, stop.Reason)
	}
	return e.inTurn(a, func(ctx context.Context) (time.Duration, error) { return e.cancelUnanswered(ctx, a, stop) })
}

// cancelUnanswered is giveUp of what was sent without an answer.
func (e *Engine) cancelUnanswered(ctx context.Context, a *attempt, stop *stopping) (time.Duration, error) {
	j, err := e.controller.findSubmitted(a)
	if err != nil {
		return 0, err
	}
	if j != nil {
		if p := e.log.requeuedJob(a.order.Job.ID); p != nil && p.ID == j.ID {
			return time.Nanosecond, e.takeOver(a, p)
		}
		return time.Nanosecond, e.recordJobID(a, j.ID)
	}
	held, err := e.fenceLock(ctx, a, 0)
	if err != nil {
		return 0, err
	}
	if held == takerGone {
		return 0, e.reportVanished(a)
	}
	if held != fenced { // it has arrived since
		return firstPause, nil
	}
	return 0, e.endUnstarted(a, stop.Cause, stop.Reason)
}

// fenced is the text of a lock that keeps work from beginning.
const fenced = "fenced"
