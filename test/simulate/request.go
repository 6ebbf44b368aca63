package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// answered is what a request was told, or not.
type answered struct {
	n     int
	name  string
	s     *server
	first job.ID
	tasks int
	err   error
	errs  []error
}

// user asks for everything.
var user = job.Actor{Name: "ann", UID: 1000, From: "simulation"}

// ask sends a request to the newest leader, in a goroutine of its own.
func (w *World) ask(name string, r model.Request, do func(ctx context.Context, c *control.Control, a *answered)) {
	s := w.leader()
	if s == nil {
		w.say("nobody is there to be asked")
		w.arrive(nil, name+" asks again", 2*time.Second, func(string) { w.ask(name, r, do) })
		return
	}
	w.asked++
	a := answered{n: w.asked, name: name, s: s}
	r.Epoch = s.epoch
	w.tell(model.Asked{N: a.n, Request: r})
	ctx, cancel := context.WithCancel(context.Background())
	if w.fault(ClientGone, name) {
		w.arrive(nil, name+": the client gives up", w.dice.stream("gone", name).between(0, time.Second), func(string) { cancel() })
	}
	if r.Verb == model.Submit && w.fault(BlobFails, name) {
		ctx = context.WithValue(ctx, blobFails{}, errIO)
	}
	s.asked++
	go func() {
		defer cancel()
		do(ctx, s.control, &a)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.heard = append(w.heard, a)
	}()
}

// answer notes what a request was told. Who asked a server that was killed has no
// answer.
func (w *World) answer(a answered) {
	a.s.asked--
	if a.s.dead {
		a.err, a.first, a.errs = fault.New(fault.Unavailable, "the server is gone"), 0, nil
	}
	if a.first != 0 && a.err == nil {
		w.jobs[a.name], w.tasks[a.name] = a.first, a.tasks
	}
	w.tell(model.Answered{N: a.n, First: a.first, Err: a.err, Errs: a.errs})
}

// submit asks to run a job.
func (w *World) submit(name string, spec *job.Spec) {
	w.ask(name, model.Request{Verb: model.Submit, Spec: spec}, func(ctx context.Context, c *control.Control, a *answered) {
		acc, err := c.Submit(ctx, control.Submission{Spec: spec, Script: []byte("#!/bin/sh\n# " + name), By: user})
		a.first, a.tasks, a.err = acc.ID, acc.Tasks, err
	})
}

// alter asks to change jobs.
func (w *World) alter(name string, verb model.Verb, limit uint32, ids []job.ID, op control.Op) {
	w.ask(name, model.Request{Verb: verb, Jobs: ids, Limit: limit}, func(ctx context.Context, c *control.Control, a *answered) {
		a.errs, a.err = c.Change(ctx, user, ids, op)
	})
}

// drain asks to keep work off a node, or to let it back.
func (w *World) drain(name, node string, on bool) {
	verb := model.Undrain
	if on {
		verb = model.Drain
	}
	w.ask(name, model.Request{Verb: verb, Nodes: []string{node}}, func(ctx context.Context, c *control.Control, a *answered) {
		a.err = c.SetNodes(ctx, user, []string{node}, on, "a simulated reason")
	})
}

// change is a request about jobs or nodes that are there.
func (w *World) change(name string, at time.Duration, subs []string, d *stream) Act {
	target := subs[d.n(len(subs))]
	other := subs[d.n(len(subs))]
	task := d.n(4)
	node := w.machine.nodes[d.n(len(w.machine.nodes))].Name
	act := func(text string, verb model.Verb, op control.Op) Act {
		return Act{Name: name + " " + text + " " + target, At: at, Do: func(w *World) {
			if id, ok := w.jobs[target]; ok {
				w.alter(name, verb, 0, []job.ID{id + job.ID(w.offsetOf(target, task))}, op)
			}
		}}
	}
	if p := w.dice.stream("pause", name); p.one(25) {
		if p.one(60) {
			return act("suspends", model.Suspend, control.Suspend{On: true})
		}
		return act("resumes", model.Resume, control.Suspend{})
	}
	switch r := d.n(100); {
	case r < 22:
		return act("cancels", model.Cancel, control.Cancel{Grace: pick(d, -1, 0, 5*time.Second), Message: "no longer wanted"})
	case r < 30:
		return act("holds", model.Hold, control.Hold{On: true})
	case r < 40:
		return act("releases", model.Release, control.Hold{})
	case r < 54:
		return act("requeues", model.Requeue, control.Requeue{})
	case r < 58:
		return act("requeues and holds", model.Requeue, control.Requeue{Hold: true})
	case r < 62:
		return act("signals", model.Other, control.Signal{Signal: pick(d, 10, 15), To: engine.ToAll})
	case r < 65:
		return act("moves to the top", model.Other, control.Top{})
	case r < 70:
		return w.cancelBoth(name, at, target, other)
	case r < 76:
		limit := uint32(d.n(3))
		return Act{Name: fmt.Sprintf("%s lets %d tasks run of %s", name, limit, target), At: at, Do: func(w *World) {
			if id, ok := w.jobs[target]; ok {
				w.alter(name, model.SetLimit, limit, []job.ID{id}, control.Update{MaxRunning: &limit})
			}
		}}
	case r < 88:
		op, text := w.update(d)
		return act(text, model.Other, op)
	default:
		on := d.one(60)
		text := map[bool]string{true: "drains", false: "resumes"}[on]
		return Act{Name: name + " " + text + " " + node, At: at, Do: func(w *World) { w.drain(name, node, on) }}
	}
}

// offsetOf is which task of an array is meant; 0 for what is no array.
func (w *World) offsetOf(target string, task int) int {
	if n := w.tasks[target]; n > 0 {
		return task % n
	}
	return 0
}

func (w *World) cancelBoth(name string, at time.Duration, a, b string) Act {
	return Act{Name: name + " cancels " + a + " and " + b, At: at, Do: func(w *World) {
		var ids []job.ID
		for _, target := range []string{a, b} {
			if id, ok := w.jobs[target]; ok {
				ids = append(ids, id)
			}
		}
		if len(ids) > 0 {
			w.alter(name, model.Cancel, 0, ids, control.Cancel{Grace: -1})
		}
	}}
}

// update is a change of what was asked for.
func (w *World) update(d *stream) (control.Update, string) {
	limit := pick(d, 20*time.Second, 10*time.Minute)
	priority, requeue := int64(d.n(5)), d.one(50)
	at := w.start.Add(time.Duration(60+d.n(240)) * time.Second)
	switch d.n(5) {
	case 0:
		return control.Update{TimeLimit: &limit}, "changes the time limit of"
	case 1:
		return control.Update{Priority: &priority}, "changes the priority of"
	case 2:
		return control.Update{Requeue: &requeue}, "changes whether to requeue"
	case 3:
		return control.Update{Begin: &at}, "changes the begin of"
	}
	return control.Update{Deadline: &at}, "changes the deadline of"
}
