package control

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Bounds of a controller.
const (
	mostControllers   = 10_000
	mostControllerDoc = 4 << 20 // bytes
)

// SetController keeps a controller; it is durable when SetController returns. Version has to be the one
// of the present controller and one, or 1 where there is none: otherwise somebody else has changed it
// and the error is fault.Conflict.
func (c *Control) SetController(ctx context.Context, by job.Actor, v state.Controller) error {
	switch kind, _, ok := strings.Cut(v.Name, "/"); {
	case !ok || kind == "" || len(v.Name) > 300:
		return fault.New(fault.Invalid, "%.70q is no name of a controller", v.Name)
	case len(v.Document) > mostControllerDoc:
		return fault.New(fault.Invalid, "controller %s: its document has %d bytes, more than %d", v.Name, len(v.Document), mostControllerDoc).
			Advise("make the file smaller, or its environment")
	case !json.Valid(v.Document):
		return fault.New(fault.Invalid, "controller %s: its document is no JSON", v.Name)
	}
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		now, version := l.state.Controllers.Named(v.Name), uint64(0)
		if now != nil {
			version = now.Version
		}
		switch {
		case v.Version != version+1 || l.changing[v.Name]:
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "controller %s was changed by somebody else", v.Name).Advise("look at it again"))
			return
		case now == nil && len(l.state.Controllers.Names("")) >= mostControllers:
			l.refuseWhenLeading(answer, fault.New(fault.Exhausted, "there are %d services and schedules already", mostControllers).Advise("stop some of them: cox service list, cox schedule list"))
			return
		}
		l.stageFor(l.changeController(v.Name, answer), state.KindController, 0, by, v, nil)
	})
}

// changeController is the request of a change of a controller, of which there is one at a time.
func (l *loop) changeController(name string, answer func(error)) *request {
	l.changing[name] = true
	return &request{answer: func(err error) { delete(l.changing, name); answer(err) }}
}

// RemoveController forgets a controller. Its jobs stay.
func (c *Control) RemoveController(ctx context.Context, by job.Actor, name string) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		switch {
		case l.changing[name]:
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "controller %s is being changed", name).Advise("try again"))
		case l.state.Controllers.Named(name) == nil:
			l.refuseWhenLeading(answer, fault.New(fault.NotFound, "there is no controller %s", name))
		default:
			l.stageFor(l.changeController(name, answer), state.KindControllerGone, 0, by, state.ControllerGone{Name: name}, nil)
		}
	})
}

// Controllers lists the controllers of a kind, by name. What is in them is not to be written to.
func (c *Control) Controllers(kind string) (out []state.Controller) {
	c.state.RLock()
	defer c.state.RUnlock()
	for _, name := range c.state.Controllers.Names(kind + "/") {
		out = append(out, *c.state.Controllers.Named(name))
	}
	return out
}

// Controller returns a controller; fault.NotFound: there is none of that name.
func (c *Control) Controller(name string) (state.Controller, error) {
	c.state.RLock()
	defer c.state.RUnlock()
	if v := c.state.Controllers.Named(name); v != nil {
		return *v, nil
	}
	return state.Controller{}, fault.New(fault.NotFound, "there is no controller %s", name)
}

// Parts lists the jobs in memory that are parts of a controller, ended ones too, by number.
func (c *Control) Parts(controller string) (out []state.View) {
	c.state.RLock()
	defer c.state.RUnlock()
	for _, id := range c.state.Parts.Of(controller) {
		out = append(out, state.ViewOf(c.state.Jobs[id]))
	}
	return out
}

// Drained says that nothing is in flight any more at an attempt that is being ended: the signal to end
// is sent at once, before its time to drain is over. It is no error if the attempt is not the present
// one, or is not being ended.
func (c *Control) Drained(ctx context.Context, ref engine.Ref) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		if e, err := l.state.JobByRef(ref); err == nil {
			l.endDrain(e)
		}
		l.answerWhenLeading(answer)
	})
}

// endDrain repeats the stop of an attempt, without a time to drain.
func (l *loop) endDrain(e *state.JobRecord) {
	if s, ok := l.stopAsked(e); ok {
		l.sendStop(e, s)
	}
}

// stopAsked is how the end of a job's attempt was asked for; ok is false if it was not, or not by a
// stop.
func (l *loop) stopAsked(e *state.JobRecord) (s engine.Stop, ok bool) {
	switch v := e.Last; {
	case v == nil || !e.State.Holds():
		return s, false
	case e.ExtraOrZero().PoolMoves.Under != nil && v.Cancel == nil && v.Expired == nil: // it is withdrawn, if it has not begun
		return s, false
	case v.Cancel != nil:
		return engine.Stop{Grace: v.Cancel.Grace, Signal: v.Cancel.Signal, Reason: "cancelled"}, true
	case v.Expired != nil:
		return v.Expired.Stop(), true
	case v.Requeue != nil:
		return engine.Stop{Grace: l.cfg.Grace, Reason: "requeued", Why: engine.ForRequeue}, true
	case v.Preempted != nil && v.Preempted.Mode != account.PreemptSuspend && !v.Preempted.Warn:
		return engine.Stop{Grace: v.Preempted.Grace, Signal: v.Preempted.Signal, Reason: v.Preempted.Message(), Why: engine.ForPreemption}, true
	case v.Preempted != nil && v.Preempted.Warn && v.Stopped:
		return engine.Stop{Grace: l.cfg.Grace, Reason: v.Preempted.Message(), Why: engine.ForPreemption}, true
	}
	return s, false
}

// partArrival is a submission of a part that is on its way into the journal.
type partArrival struct {
	id      job.ID
	waiting []func(error) // others that submit the same
}

// knownPart answers a submission of a part that has a job, or is getting one. It reports whether it
// does; out.Known is set then.
func (l *loop) knownPart(part *job.Part, out *Accepted, answer func(error)) bool {
	if part == nil || planted.PartTwice {
		return false
	}
	if id := l.state.Parts.JobOf(*part); id != 0 {
		out.ID, out.Known = id, true
		if a := l.state.Jobs[id].Array; a != nil {
			out.ID, out.Tasks = a.First(), len(a.Spec.Indices)
		}
		l.answerWhenLeading(answer)
		return true
	}
	a := l.arriving[*part]
	if a == nil {
		return false
	}
	out.ID, out.Known = a.id, true
	a.waiting = append(a.waiting, answer)
	return true
}

// noteArrival notes that a part is on its way; what it returns answers all who submitted it.
func (l *loop) noteArrival(part *job.Part, id job.ID, answer func(error)) func(error) {
	if part == nil {
		return answer
	}
	a := &partArrival{id: id}
	l.arriving[*part] = a
	return func(err error) {
		delete(l.arriving, *part)
		for _, w := range a.waiting {
			w(err)
		}
		answer(err)
	}
}
