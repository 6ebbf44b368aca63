package kube

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Pauses between calls that got no answer.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
)

// late is how long after its grace a crew that was told to end is waited for, before its pods
// are deleted.
const late = 20 * time.Second

// driveAttempt does for one attempt what is due, until it has ended or the engine is closed.
func (e *Engine) driveAttempt(a *attempt) {
	failed := 0
	for {
		due, err := e.driveStep(a)
		e.mu.Lock()
		over := a.ended
		e.mu.Unlock()
		if over || e.ctx.Err() != nil {
			return
		}
		wake := a.wake
		if err != nil {
			due, wake = min(firstPause<<min(failed, 10), lastPause), nil
			failed++
			e.reportWaiting(a, err)
			e.cfg.Log.Warn("kubernetes", "attempt", a.ref.String(), "error", err)
		} else {
			failed = 0
		}
		var timer <-chan time.Time
		if due > 0 {
			timer = time.After(due)
		}
		select {
		case <-timer:
		case <-wake:
		case <-e.ctx.Done():
			return
		}
	}
}

// reportWaiting reports why an attempt's pods are not there yet.
func (e *Engine) reportWaiting(a *attempt, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.ended || a.stop != nil || a.report.Phase > engine.Accepted {
		return
	}
	r := a.report
	r.Message = errorWithAdvice(why)
	a.said.waiting = r.Message
	e.publishReport(a, r)
}

// reportUnlisted reports why an attempt's pods cannot be seen, however far it is and whatever it was told: until
// they can, nothing is done for it, and its end is not noticed.
func (e *Engine) reportUnlisted(a *attempt, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.ended {
		return
	}
	r := a.report
	r.Message = errorWithAdvice(why)
	a.said.unlisted = r.Message
	e.publishReport(a, r)
}

// clearUnlisted takes that back.
func (e *Engine) clearUnlisted(a *attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.said.unlisted != "" && a.said.unlisted == a.report.Message {
		r := a.report
		r.Message = ""
		e.publishReport(a, r)
	}
	a.said.unlisted = ""
}

// errorWithAdvice is an error with its remedy.
func errorWithAdvice(err error) string {
	if r := fault.Remedy(err); r != "" {
		return err.Error() + "; " + r
	}
	return err.Error()
}

// driveStep does what is due now, and says after which time there is more; 0: when woken.
func (e *Engine) driveStep(a *attempt) (time.Duration, error) {
	e.mu.Lock()
	m, stop, bound, listed, hidden := a.made, a.stop, a.bound, e.listed[a.namespace], e.hidden[a.namespace]
	e.mu.Unlock()
	e.watchGangs(a.order.Gang, a.namespace)
	if m == nil {
		if stop != nil {
			return 0, e.giveUp(a)
		}
		return 0, e.tryBegin(a, e.createObjects)
	}
	if !listed {
		if hidden != nil {
			e.reportUnlisted(a, hidden)
		}
		return 0, nil
	}
	e.clearUnlisted(a)
	if !bound && stop == nil {
		if e.cfg.Terms.Placed {
			err := e.tryBegin(a, e.provisionVolumes)
			if p := (*pending)(nil); errors.As(err, &p) {
				_, err = e.judgePods(a) // what becomes of its pods meanwhile
				return p.after, err
			}
			if err != nil || e.isStopping(a) {
				return 0, err
			}
			if err := e.tryBegin(a, e.bindPods); err != nil {
				return 0, err
			}
		} else if err := e.tryBegin(a, e.removeGates); err != nil {
			return 0, err
		}
	}
	if err := e.tellAgain(a); err != nil {
		return 0, err
	}
	e.deliverUpload(a)
	due, err := e.judgePods(a) // whether it runs, before anything is made for one that begins
	soon, unnamed := e.createServiceWhenDue(a, time.Now())
	return shorterWait(due, soon), errors.Join(err, unnamed)
}

