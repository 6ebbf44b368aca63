package kube

import (
	"encoding/json"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kube/crew"
	"github.com/coxswain-sched/coxswain/fault"
)

// What a job reports as saved, by the file in its checkpoint directory, is in the outcome of
// its attempt. While it runs nobody tells the driver, and it asks: after a signal, which is how
// a job is told to save, for as long as jobs are given for that.
const (
	savedFirst  = time.Second // between two questions
	savedLast   = 10 * time.Second
	savedWithin = 15 * time.Minute
)

// askSaved begins to ask what a job has saved, if it has a directory for that and nobody asks.
func (e *Engine) askSaved(a *attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cfg.Terms.Checkpoints == "" || a.asking || a.ended || e.ctx.Err() != nil {
		return
	}
	a.asking = true
	until := time.Now().Add(savedWithin)
	e.wg.Go(func() {
		defer func() {
			e.mu.Lock()
			a.asking = false
			e.mu.Unlock()
		}()
		for wait := savedFirst; time.Now().Before(until); wait = min(wait*3/2, savedLast) {
			select {
			case <-time.After(wait):
			case <-e.ctx.Done():
				return
			}
			if !e.askSavedOnce(a) {
				return
			}
		}
	})
}

// askSavedOnce asks, and reports whether it is to be asked again.
func (e *Engine) askSavedOnce(a *attempt) bool {
	if _, err := e.running(a.ref); err != nil {
		return false
	}
	text, err := json.Marshal(crew.Question{Saved: true})
	if err != nil {
		return false
	}
	ctx, cancel := e.call()
	defer cancel()
	var said few
	code, err := e.inPod(ctx, e.member(a, 0), nil, &said, "ask", string(text))
	if err != nil { // an older cox-pod knows no such question
		return code != fault.Invalid.ExitCode()
	}
	var s engine.Saved
	if json.Unmarshal([]byte(said.String()), &s) != nil || s.At.IsZero() || engine.CheckSaved(s.As) != nil {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := a.report; !a.ended && (r.Saved == nil || s.At.After(r.Saved.At)) {
		r.Saved = &s
		e.tell(a, r)
	}
	return true
}
