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
	"github.com/coxswain-sched/coxswain/model/job"
)

// Pauses between calls that got no answer.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
)

// drive does for one attempt what is due, until it has ended or the engine is closed.
func (e *Engine) drive(a *attempt) {
	failed := 0
	for {
		due, err := e.step(a)
		if e.ctx.Err() != nil {
			return
		}
		e.mu.Lock()
		over := a.ended
		e.mu.Unlock()
		if over {
			e.unask(a)
			return
		}
		if err != nil {
			due = min(firstPause<<min(failed, 10), lastPause)
			failed++
			e.waits(a, err)
			e.cfg.Log.Warn("slurm", "attempt", a.ref.String(), "error", err)
		} else {
			failed = 0
		}
		if !e.rest(a, due, err != nil) {
			return
		}
	}
}

// waits reports why an attempt is not handed over yet.
func (e *Engine) waits(a *attempt, why error) {
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
	e.tell(a, r)
}

// rest waits until an attempt is woken, or for a time if that is not 0; after a failure no
// shorter for being woken. false: the engine is closed.
func (e *Engine) rest(a *attempt, due time.Duration, failed bool) bool {
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

// step does what is due now, and says after which time there is more; 0: when woken.
func (e *Engine) step(a *attempt) (time.Duration, error) {
	e.mu.Lock()
	id, stop := a.id, a.stop
	e.mu.Unlock()
	if id == 0 {
		if stop != nil {
			return e.giveUp(a)
		}
		return 0, e.handOver(a)
	}
	if err := e.judge(a); err != nil {
		return 0, err
	}
	return e.end(a)
}

// call bounds one call of the cluster.
func (e *Engine) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.ctx, e.cfg.Patience)
}

// handOver submits an attempt's job, unless Slurm has it already.
func (e *Engine) handOver(a *attempt) error {
	leave, ok := e.send.take(e.ctx, a.user, a.halt)
	if !ok {
		a.nudge() // it is to end, or the engine is
		return nil
	}
	e.mu.Lock()
	stopped := a.stop != nil
	e.mu.Unlock()
	if stopped { // while it waited for its turn
		leave(false)
		a.nudge()
		return nil
	}
	began := time.Now()
	err := e.asSender(a)
	leave(e.hung(err, began))
	return err
}

// errand is an attempt that a sender hands over.
type errand struct {
	a    *attempt
	over chan error
}

// asSender has a sender submit an attempt: the stack of a goroutine that does so for the
// first time grows, and that of each attempt would.
func (e *Engine) asSender(a *attempt) error {
	r := errand{a, make(chan error, 1)}
	select {
	case e.errands <- r:
	default: // all are away
		e.wg.Go(func() { e.sender(r) })
	}
	return <-r.over
}

// sender submits one attempt after another, until the engine is closed.
func (e *Engine) sender(r errand) {
	for {
		r.over <- e.submit(r.a)
		select {
		case r = <-e.errands:
		case <-e.ctx.Done():
			return
		}
	}
}

// submit is handOver, in its turn.
func (e *Engine) submit(a *attempt) error {
	if a.maybe {
		j, err := e.lookUp(a)
		if err != nil {
			return err
		}
		if j != nil {
			if p := e.log.spare(a.order.Job.ID); p != nil && p.ID == j.ID {
				return e.takeOver(a, p)
			}
			return e.sent(a, j.ID)
		}
	}
	if done, err := e.adopt(a); done || err != nil {
		return err
	}
	if err := e.locks(); err != nil {
		return err
	}
	err := e.admit(a)
	var s *site.Submission
	if err == nil {
		s, err = e.submission(a)
	}
	if err == nil {
		e.mu.Lock()
		a.tried = time.Now()
		e.mu.Unlock()
		a.maybe, a.twice = true, a.maybe
		ctx, cancel := e.call()
		var id uint32
		id, err = e.cfg.Site.Submit(ctx, s)
		cancel()
		if err == nil {
			return e.sent(a, id)
		}
	}
	if e.ctx.Err() != nil || fault.KindOf(err) == fault.Unavailable || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return e.refused(a, err)
}

// locks sees to it that the directory of locks is there before a job looks for it: it may be on
// a login node that was away when the engine was opened.
func (e *Engine) locks() error {
	ctx, cancel := e.call()
	defer cancel()
	_, err := e.cfg.Room.Look(ctx, nil)
	return err
}

// admit finds out who an attempt's owner is on the cluster.
func (e *Engine) admit(a *attempt) error {
	if a.user == "" {
		return nil
	}
	ctx, cancel := e.call()
	defer cancel()
	p, err := e.known(ctx, a.user)
	a.guard.User, a.guard.UID = a.user, p.UID
	return err
}

