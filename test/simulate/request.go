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

// sendRequest sends a request to the newest leader, in a goroutine of its own.
func (w *World) sendRequest(name string, r model.Request, do func(ctx context.Context, c *control.Control, a *answered)) {
	s := w.newestLeader()
	if s == nil {
		w.addStory("nobody is there to be asked")
		w.gateAfter(nil, name+" asks again", 2*time.Second, func(string) { w.sendRequest(name, r, do) })
		return
	}
	w.asked++
	a := answered{n: w.asked, name: name, s: s}
	r.Epoch = s.epoch
	w.tellFact(model.Asked{N: a.n, Request: r})
	ctx, cancel := context.WithCancel(context.Background())
	if w.faultAt(ClientGone, name) {
		w.gateAfter(nil, name+": the client gives up", w.dice.streamFor("gone", name).durationBetween(0, time.Second), func(string) { cancel() })
	}
	if r.Verb == model.Submit && w.faultAt(BlobFails, name) {
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

// noteAnswer notes what a request was told. Who asked a server that was killed has no
// answer.
func (w *World) noteAnswer(a answered) {
	a.s.asked--
	if a.s.dead {
		a.err, a.first, a.errs = fault.New(fault.Unavailable, "the server is gone"), 0, nil
	}
	if a.first != 0 && a.err == nil {
		w.jobs[a.name], w.tasks[a.name] = a.first, a.tasks
	}
	w.tellFact(model.Answered{N: a.n, First: a.first, Err: a.err, Errs: a.errs})
}

// submitJob asks to run a job.
func (w *World) submitJob(name string, spec *job.Spec) {
	w.sendRequest(name, model.Request{Verb: model.Submit, Spec: spec}, func(ctx context.Context, c *control.Control, a *answered) {
		acc, err := c.Submit(ctx, control.Submission{Spec: spec, Script: []byte("#!/bin/sh\n# " + name), By: user})
		a.first, a.tasks, a.err = acc.ID, acc.Tasks, err
	})
}

// alterJobs asks to change jobs.
func (w *World) alterJobs(name string, verb model.Verb, limit uint32, ids []job.ID, op control.Op) {
	w.sendRequest(name, model.Request{Verb: verb, Jobs: ids, Limit: limit}, func(ctx context.Context, c *control.Control, a *answered) {
		a.errs, a.err = c.Change(ctx, user, ids, op)
	})
}

// drainNode asks to keep work off a node, or to let it back.
func (w *World) drainNode(name, node string, on bool) {
	verb := model.Undrain
	if on {
		verb = model.Drain
	}
	w.sendRequest(name, model.Request{Verb: verb, Nodes: []string{node}}, func(ctx context.Context, c *control.Control, a *answered) {
		a.err = c.SetNodes(ctx, user, []string{node}, on, "a simulated reason")
	})
}

// drawChange is a request about jobs or nodes that are there.
func (w *World) drawChange(name string, at time.Duration, subs []string, d *stream) Act {
	target := subs[d.intBelow(len(subs))]
	other := subs[d.intBelow(len(subs))]
	task := d.intBelow(4)
	node := w.machine.nodes[d.intBelow(len(w.machine.nodes))].Name
	act := func(text string, verb model.Verb, op control.Op) Act {
		return Act{Name: name + " " + text + " " + target, At: at, Do: func(w *World) {
			if id, ok := w.jobs[target]; ok {
				w.alterJobs(name, verb, 0, []job.ID{id + job.ID(w.offsetOf(target, task))}, op)
			}
		}}
	}
	if p := w.dice.streamFor("pause", name); p.happensIn(25) {
		if p.happensIn(60) {
			return act("suspends", model.Suspend, control.Suspend{On: true})
		}
		return act("resumes", model.Resume, control.Suspend{})
	}
	switch r := d.intBelow(100); {
	case r < 22:
		return act("cancels", model.Cancel, control.Cancel{Grace: pickOne(d, -1, 0, 5*time.Second), Message: "no longer wanted"})
	case r < 30:
		return act("holds", model.Hold, control.Hold{On: true})
	case r < 40:
		return act("releases", model.Release, control.Hold{})
	case r < 54:
		return act("requeues", model.Requeue, control.Requeue{})
	case r < 58:
		return act("requeues and holds", model.Requeue, control.Requeue{Hold: true})
	case r < 62:
		return act("signals", model.Other, control.Signal{Signal: pickOne(d, 10, 15), To: engine.ToAll})
	case r < 65:
		return act("moves to the top", model.Other, control.Top{})
	case r < 70:
		return w.cancelBoth(name, at, target, other)
	case r < 76:
		limit := uint32(d.intBelow(3))
		return Act{Name: fmt.Sprintf("%s lets %d tasks run of %s", name, limit, target), At: at, Do: func(w *World) {
			if id, ok := w.jobs[target]; ok {
				w.alterJobs(name, model.SetLimit, limit, []job.ID{id}, control.Update{MaxRunning: &limit})
			}
		}}
	case r < 88:
		op, text := w.drawUpdate(d)
		return act(text, model.Other, op)
	default:
		on := d.happensIn(60)
		text := map[bool]string{true: "drains", false: "resumes"}[on]
		return Act{Name: name + " " + text + " " + node, At: at, Do: func(w *World) { w.drainNode(name, node, on) }}
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
			w.alterJobs(name, model.Cancel, 0, ids, control.Cancel{Grace: -1})
		}
	}}
}

// drawUpdate is a change of what was asked for.
func (w *World) drawUpdate(d *stream) (control.Update, string) {
	limit := pickOne(d, 20*time.Second, 10*time.Minute)
	priority, requeue := int64(d.intBelow(5)), d.happensIn(50)
	at := w.start.Add(time.Duration(60+d.intBelow(240)) * time.Second)
	switch d.intBelow(5) {
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
