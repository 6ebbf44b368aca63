package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// carryOutStop carries out a stop: the crew is told, which then ends in time by itself; pods of which
// nobody can be told, or that are late, are deleted.
func (e *Engine) carryOutStop(a *attempt, stop *stopping, members []podstatus.Member) (time.Duration, error) {
	e.mu.Lock()
	told, deleted := a.told == stop, a.deleted == stop
	e.mu.Unlock()
	if deleted {
		return nextPodCheck(members), nil
	}
	if left := time.Until(stop.signalTime()); left > 0 && !members[0].Over {
		return left, nil
	}
	if a.order.work != nil {
		return e.deleteManifestPods(a, stop, members)
	}
	if !told && stop.Cause == engine.Stopped && !members[0].Over && members[0].Phase >= engine.Ready {
		grace := max(0, time.Until(stop.killDeadline()))
		if err := e.calls.tellAgent(a, podagent.Word{Signal: stop.Signal, Grace: grace, Cause: stop.Cause, Text: stop.Reason}); err == nil {
			e.mu.Lock()
			a.told = stop
			e.mu.Unlock()
			told = true
		} else {
			e.cfg.Log.Warn("kubernetes", "attempt", a.ref.String(), "error", err)
		}
	}
	if left := time.Until(stop.killDeadline().Add(late)); told && left > 0 {
		return left, nil
	}
	if members[0].Lingers {
		e.keepLog(a)
	}
	if err := e.deletePods(a, render.Grace(max(0, time.Until(stop.killDeadline())))); err != nil {
		return 0, err
	}
	e.mu.Lock()
	a.deleted = stop
	e.mu.Unlock()
	return nextPodCheck(members), nil
}

// deletePods begins to delete all pods, each by its UID.
func (e *Engine) deletePods(a *attempt, grace int64) error {
	return e.calls.forEach(len(a.order.Nodes), func(i int) error { return e.deletePod(a, i, grace) })
}

// deletePod begins to delete a pod, by its UID.
func (e *Engine) deletePod(a *attempt, i int, grace int64) error {
	return e.deletePodWithin(a, i, &grace)
}

// deletePodWithin is deletePod with a grace in seconds; nil: the pod's own.
func (e *Engine) deletePodWithin(a *attempt, i int, grace *int64) error {
	e.mu.Lock()
	uid := a.made.Pods[i]
	e.mu.Unlock()
	ctx, cancel := e.calls.callContext()
	defer cancel()
	if err := e.k.Delete(ctx, cluster.Pods, a.namespace, podName(e, a.ref, i), cluster.Deletion{UID: uid, Grace: grace}); !isSettledError(err) {
		return err
	}
	return nil
}

// tellAgent tells an attempt's crew something.
func (c *clusterCalls) tellAgent(a *attempt, w podagent.Word) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	ctx, cancel := c.callContext()
	defer cancel()
	_, err = c.inPod(ctx, c.execTarget(a, 0), nil, io.Discard, "tell", string(text))
	return err
}

// Stop begins to end an attempt.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref, s engine.Stop) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.attempts[ref]
	if a == nil {
		if err := e.log.Fence(ref); err != nil {
			return journalError(ref, err)
		}
		return kit.UnknownAttempt(engineName, ref)
	}
	if a.ended {
		return nil
	}
	n := &stopping{Asked: time.Now().Round(0), Signal: s.Signal, Grace: max(0, s.Grace), Cause: engine.Stopped, Reason: s.Reason}
	if s.Drain > 0 && a.report.Phase == engine.Running && !a.report.Suspended && a.order.Job.Spec.Serve != nil {
		n.Drain = s.Drain
	}
	if was := a.stop; was != nil {
		if s.Drain > 0 && time.Now().Before(was.signalTime()) {
			return nil // it is being drained already
		}
		if was.Cause != engine.Stopped && was.Cause != engine.Exited || !n.killDeadline().Before(was.killDeadline()) {
			return nil
		}
		n.Cause = was.Cause // pods that have decided their job stay its end; the others have less time
		n.Reason = cmp.Or(was.Reason, n.Reason)
	}
	if err := e.log.Append(&entry{Kind: stopped, Ref: ref, Stop: n}); err != nil {
		return journalError(ref, err)
	}
	a.stop = n
	e.publishEndpoints(a)
	a.wakeUp()
	return nil
}

// journalError is the error of a call that could not be written down, as on a full disk: nothing was
// done, and who called does it again.
func journalError(ref engine.Ref, err error) error {
	return fault.New(fault.Unavailable, "attempt %s: %w", ref, err).Advise("%s", fault.Remedy(err))
}

// Signal sends a signal and nothing more.
func (e *Engine) Signal(ctx context.Context, ref engine.Ref, signal int, to engine.Scope) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	e.mu.Lock()
	a := e.attempts[ref]
	phase := engine.Ended
	if a != nil && !a.ended {
		phase = a.report.Phase
	}
	e.mu.Unlock()
	switch {
	case a == nil:
		return kit.UnknownAttempt(engineName, ref)
	case phase == engine.Ended || signal == 0:
		return nil
	case phase < engine.Running:
		return fault.New(fault.Conflict, "attempt %s has not started", ref)
	}
	if a.hasNoAgent() {
		return agentlessError("a signal cannot be sent to", "kubectl exec, or ending the job by cox cancel, sends SIGTERM")
	}
	if err := e.calls.tellAgent(a, podagent.Word{Signal: signal, Scope: to}); err != nil {
		return err
	}
	e.askSaved(a, now)
	return nil
}
