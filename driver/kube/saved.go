package kube

import (
	"encoding/json"
	"time"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// What a job reports as saved, by the file in its checkpoint directory, is in the outcome of
// its attempt. While it runs nobody tells the driver, and it asks: after a signal, which is how
// a job is told to save, until it has, for as long as jobs are given for that.
const (
	savedFirst  = time.Second // between two questions
	savedLast   = 10 * time.Second
	savedWithin = 15 * time.Minute

	// asksAtMost bounds how many questions are under way: all jobs of an array are signaled at
	// once, and each question goes through the API server and a kubelet.
	asksAtMost = 8
)

// askSaved begins to ask what a job that got a signal has saved since, if it has a directory for
// that. Who asks already goes on for this one.
func (e *Engine) askSaved(a *attempt, signaled time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cfg.Terms.Checkpoints == "" || a.ended || e.ctx.Err() != nil {
		return
	}
	a.noteSignal(signaled)
	if a.saving.asking {
		return
	}
	a.saving.asking = true
	e.wg.Go(func() {
		for wait := savedFirst; ; wait = min(wait*3/2, savedLast) {
			select {
			case <-time.After(wait):
			case <-e.ctx.Done():
				return
			}
			if s, again := e.askSavedOnce(a); !e.heardSaved(a, s, again) {
				return
			}
		}
	})
}

// askSavedOnce asks, and reports whether there may be an answer later.
func (e *Engine) askSavedOnce(a *attempt) (s engine.Saved, again bool) {
	select {
	case e.asks <- struct{}{}:
		defer func() { <-e.asks }()
	case <-e.ctx.Done():
		return s, false
	}
	if _, err := e.runningAttempt(a.ref); err != nil {
		return s, false
	}
	text, err := json.Marshal(podagent.Question{Saved: true})
	if err != nil {
		return s, false
	}
	ctx, cancel := e.calls.callContext()
	defer cancel()
	said := beginning{most: fewBytes}
	code, err := e.calls.inPod(ctx, e.calls.execTarget(a, 0), nil, &said, "ask", string(text))
	if err != nil { // an older cox-pod knows no such question
		return s, code != fault.Invalid.ExitCode()
	}
	if json.Unmarshal([]byte(said.String()), &s) != nil || engine.CheckSaved(s.As) != nil {
		return engine.Saved{}, true
	}
	return s, true
}

// noteSignal notes when a signal was sent, and what was known to be saved then. The caller holds the lock.
func (a *attempt) noteSignal(signaled time.Time) {
	a.saving.signaled, a.saving.before, a.saving.answered = signaled, engine.Saved{}, false
	if s := a.report.Saved; s != nil {
		a.saving.before = *s
	}
}

// heardSaved takes what a job says that it has saved, and reports whether it is to be asked
// again: not once it has saved since its last signal, which is what is waited for.
func (e *Engine) heardSaved(a *attempt, s engine.Saved, again bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := a.report; !a.ended && !s.At.IsZero() && (r.Saved == nil || s.At.After(r.Saved.At)) {
		r.Saved = &s
		e.publishReport(a, r)
	}
	a.saving.asking = again && !a.ended && !a.savedSince(s) && time.Since(a.saving.signaled) < savedWithin
	return a.saving.asking
}

// savedSince reports whether what a job says that it has saved is of after its last signal. That
// is by the pod's clock, which may be ahead: what was known before is not; or behind: what is
// another than it said since is. The caller holds the lock.
func (a *attempt) savedSince(s engine.Saved) bool {
	if s.At.IsZero() {
		return false
	}
	first := !a.saving.answered
	a.saving.answered = true
	switch {
	case s.As == a.saving.before.As && s.At.Equal(a.saving.before.At):
		return false
	case s.At.After(a.saving.signaled) || !first:
		return true
	}
	a.saving.before = s // it may have saved it before, and nobody asked
	return false
}
