package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// A controller above jobs, as forgetful as one can be: it submits its parts again and again, and asks
// nobody what it has submitted. Two seeds of five have one.
const (
	controllerKind = "sim"
	controllerName = controllerKind + "/c"
)

// controllerActs are what a controller asks for.
func (w *World) controllerActs(span time.Duration) (acts []Act) {
	s := w.dice.streamFor("controller", "")
	if !s.happensIn(40) {
		return nil
	}
	for i := range 4 + s.intBelow(6) {
		name := fmt.Sprintf("c%d", i+1)
		d := w.dice.streamFor("part", name)
		at := d.durationBetween(0, span)
		part := job.Part{Controller: controllerName, Revision: 1, Index: uint32(d.intBelow(2)), Try: uint32(d.intBelow(2))}
		switch r := d.intBelow(10); {
		case r < 2:
			acts = append(acts, Act{name + " keeps a document", at, func(w *World) { w.keepDocument(name) }})
		case r < 3:
			acts = append(acts, Act{name + " forgets its document", at, func(w *World) { w.forgetDocument(name) }})
		case r < 5: // the same is asked for twice at once
			acts = append(acts, partAct(name+"a", at, part, d), partAct(name+"b", at, part, d))
		case r < 6:
			acts = append(acts, partAct(name, at, part, d), Act{name + " is cancelled", at + d.durationBetween(0, 20*time.Second), func(w *World) {
				if id, ok := w.jobs[name]; ok {
					w.alterJobs(name+" cancel", model.Cancel, 0, []job.ID{id}, control.Cancel{Grace: 5 * time.Second})
				}
			}})
		default:
			acts = append(acts, partAct(name, at, part, d))
		}
	}
	return acts
}

// partAct submits a part.
func partAct(name string, at time.Duration, part job.Part, d *stream) Act {
	spec := smallJob(0)
	spec.Name = fmt.Sprintf("part-%d-%d", part.Index, part.Try)
	spec.Part, spec.Requeue = &part, true
	spec.Serve = &job.Serve{Ports: []job.Port{{Name: "http", Number: pickOne(d, 0, 8000)}}, Drain: pickOne(d, 0, 5*time.Second)}
	return Act{fmt.Sprintf("%s submits part %d, try %d", name, part.Index, part.Try), at, func(w *World) { w.submitJob(name, spec) }}
}

// keepDocument writes the controller's document as one who has read it just now.
func (w *World) keepDocument(name string) {
	doc := fmt.Sprintf("%q", name)
	w.sendRequest(name, model.Request{Verb: model.SetController, Text: doc}, func(ctx context.Context, c *control.Control, a *answered) {
		now, _ := c.Controller(controllerName)
		a.err = c.SetController(ctx, user, state.Controller{Name: controllerName, Version: now.Version + 1, Document: json.RawMessage(doc)})
	})
}

func (w *World) forgetDocument(name string) {
	w.sendRequest(name, model.Request{Verb: model.Other}, func(ctx context.Context, c *control.Control, a *answered) {
		a.err = c.RemoveController(ctx, user, controllerName)
	})
}
