package slurm

import (
	"cmp"
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// thaw is after which time a job that was suspended once, and was asked to end and does not,
// is suspended and let go on anew: a node may have heard of both in the wrong order (settled).
// Each time it is twice as long.
const thaw = 10 * time.Second

// again is after which time a job that was to be killed, and lives, is killed again.
const again = 5 * time.Second

// Stop begins to end an attempt.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref, s engine.Stop) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	a := e.attempts[ref]
	if a == nil {
		err := e.log.Fence(ref)
		e.mu.Unlock()
		return cmp.Or(err, error(kit.UnknownAttempt(engineName, ref)))
	}
	defer e.mu.Unlock()
	if a.ended {
		return nil
	}
	now := time.Now()
	if s.Drain > 0 && a.stop != nil && now.Before(a.stop.From) {
		return nil // it is being drained already
	}
	stop := &stopping{Asked: now, Signal: cmp.Or(s.Signal, sigterm), Kill: now.Add(s.Grace), Cause: engine.Stopped, Reason: s.Reason}
	if s.Drain > 0 && a.report.Phase == engine.Running && !a.report.Suspended && a.order.Job.Spec.Serve != nil {
		stop.From, stop.Kill = now.Add(s.Drain), stop.Kill.Add(s.Drain)
	}
	return e.stopAt(a, stop)
}

var _ engine.Withdrawer = (*Engine)(nil)