// shorterWait is the shorter of two waits, of which 0 is for ever.
func shorterWait(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// tryBegin does something for an attempt's begin. What cannot be done ends the attempt.
func (e *Engine) tryBegin(a *attempt, f func(*attempt) error) error {
	err := e.namespaceRefusal(a, f(a))
	if e.ctx.Err() != nil {
		return nil
	}
	if v := classifyError(err); err != nil && v != nil {
		return e.abandonAttempt(a, v.cause, errorWithAdvice(v.err))
	}
	if err == nil {
		a.wakeUp()
	}
	return err
}

// abandonAttempt ends an attempt that does not begin.
func (e *Engine) abandonAttempt(a *attempt, cause engine.Cause, text string) error {
	return e.stopWith(a, &stopping{Asked: time.Now().Round(0), Cause: cause, Reason: text})
}

// stopWith begins to end an attempt that nobody has told to end yet.
func (e *Engine) stopWith(a *attempt, s *stopping) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.stop != nil || a.ended {
		return nil
	}
	if err := e.log.Append(&entry{Kind: stopped, Ref: a.ref, Stop: s}); err != nil {
		return err
	}
	a.stop = s
	a.wakeUp()
	return nil
}

// wakeUp has the attempt's goroutine look again.
func (a *attempt) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// giveUp ends an attempt of which no pod was ever given to a node.
func (e *Engine) giveUp(a *attempt) error {
	if a.begun {
		ctx, cancel := e.calls.callContext()
		defer cancel()
		if err := e.calls.deleteRoot(ctx, a.namespace, a.ref); err != nil { // what is left has no node, and gets none
			e.cfg.Log.Warn("kubernetes", "attempt", a.ref.String(), "error", err)
		}
	}
	return e.finishAttempt(a, []podstatus.Member{{Over: true}})
}

// judgePods reads what is known of the pods, reports it, and does what follows.
func (e *Engine) judgePods(a *attempt) (time.Duration, error) {
	if err := e.askTaken(a); err != nil {
		return 0, err
	}
	now := time.Now()
	e.mu.Lock()
	members := e.readMembers(a, now)
	over := 0
	for _, m := range members {
		if m.Over {
			over++
		}
	}
	err := e.reportProgress(a, members, over)
	stop := a.stop
	e.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if over == len(members) {
		return 0, e.finishAttempt(a, members)
	}
	if stop != nil {
		return e.carryOutStop(a, stop, members)
	}
	if err := e.deleteLingering(a, members); err != nil {
		return 0, err
	}
	left, decided, err := e.judgeManifest(a, members, now)
	if err != nil || decided {
		return 0, err
	}
	if err := e.markUnpreparedDevices(a, members, now); err != nil {
		return 0, err
	}
	due, err := e.endStuckAttempt(a, members, now)
	return shorterWait(due, left), err
}

// deleteLingering begins to delete the pods that linger. What is to be kept of one is read before.
func (e *Engine) deleteLingering(a *attempt, members []podstatus.Member) error {
	var lingering []int
	for i, m := range members {
		if m.Lingers {
			lingering = append(lingering, i)
		}
	}
	if members[0].Lingers || a.order.work != nil && len(lingering) > 0 {
		e.keepLog(a)
	}
	return e.calls.forEach(len(lingering), func(i int) error { return e.deletePod(a, lingering[i], render.Grace(0)) })
}

