package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine/kube/crew"
	"github.com/coxswain-sched/coxswain/engine/kube/render"
	"github.com/coxswain-sched/coxswain/fault"
)

// Pauses between calls that got no answer.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
)

// late is how long after its grace a crew that was told to end is waited for, before its pods
// are deleted.
const late = 20 * time.Second

// drive does for one attempt what is due, until it has ended or the engine is closed.
func (e *Engine) drive(a *attempt) {
	failed := 0
	for {
		due, err := e.step(a)
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
			e.waits(a, err)
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

// waits reports why an attempt's pods are not there yet.
func (e *Engine) waits(a *attempt, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.ended || a.stop != nil || a.report.Phase > engine.Accepted {
		return
	}
	r := a.report
	if r.Message = why.Error(); fault.Remedy(why) != "" {
		r.Message += "; " + fault.Remedy(why)
	}
	e.tell(a, r)
}

// tell publishes a report if it says something new. The caller holds the lock.
func (e *Engine) tell(a *attempt, r engine.Report) {
	r.Version = a.report.Version
	if a.made != nil {
		r.Native = render.Name(e.log.server, a.ref)
	}
	if reflect.DeepEqual(r, a.report) {
		return
	}
	a.report = r
	e.feed.Publish(r)
}

// step does what is due now, and says after which time there is more; 0: when woken.
func (e *Engine) step(a *attempt) (time.Duration, error) {
	e.mu.Lock()
	m, stop, bound, listed := a.made, a.stop, a.bound, e.listed
	e.mu.Unlock()
	if m == nil {
		if stop != nil {
			return 0, e.giveUp(a)
		}
		return 0, e.try(a, e.make)
	}
	if !listed {
		return 0, nil
	}
	if !bound && stop == nil {
		if e.cfg.Terms.Placed {
			if err := e.try(a, e.bind); err != nil {
				return 0, err
			}
		} else if err := e.try(a, e.ungate); err != nil {
			return 0, err
		}
	}
	return e.judge(a)
}

// try does something for an attempt's begin. What cannot be done ends the attempt.
func (e *Engine) try(a *attempt, f func(*attempt) error) error {
	err := f(a)
	if e.ctx.Err() != nil {
		return nil
	}
	if v := verdict(err); err != nil && v != nil {
		text := v.err.Error()
		if r := fault.Remedy(v.err); r != "" {
			text += "; " + r
		}
		return e.abandon(a, v.cause, text)
	}
	if err == nil {
		a.nudge()
	}
	return err
}

// abandon ends an attempt that does not begin.
func (e *Engine) abandon(a *attempt, cause engine.Cause, text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.stop != nil || a.ended {
		return nil
	}
	s := &stopping{Asked: time.Now().Round(0), Cause: cause, Reason: text}
	if err := e.log.add(&entry{Kind: stopped, Ref: a.ref, Stop: s}); err != nil {
		return err
	}
	a.stop = s
	a.nudge()
	return nil
}

// nudge has the attempt's goroutine look again.
func (a *attempt) nudge() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// giveUp ends an attempt of which no pod was ever given to a node.
func (e *Engine) giveUp(a *attempt) error {
	if a.begun {
		ctx, cancel := e.call()
		defer cancel()
		if err := e.uproot(ctx, a.ref); err != nil { // what is left has no node, and gets none
			e.cfg.Log.Warn("kubernetes", "attempt", a.ref.String(), "error", err)
		}
	}
	return e.finish(a, []member{{over: true}})
}

// judge reads what is known of the pods, reports it, and does what follows.
func (e *Engine) judge(a *attempt) (time.Duration, error) {
	now := time.Now()
	e.mu.Lock()
	members := e.members(a, now)
	over := 0
	for _, m := range members {
		if m.over {
			over++
		}
	}
	err := e.progress(a, members, over)
	stop := a.stop
	e.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if over == len(members) {
		return 0, e.finish(a, members)
	}
	if stop != nil {
		return e.end(a, stop, members)
	}
	return e.unstick(a, members, now)
}

// members reads all pods. The caller holds the lock.
func (e *Engine) members(a *attempt, now time.Time) []member {
	out := make([]member, len(a.order.Nodes))
	for i := range out {
		p := a.pods[i]
		if p == nil {
			out[i] = member{phase: engine.Accepted, unsure: true, why: fmt.Sprintf("pod %s-%d is not there any more; nobody can say whether it ended", render.Name(e.log.server, a.ref), i)}
			continue
		}
		out[i] = read(p.Pod, a.ref, now)
		if p.gone && !out[i].over {
			out[i].unsure, out[i].why = true, fmt.Sprintf("pod %s was taken away with its finalizer; nobody can say whether it ended", p.Name)
		}
	}
	return out
}

// progress reports how far an attempt is. The caller holds the lock.
func (e *Engine) progress(a *attempt, members []member, over int) error {
	r := a.report
	phase, began, begun := engine.Running, time.Time{}, over == 0
	r.Uncertain = false
	r.Nodes = nil
	for i, m := range members {
		phase = min(phase, m.phase)
		begun = begun && m.phase == engine.Running
		if m.began.After(began) {
			began = m.began
		}
		if m.unsure {
			r.Uncertain = true
			r.Message = m.why
		}
		r.Nodes = append(r.Nodes, engine.NodeReport{Node: e.nodeOf(a, i), Phase: m.phase, Message: m.why})
	}
	for _, m := range members {
		if o := m.outcome; o != nil && !o.Started.IsZero() { // its begin was not seen
			begun, began = true, o.Started
			break
		}
	}
	if begun && r.Started.IsZero() {
		if err := e.log.add(&entry{Kind: started, Ref: a.ref, Time: began}); err != nil {
			return err
		}
		r.Started, r.Message = began.Round(0), ""
		before := r
		before.Phase, before.Nodes = engine.Running, slices.Clone(r.Nodes)
		for i := range before.Nodes {
			before.Nodes[i].Phase = engine.Running
		}
		before.Files = e.files(a.ref)
		before.Tasks = e.batch(a, &before, true)
		e.tell(a, before)
		r.Files, r.Tasks = before.Files, before.Tasks
	}
	if over > 0 || a.stop != nil {
		phase = engine.Ending
	}
	if over == len(members) {
		return nil // the end says it all
	}
	if phase == engine.Ending && r.Phase < phase && a.stop == nil {
		if err := e.log.add(&entry{Kind: waning, Ref: a.ref}); err != nil {
			return err
		}
	}
	r.Phase = max(r.Phase, phase)
	if a.stop != nil && !r.Uncertain {
		r.Message = a.stop.Reason
	}
	e.tell(a, r)
	return nil
}

func (e *Engine) nodeOf(a *attempt, i int) string {
	if p := a.pods[i]; p != nil && p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	return a.order.Nodes[i].Name
}

// batch is the batch script's part of a report.
func (e *Engine) batch(a *attempt, r *engine.Report, running bool) []engine.TaskReport {
	t := engine.TaskReport{Step: engine.BatchStep, Node: e.nodeOf(a, 0), Running: running, Started: r.Started}
	if len(r.Files) > 0 {
		t.Log = r.Files[0]
	}
	if !running {
		t.Ended, t.Cause, t.Exit = r.Ended, r.Cause, r.Exit
	}
	return []engine.TaskReport{t}
}

// unstick ends an attempt that will not begin as its pods are.
func (e *Engine) unstick(a *attempt, members []member, now time.Time) (time.Duration, error) {
	e.mu.Lock()
	began := !a.report.Started.IsZero()
	since := a.stuck
	e.mu.Unlock()
	stuck := -1
	for i, m := range members {
		switch {
		case began:
		case m.over && m.outcome == nil:
			return 0, e.abandon(a, cmp.Or(m.cause, engine.Unready), m.why)
		case m.refused:
			return 0, e.abandon(a, engine.Refused, m.why+"; name an image that is there")
		case m.stuck && stuck < 0:
			stuck = i
		}
	}
	if stuck < 0 {
		e.mu.Lock()
		a.stuck = time.Time{}
		e.mu.Unlock()
		return e.soon(members), nil
	}
	if since.IsZero() {
		since = now
		e.mu.Lock()
		a.stuck = now
		r := a.report
		r.Message = members[stuck].why
		e.tell(a, r)
		e.mu.Unlock()
	}
	if left := e.cfg.Pull - now.Sub(since); left > 0 {
		return left, nil
	}
	return 0, e.abandon(a, engine.Refused, fmt.Sprintf("%s; it was waited for %s", members[stuck].why, e.cfg.Pull))
}

// soon is after which time pods have to be looked at though nothing was heard of them: one
// that is being deleted becomes uncertain by silence alone. 0: none.
func (e *Engine) soon(members []member) time.Duration {
	for _, m := range members {
		if !m.over {
			return 15 * time.Second
		}
	}
	return 0
}

// end carries out a stop: the crew is told, which then ends in time by itself; pods of which
// nobody can be told, or that are late, are deleted.
func (e *Engine) end(a *attempt, stop *stopping, members []member) (time.Duration, error) {
	e.mu.Lock()
	told, deleted := a.told == stop, a.deleted == stop
	e.mu.Unlock()
	if deleted {
		return e.soon(members), nil
	}
	if !told && stop.Cause == engine.Stopped && !members[0].over && members[0].phase >= engine.Ready {
		grace := max(0, time.Until(stop.kill()))
		if err := e.speak(a, crew.Word{Signal: stop.Signal, Grace: grace, Cause: stop.Cause, Text: stop.Reason}); err == nil {
			e.mu.Lock()
			a.told = stop
			e.mu.Unlock()
			told = true
		} else {
			e.cfg.Log.Warn("kubernetes", "attempt", a.ref.String(), "error", err)
		}
	}
	if left := time.Until(stop.kill().Add(late)); told && left > 0 {
		return left, nil
	}
	if err := e.deletePods(a, render.Grace(max(0, time.Until(stop.kill())))); err != nil {
		return 0, err
	}
	e.mu.Lock()
	a.deleted = stop
	e.mu.Unlock()
	return e.soon(members), nil
}

// deletePods begins to delete all pods, each by its UID.
func (e *Engine) deletePods(a *attempt, grace int64) error {
	e.mu.Lock()
	uids := a.made.Pods
	e.mu.Unlock()
	return each(len(uids), func(i int) error {
		ctx, cancel := e.call()
		defer cancel()
		err := e.k.Delete(ctx, cluster.Pods, e.cfg.Terms.Namespace, fmt.Sprintf("%s-%d", render.Name(e.log.server, a.ref), i), cluster.Deletion{UID: uids[i], Grace: &grace})
		if k := fault.KindOf(err); k == fault.NotFound || k == fault.Conflict {
			return nil
		}
		return err
	})
}

// speak tells an attempt's crew something.
func (e *Engine) speak(a *attempt, w crew.Word) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	ctx, cancel := e.call()
	defer cancel()
	var said strings.Builder
	code, err := e.k.Exec(ctx, cluster.Command{
		Namespace: e.cfg.Terms.Namespace, Pod: render.Name(e.log.server, a.ref) + "-0", Container: render.Container,
		Args: []string{crew.BinDir + "/cox-pod", "tell", string(text)}, Stdout: &said, Stderr: &said,
	})
	if err == nil && code != 0 {
		err = fault.New(fault.Unavailable, "cox-pod tell: exit %d: %s", code, strings.TrimSpace(said.String()))
	}
	return err
}

// finish reports the end, once it is in the journal. All members are over.
func (e *Engine) finish(a *attempt, members []member) error {
	e.mu.Lock()
	stop := a.stop
	ran := !a.report.Started.IsZero()
	e.mu.Unlock()
	if ran {
		e.keepLog(a)
	}
	w := word(members, stop)
	e.mu.Lock()
	defer e.mu.Unlock()
	r := a.report
	r.Phase, r.Gone, r.Uncertain, r.Cause, r.Exit, r.Message, r.Ended = engine.Ended, true, false, w.Cause, w.Exit, w.Message, w.Ended
	if r.Ended.IsZero() {
		r.Ended = time.Now().Round(0)
	}
	if r.Ended.Before(r.Started) {
		r.Ended = r.Started
	}
	r.Nodes = nil
	for i := range a.order.Nodes {
		r.Nodes = append(r.Nodes, engine.NodeReport{Node: e.nodeOf(a, i), Phase: engine.Ended})
	}
	r.Tasks = nil
	if ran {
		r.Tasks = e.tasks(a, &r, w.Tasks)
	}
	if err := e.log.add(&entry{Kind: ended, Ref: a.ref, Digest: a.digest, Report: &r}); err != nil {
		return err
	}
	e.tell(a, r)
	a.ended = true
	for _, p := range a.pods {
		if !p.gone {
			e.graves[p.Name] = p.Pod
		}
	}
	a.order, a.pods = nil, nil
	e.dig()
	return nil
}

// tasks are those of the outcome, the script first, with the nodes' names.
func (e *Engine) tasks(a *attempt, r *engine.Report, said []engine.TaskReport) []engine.TaskReport {
	names := map[string]string{}
	for i := range a.order.Nodes {
		names[fmt.Sprintf("%s-%d", render.Name(e.log.server, a.ref), i)] = e.nodeOf(a, i)
	}
	out := slices.Clone(said)
	slices.SortStableFunc(out, func(x, y engine.TaskReport) int {
		return cmp.Or(cmp.Compare(x.Step, y.Step), cmp.Compare(x.Rank, y.Rank))
	})
	if len(out) == 0 || out[0].Step != engine.BatchStep {
		out = append(e.batch(a, r, false), out...)
	}
	for i := range out {
		out[i].Node, out[i].Running = cmp.Or(names[out[i].Node], out[i].Node), false
	}
	if len(r.Files) > 0 {
		out[0].Log = r.Files[0]
	}
	return out
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
		return errors.Join(e.log.fence(ref), unknown(ref))
	}
	if a.ended {
		return nil
	}
	n := &stopping{Asked: time.Now().Round(0), Signal: s.Signal, Grace: max(0, s.Grace), Cause: engine.Stopped, Reason: s.Reason}
	if was := a.stop; was != nil {
		if was.Cause != engine.Stopped || !n.kill().Before(was.kill()) {
			return nil
		}
		n.Reason = cmp.Or(was.Reason, n.Reason)
	}
	if err := e.log.add(&entry{Kind: stopped, Ref: ref, Stop: n}); err != nil {
		return err
	}
	a.stop = n
	a.nudge()
	return nil
}