// Withdraw is engine.Withdrawer's. A job that waits in Slurm is barred by its lock first: from then on its script
// begins nothing, whatever slurmctld does with it, so its end proves that it never ran. Then it is cancelled.
func (e *Engine) Withdraw(ctx context.Context, ref engine.Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	a := e.attempts[ref]
	if a == nil {
		e.mu.Unlock()
		return kit.UnknownAttempt(engineName, ref)
	}
	id, phase, begun, over := a.id, a.report.Phase, !a.hint.begun.IsZero(), a.ended || a.stop != nil
	e.mu.Unlock()
	notSure := func(format string, args ...any) error {
		return fault.New(fault.Unavailable, "attempt %s is not taken back: "+format, append([]any{ref}, args...)...)
	}
	switch {
	case over:
		return nil
	case begun || phase >= engine.Ready:
		return hasBegun(ref)
	case id == 0:
		return notSure("it is being handed over to Slurm")
	case e.blind:
		return notSure("only its nodes know whether it has begun")
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	j, err := e.controller.currentJob(ctx, a)
	switch {
	case err != nil:
		return notSure("%w", err)
	case j == nil:
		return notSure("Slurm does not know job %d", id)
	case j.State.Final(): // its end is reported
		e.poller.now(a)
		return nil
	case j.State != site.Pending:
		return hasBegun(ref)
	case j.Held: // who holds it means it to stay
		return notSure("somebody holds job %d in Slurm", id)
	case j.Restarts > a.base:
		return notSure("Slurm has put job %d back into its queue", id)
	}
	held, err := e.fenceLock(ctx, a, a.base)
	switch {
	case err != nil:
		return notSure("%w", err)
	case held != fenced:
		return hasBegun(ref)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.ended {
		return nil
	}
	now := time.Now()
	return e.stopAt(a, &stopping{Asked: now, Signal: sigterm, Kill: now, Cause: engine.Stopped, Reason: "taken back before it began, for another pool", Barred: true})
}

func hasBegun(ref engine.Ref) error {
	return fault.New(fault.Conflict, "attempt %s has begun, and goes on", ref)
}

// stopAt notes that an attempt is to end, or sooner than it was to. The caller holds the lock.
func (e *Engine) stopAt(a *attempt, s *stopping) error {
	if a.stop != nil {
		if !s.Kill.Before(a.stop.Kill) {
			return nil
		}
		sooner := *a.stop
		sooner.From, sooner.Kill, sooner.Barred = s.From, s.Kill, a.stop.Barred || s.Barred
		s = &sooner
	}
	if err := e.log.Append(&entry{Kind: stopped, Ref: a.ref, Stop: s}); err != nil {
		return err
	}
	if a.stop == nil {
		close(a.halt)
	}
	a.stop = s
	e.stopServing(a)
	r := a.report
	if r.Cause == "" {
		r.Cause, r.Message = s.Cause, s.Reason
	}
	if a.id != 0 {
		r.Phase = max(r.Phase, engine.Ending)
	}
	e.publishReport(a, r)
	a.wakeUp()
	e.poller.soon(a)
	return nil
}

// endAttempt does what a stop or a time limit asks for, and says after which time there is more.
func (e *Engine) endAttempt(a *attempt) (time.Duration, error) {
	e.mu.Lock()
	if a.ended {
		e.mu.Unlock()
		return 0, nil
	}
	j, now := a.poll.job, time.Now()
	if a.stop == nil {
		wait, over := a.remainingTime(now)
		if !over {
			e.mu.Unlock()
			return wait, nil
		}
		err := e.stopAt(a, &stopping{Asked: now, Signal: sigterm, Kill: now.Add(a.order.Grace), Cause: engine.TimedOut, Reason: "it reached its time limit"})
		if err != nil {
			e.mu.Unlock()
			return 0, err
		}
	}
	s, told, killed := a.stop, a.ending.told, a.ending.killed
	frozen := time.Duration(0) // when it may have to be thawed
	if !a.suspension.changed.IsZero() {
		frozen = a.ending.asked.Add(thaw << min(a.ending.thawed, 8)).Sub(now)
	}
	e.mu.Unlock()
	kill := !now.Before(s.Kill)
	switch wait := e.settleDelay(a); {
	case now.Before(s.From):
		return s.From.Sub(now), nil
	case j == nil: // a poll is on its way
		return 0, nil
	case wait > 0: // signals are dropped on nodes that do not know yet that it goes on
		return wait, nil
	case kill && now.Sub(killed) < again:
		return again - now.Sub(killed), nil
	case !kill && told != nil && frozen == 0:
		return s.Kill.Sub(now), nil
	case !kill && told != nil && frozen > 0:
		return min(frozen, s.Kill.Sub(now)), nil
	}
	return e.inTurn(a, func(ctx context.Context) (time.Duration, error) { return e.endNow(ctx, a, s, told, kill) })
}

// inTurn makes the calls that end an attempt. So many go on at once as submissions do, whose
// turns they need not wait for.
func (e *Engine) inTurn(a *attempt, f func(context.Context) (time.Duration, error)) (time.Duration, error) {
	leave, ok := e.ends.Acquire(e.ctx, a.user, nil)
	if !ok {
		return 0, nil
	}
	began := time.Now()
	ctx, cancel := e.controller.callContext()
	defer cancel()
	due, err := f(ctx)
	leave(e.cfg.callHung(err, began))
	return due, err
}

// callHung reports whether a call hung, and nobody else's may wait for another like it.
func (c *Config) callHung(err error, began time.Time) bool {
	return fault.KindOf(err) == fault.Unavailable && time.Since(began) > c.Patience/3
}

// endNow asks Slurm for the end of an attempt's job, or for the next step towards it.
func (e *Engine) endNow(ctx context.Context, a *attempt, s, told *stopping, kill bool) (time.Duration, error) {
	now := time.Now()
	j, err := e.controller.currentJob(ctx, a)
	switch {
	case err != nil:
		return 0, err
	case j == nil || j.State.Final() || j.Completing && !kill:
		e.poller.now(a)
		return firstPause, nil
	case j.State == site.Suspended: // so that it can act on the signal
		return settled, e.setSuspended(ctx, a, false)
	case kill:
		err = e.killJob(ctx, a, j)
	case told != nil && j.State == site.Running:
		e.mu.Lock()
		a.ending.told, a.ending.thawed = nil, a.ending.thawed+1
		e.mu.Unlock()
		e.poller.now(a)
		return settled, e.setSuspended(ctx, a, true)
	default:
		err = e.signalEnd(ctx, a, j, s)
	}
	if err != nil {
		return 0, err
	}
	e.mu.Lock()
	a.ending.told, a.ending.asked = s, now
	if kill {
		a.ending.killed = now
	}
	e.mu.Unlock()
	e.poller.now(a)
	return time.Millisecond, nil
}

// signalEnd asks a job to end: one that waits is cancelled.
func (e *Engine) signalEnd(ctx context.Context, a *attempt, j *site.Job, s *stopping) error {
	switch {
	case j.State == site.Pending:
		return e.owners.siteToChange(a.user).End(ctx, a.id)
	case s.Signal == sigkill:
		return e.killJob(ctx, a, j)
	}
	err := e.owners.siteToChange(a.user).Signal(ctx, a.id, s.Signal, site.ToAll)
	if err != nil && fault.KindOf(err) != fault.Unavailable { // between two states
		return fault.New(fault.Unavailable, "%w", err)
	}
	return err
}

// killJob ends a job for good.
func (e *Engine) killJob(ctx context.Context, a *attempt, j *site.Job) error {
	if j.State == site.Running && a.ending.killed.IsZero() {
		if err := e.owners.siteToChange(a.user).Kill(ctx, a.id); err == nil || fault.KindOf(err) == fault.Unavailable {
			return err
		}
	}
	return e.owners.siteToChange(a.user).End(ctx, a.id)
}

// remainingTime is how long an attempt may still run. The caller holds the lock.
func (a *attempt) remainingTime(now time.Time) (wait time.Duration, over bool) {
	most, from := a.order.Job.Spec.TimeLimit, a.report.Started
	if most <= 0 || from.IsZero() || !a.suspension.since.IsZero() {
		return 0, false
	}
	wait = from.Add(most + a.suspension.total).Sub(now)
	return max(wait, 0), wait <= 0
}

// Signal sends a signal and nothing more.
func (e *Engine) Signal(ctx context.Context, ref engine.Ref, signal int, to engine.Scope) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	scope, ok := map[engine.Scope]site.Scope{engine.ToTasks: site.ToSteps, engine.ToBatch: site.ToBatch, engine.ToAll: site.ToAll}[to]
	if !ok {
		return fault.New(fault.Invalid, "%q is not a scope of signals", to)
	}
	if signal < 0 || signal > 64 {
		return fault.New(fault.Invalid, "%d is not a signal", signal)
	}
	e.mu.Lock()
	a := e.attempts[ref]
	if a == nil {
		e.mu.Unlock()
		return kit.UnknownAttempt(engineName, ref)
	}
	id, phase := a.id, a.report.Phase
	e.mu.Unlock()
	switch {
	case phase == engine.Ended || signal == 0:
		return nil
	case phase < engine.Running || id == 0:
		return fault.New(fault.Conflict, "attempt %s has not started", ref)
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	err := e.owners.siteToChange(a.user).Signal(ctx, id, signal, scope)
	e.poller.now(a)
	return err
}

// settled is how long slurmctld takes to tell the nodes of a suspension. It sends one
// message for it and another to go on, in no order: a job whose nodes get them the other
// way round stays frozen, and counts as running.
const settled = 2 * time.Second

// settleDelay is how long the nodes may take yet to hear of the last change.
func (e *Engine) settleDelay(a *attempt) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.suspension.changed.IsZero() {
		return 0
	}
	return settled - time.Since(a.suspension.changed)
}

// setSuspended holds a job or lets it go on.
func (e *Engine) setSuspended(ctx context.Context, a *attempt, held bool) error {
	if wait := e.settleDelay(a); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return fault.New(fault.Unavailable, "%w", context.Cause(ctx))
		}
	}
	err := e.cfg.Site.Suspend(ctx, a.id, held)
	e.mu.Lock()
	a.suspension.changed = time.Now()
	e.mu.Unlock()
	return err
}