// endStuckAttempt ends an attempt that will not begin as its pods are.
func (e *Engine) endStuckAttempt(a *attempt, members []podstatus.Member, now time.Time) (time.Duration, error) {
	e.mu.Lock()
	began := !a.report.Started.IsZero()
	since := a.stall.stuckSince
	e.mu.Unlock()
	stuck, bare, mute := -1, -1, -1
	for i, m := range members {
		switch {
		case began && !m.Manifest, m.Manifest && m.Over, m.Manifest && m.Phase == engine.Running:
		case m.Over && (m.Outcome == nil || m.Outcome.Started.IsZero()): // the others wait for it: at the most as long as Ready
			why := m.Why
			if why == "" {
				why = m.Outcome.Message
			}
			return 0, e.abandonAttempt(a, cmp.Or(m.Cause, engine.Unready), why)
		case m.Refused:
			return 0, e.abandonAttempt(a, engine.Refused, m.Why+"; name an image that is there")
		case m.Uncertain:
		case m.Placed && e.isNodeSilent(a, i): // what its kubelet said last may be long mended, and the pod may have begun
			if mute < 0 {
				mute = i
			}
		case m.Stuck && stuck < 0:
			stuck = i
		case m.NoSandbox && bare < 0:
			bare = i
		}
	}
	if stuck < 0 {
		e.mu.Lock()
		a.stall.stuckSince = time.Time{}
		e.mu.Unlock()
		due, err := e.endSandboxless(a, bare, mute, now)
		return shorterWait(nextPodCheck(members), due), err
	}
	if since.IsZero() {
		since = now
		e.mu.Lock()
		a.stall.stuckSince = now
		r := a.report
		r.Message = members[stuck].Why
		e.publishReport(a, r)
		e.mu.Unlock()
	}
	patience := e.cfg.Pull
	if members[stuck].Hopeless { // the kubelet's word may be older than what it does
		patience = min(patience, podstatus.Silence)
	}
	if left := patience - now.Sub(since); left > 0 {
		return left, nil
	}
	return 0, e.abandonAttempt(a, cmp.Or(members[stuck].Cause, engine.Refused), fmt.Sprintf("%s; it was waited for %s", members[stuck].Why, patience))
}

// endSandboxless ends an attempt of which a pod, bare, has its node and nothing in which a container could
// begin for longer than a gang may take to be there, and says soon that it is so. What keeps its
// kubelet, as a volume that cannot be mounted or a network that is not set up, stands only among the
// pod's events. Mute is a pod whose kubelet does not answer: that is said, and the pod is waited for
// until it is told to end. -1: no pod is so. It returns after which time there is more to do; 0: none.
func (e *Engine) endSandboxless(a *attempt, bare, mute int, now time.Time) (time.Duration, error) {
	e.mu.Lock()
	r := a.report
	if bare < 0 {
		text := ""
		if mute >= 0 {
			text = fmt.Sprintf("pod %s: its kubelet on %s does not answer", podName(e, a.ref, mute), a.nodeOf(mute))
		}
		if r.Message == a.stall.bareText || r.Message == "" {
			r.Message = text
		}
		a.stall.bareSince, a.stall.bareText = time.Time{}, text
		e.publishReport(a, r)
		e.mu.Unlock()
		return 0, nil
	}
	if a.stall.bareSince.IsZero() || a.stall.barePod != bare {
		a.stall.bareSince, a.stall.barePod = now, bare
		if r.Message == a.stall.bareText { // of another pod, or of this one's kubelet that did not answer
			r.Message = ""
		}
		a.stall.bareText = ""
	}
	since := now.Sub(a.stall.bareSince)
	pod := podName(e, a.ref, bare)
	text := fmt.Sprintf("pod %s on %s: its kubelet has not made it ready for containers: a volume, or its network; kubectl describe pod %s --namespace %s says why", pod, a.nodeOf(bare), pod, a.namespace)
	if since >= podstatus.Silence && !r.Uncertain {
		r.Message, a.stall.bareText = text, text
	}
	e.publishReport(a, r)
	e.mu.Unlock()
	if left := e.cfg.Ready - since; left > 0 {
		return shorterWait(left, max(0, podstatus.Silence-since)), nil
	}
	return 0, e.abandonAttempt(a, engine.Unready, fmt.Sprintf("%s; it was waited for %s", text, e.cfg.Ready))
}

// nextPodCheck is after which time pods have to be looked at though nothing was heard of them: one
// that is being deleted becomes uncertain by silence alone. 0: none.
func nextPodCheck(members []podstatus.Member) time.Duration {
	for _, m := range members {
		if !m.Over {
			return 15 * time.Second
		}
	}
	return 0
}
