package control

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/eligible"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/ledger"
	"github.com/coxswain-sched/coxswain/reason"
	"github.com/coxswain-sched/coxswain/reconcile"
	"github.com/coxswain-sched/coxswain/sched"
)

// schedule tells the core what happened, and stages what it decides. Tasks of an
// array with a limit are let through as far as the limit goes, so a decision can
// never exceed it.
func (l *loop) schedule() {
	events := l.state.events
	l.state.events = nil
	events = append(events, l.gates(events)...)
	now := l.cfg.Clock.Now()
	var proposed []ledger.Allocation
	for _, d := range l.core.Step(l.instant(), events...) {
		switch d := d.(type) {
		case sched.Start:
			if a, ok := l.propose(d); ok {
				proposed = append(proposed, a)
			}
		case sched.Wait:
			if e := l.state.jobs[d.Job]; e != nil {
				e.why = d.Why
				e.why.Since = now.Unix()
				l.state.touch(e.ID)
			}
		}
	}
	for _, a := range proposed { // nothing is held before it is durable
		if err := l.state.led.Free(a.ID, a.Attempt); err != nil {
			panic(fmt.Sprintf("control: take back proposal: %v", err)) // held by propose
		}
		l.stage(kindHeld, a.Job, held{a}, func() { l.launch(l.state.jobs[a.Job], a) }, nil)
	}
}

// instant is the clock's time for the core, which never goes back.
func (l *loop) instant() sched.Instant {
	l.latest = max(l.latest, sched.Instant(l.cfg.Clock.Now().UnixNano()))
	return l.latest
}

// gates compares what eligible says of the pending jobs with what the core was
// told, and returns the differences. It also notes when to look again.
func (l *loop) gates(events []sched.Event) []sched.Event {
	for _, ev := range events {
		if s, ok := ev.(sched.Submitted); ok {
			delete(l.blocked, s.Job)
		}
	}
	now := l.cfg.Clock.Now()
	l.wakeAt = time.Time{}
	open := map[job.ID]int{} // tasks of an array that run or may be started now
	var out []sched.Event
	for _, id := range l.state.order {
		e := l.state.jobs[id]
		if e.State != job.Pending {
			delete(l.blocked, id)
			continue
		}
		facts := eligible.Facts{Now: now, Flags: e.Flags, Begin: e.Spec.Begin}
		if a := e.Array; a != nil && a.MaxRunning > 0 {
			if _, known := open[a.Job]; !known {
				open[a.Job] = l.state.arrayRunning(a.Job, a.Count)
			}
			facts.ArrayLimit, facts.ArrayOpen = int(a.MaxRunning), open[a.Job]
		}
		why := eligible.Check(facts)
		if why.Code == reason.BeginTime && (l.wakeAt.IsZero() || e.Spec.Begin.Before(l.wakeAt)) {
			l.wakeAt = e.Spec.Begin
		}
		if why.Code == reason.None && e.Array != nil {
			open[e.Array.Job]++
		}
		was := l.blocked[id]
		switch {
		case why.Code == was:
		case why.Code == reason.None:
			delete(l.blocked, id)
			out = append(out, sched.Unblocked{Job: id})
		default:
			l.blocked[id] = why.Code
			out = append(out, sched.Blocked{Job: id, Why: why})
		}
	}
	return out
}

// propose verifies a decision against the ledger by holding it there for the rest
// of the pass, so that the next decision is verified with it.
func (l *loop) propose(d sched.Start) (ledger.Allocation, bool) {
	e := l.state.jobs[d.Job]
	a := ledger.Allocation{
		ID: l.state.led.NextID(), Job: d.Job, Attempt: e.Attempt + 1,
		Epoch: l.epoch, Pool: l.cfg.Pool.Name, Status: ledger.Held, Claims: d.Claims,
	}
	if err := l.state.led.Hold(a); err != nil {
		l.cfg.Log.Error("the core proposed what the ledger refuses", "job", e.Name(), "error", err)
		l.state.events = append(l.state.events, sched.Released{Job: d.Job})
		l.state.queue(e)
		return a, false
	}
	return a, true
}

// launch hands an allocation to the engine.
func (l *loop) launch(e *entry, a ledger.Allocation) {
	snapshot := e.Job
	ref := reconcile.Ref(a)
	l.dispatch.Launch(ref, func(ctx context.Context) (*engine.Launch, error) {
		return l.load(ctx, &snapshot, a)
	}, func(err error) {
		_ = l.control.post(l.ctx, l.refused(a.Job, ref, err)) // a closed loop hears nothing more
	})
}

// load reads what an attempt starts with. It runs in a goroutine of dispatch.
func (l *loop) load(ctx context.Context, j *job.Job, a ledger.Allocation) (*engine.Launch, error) {
	out := &engine.Launch{Ref: reconcile.Ref(a), Job: j, Claims: a.Claims, Grace: l.cfg.Grace}
	if h := j.Spec.Program.ScriptHash; h != "" {
		script, err := l.cfg.Store.Blob(ctx, h)
		if err != nil {
			return nil, err
		}
		out.Script = script
	}
	if h := j.Spec.Env.Hash; h != "" {
		env, err := l.cfg.Store.Blob(ctx, h)
		if err != nil {
			return nil, err
		}
		out.Env = splitEnv(env)
	}
	return out, nil
}

func splitEnv(b []byte) (out []string) {
	for _, kv := range bytes.Split(b, []byte{0}) {
		if len(kv) > 0 {
			out = append(out, string(kv))
		}
	}
	return out
}