// reportSuspended reports what slurmctld has just done: before a poll sees it, it may be otherwise again.
func (e *Engine) reportSuspended(a *attempt, held bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.poller.soon(a)
	if a.ended || a.poll.job == nil || a.report.Phase != engine.Running {
		return
	}
	j := *a.poll.job
	j.State = site.Running
	if held {
		j.State = site.Suspended
	}
	a.poll.job = &j
	r := a.report
	r.Suspended = held
	a.countPause(held)
	e.publishReport(a, r)
}

// countPause counts the time in which an attempt is suspended. The caller holds the lock.
func (a *attempt) countPause(held bool) {
	if held && a.suspension.since.IsZero() {
		a.suspension.since = time.Now()
	} else if !held && !a.suspension.since.IsZero() {
		a.suspension.total += time.Since(a.suspension.since)
		a.suspension.since = time.Time{}
	}
}

func (e *Engine) requestSuspend(ctx context.Context, ref engine.Ref, held bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	a := e.attempts[ref]
	if a == nil {
		e.mu.Unlock()
		return kit.UnknownAttempt(engineName, ref)
	}
	id, r, seen := a.id, a.report, a.poll.job != nil
	e.mu.Unlock()
	switch {
	case r.Phase == engine.Ended || r.Suspended == held && r.Phase == engine.Running && seen:
		return nil
	case r.Phase != engine.Running || id == 0:
		return fault.New(fault.Conflict, "attempt %s does not run", ref)
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	err := e.setSuspended(ctx, a, held)
	if err == nil {
		e.reportSuspended(a, held)
		return nil
	}
	if fault.KindOf(err) == fault.Unavailable {
		e.poller.now(a)
		return err
	}
	all, asked := e.cfg.Site.Jobs(ctx, []uint32{id}) // perhaps it is so already, or has ended
	if asked == nil && (len(all) == 0 || all[0].State.Final() || all[0].Completing || (all[0].State == site.Suspended) == held) {
		e.poller.now(a)
		return nil
	}
	return err
}