// Signal sends a signal and nothing more.
func (e *Engine) Signal(ctx context.Context, ref engine.Ref, signal int, to engine.Scope) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	a := e.attempts[ref]
	phase := engine.Ended
	if a != nil && !a.ended {
		phase = a.report.Phase
	}
	e.mu.Unlock()
	switch {
	case a == nil:
		return unknown(ref)
	case phase == engine.Ended || signal == 0:
		return nil
	case phase < engine.Running:
		return fault.New(fault.Conflict, "attempt %s has not started", ref)
	}
	return e.speak(a, crew.Word{Signal: signal, Scope: to})
}

// ungate lets the cluster's scheduler have the pods: all are there.
func (e *Engine) ungate(a *attempt) error {
	e.mu.Lock()
	m := a.made
	e.mu.Unlock()
	err := each(len(m.Pods), func(i int) error {
		ctx, cancel := e.call()
		defer cancel()
		patch := map[string]any{"metadata": map[string]any{"uid": m.Pods[i]}, "spec": map[string]any{"schedulingGates": nil}}
		return e.k.Patch(ctx, cluster.Pods, e.cfg.Terms.Namespace, fmt.Sprintf("%s-%d", render.Name(e.log.server, a.ref), i), "", cluster.Merge, patch, nil)
	})
	if err == nil {
		e.mu.Lock()
		a.bound = true
		e.mu.Unlock()
	}
	return err
}