// refused ends an attempt that slurmctld has refused. Should what it said have meant
// something else, the lock keeps the job from beginning.
func (e *Engine) refused(a *attempt, why error) error {
	if a.maybe {
		ctx, cancel := e.call()
		defer cancel()
		held, err := e.bars(ctx, a, 0)
		if err != nil {
			return err
		}
		if held != fenced {
			return fault.New(fault.Unavailable, "%w; yet it began", why)
		}
	}
	switch {
	case fault.KindOf(why) == fault.Exhausted, strings.Contains(why.Error(), "SubmitJob"): // AssocMaxSubmitJobLimit, QOSGrpSubmitJobsLimit …: some will have ended
		return e.never(a, engine.Unready, why.Error())
	case e.cfg.Placed: // perhaps for the nodes that were chosen
		return e.never(a, engine.LaunchFailed, why.Error())
	}
	return e.never(a, engine.Refused, fmt.Sprintf("%s (change what Slurm names, or name another pool, and submit it again)", why))
}

// sent notes the number of an attempt's job.
func (e *Engine) sent(a *attempt, id uint32) error {
	if err := e.log.add(&entry{Kind: sent, Ref: a.ref, ID: id}); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	slim := *a.order
	slim.Script, slim.Env = nil, nil
	a.order, a.words, a.id, a.maybe = &slim, nil, id, false
	a.sent = time.Now()
	a.at, a.seen, a.gone = a.sent, nil, time.Time{}
	if r := a.report; a.stop == nil && r.Message != "" { // why it was not handed over
		r.Message = ""
		e.tell(a, r)
	}
	a.nudge()
	return nil
}

// lookUp finds the job with an attempt's tag; nil: neither slurmctld nor accounting has one.
func (e *Engine) lookUp(a *attempt) (*site.Job, error) {
	ctx, cancel := e.call()
	defer cancel()
	all, err := e.cfg.Site.Of(ctx, a.user)
	if err != nil {
		return nil, err
	}
	if j := tagged(all, a.tag); j != nil {
		return j, nil
	}
	all, err = e.cfg.Site.PastOf(ctx, a.user, a.order.Time.Add(-time.Minute))
	if fault.KindOf(err) == fault.Unsupported {
		return nil, nil
	}
	return tagged(all, a.tag), err
}

// tagged is the job with a tag; of several the one that did not end because another began.
func tagged(all []site.Job, tag string) *site.Job {
	var found *site.Job
	for i := range all {
		if carries(all[i].Comment, tag) && (found == nil || found.State.Final() && !all[i].State.Final()) {
			found = &all[i]
		}
	}
	return found
}

// carries reports whether a comment has a tag.
func carries(comment, tag string) bool {
	rest, ok := strings.CutPrefix(comment, tag)
	return ok && (rest == "" || rest[0] == ' ')
}

// never ends an attempt of which nothing is or will be in Slurm.
func (e *Engine) never(a *attempt, cause engine.Cause, message string) error {
	e.mu.Lock()
	r := a.report
	e.mu.Unlock()
	r.Phase, r.Gone, r.Uncertain, r.Ended, r.Message = engine.Ended, true, false, time.Now(), message
	if r.Cause == "" {
		r.Cause = cause
	}
	if r.Exit.OK() {
		r.Exit = job.ExitCode{Signal: sigterm}
		if cause == engine.LaunchFailed || cause == engine.Unready || cause == engine.Refused {
			r.Exit = job.ExitCode{Status: 1}
		}
	}
	return e.last(a, r)
}

// last writes the last word of an attempt down and says it.
func (e *Engine) last(a *attempt, r engine.Report) error {
	if err := e.log.add(&entry{Kind: ended, Ref: a.ref, Digest: a.digest, Report: &r}); err != nil {
		return err
	}
	e.mu.Lock()
	if !r.Started.IsZero() && a.report.Phase < engine.Running {
		e.tell(a, a.ran(r))
	}
	a.ended, a.order, a.words = true, nil, nil
	e.tell(a, r)
	e.mu.Unlock()
	return nil
}

// giveUp ends an attempt that slurmctld has perhaps not heard of: the lock is fenced, so
// that whatever arrives late begins nothing, and what has arrived is cancelled.
func (e *Engine) giveUp(a *attempt) (time.Duration, error) {
	e.mu.Lock()
	stop := a.stop
	e.mu.Unlock()
	if !a.maybe {
		return 0, e.never(a, stop.Cause, stop.Reason)
	}
	return e.inTurn(a, func(ctx context.Context) (time.Duration, error) { return e.unsend(ctx, a, stop) })
}

// unsend is giveUp of what was sent without an answer.
func (e *Engine) unsend(ctx context.Context, a *attempt, stop *stopping) (time.Duration, error) {
	j, err := e.lookUp(a)
	if err != nil {
		return 0, err
	}
	if j != nil {
		if p := e.log.spare(a.order.Job.ID); p != nil && p.ID == j.ID {
			return time.Nanosecond, e.takeOver(a, p)
		}
		return time.Nanosecond, e.sent(a, j.ID)
	}
	held, err := e.bars(ctx, a, 0)
	if err != nil {
		return 0, err
	}
	if held == takerGone {
		return 0, e.vanished(a)
	}
	if held != fenced { // it has arrived since
		return firstPause, nil
	}
	return 0, e.never(a, stop.Cause, stop.Reason)
}

// fenced is the text of a lock that keeps work from beginning.
const fenced = "fenced"
