package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/controller"
	"github.com/coxswain-sched/coxswain/service/endpoints"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// services is the controller of services of one server, with its hub: production code. What it asks of
// control passes a gate on its way, and another one on the way back.
type services struct {
	*controller.Controller
	hub  *endpoints.Hub
	stop context.CancelFunc
}

// startServices starts the controller of a server that has opened.
func (w *World) startServices(s *server) {
	if !w.opt.Services {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	hub := endpoints.New(endpoints.Config{})
	p := &plane{Plane: controller.NewPlane(s.control), w: w, s: s, hub: hub, ready: map[string][]job.Part{}}
	s.services = &services{Controller: controller.New(controller.Config{Plane: p, Hub: hub, PageEach: 24 * time.Hour, Round: p.awaitTurn}), hub: hub, stop: stop}
	go hub.Run(ctx)
	go hub.Follow(ctx, "main", &endpointWatch{w, s})
	go s.services.Run(ctx)
	w.postLoad(s)
}

// stopServices ends the controller of a server.
func (s *server) stopServices() {
	if s.services != nil {
		s.services.stop()
	}
}

// loadEach is how often a gateway posts its load.
const loadEach = 3 * time.Second

// postLoad is a gateway: it posts how many requests are in flight, for as long as the server lives.
func (w *World) postLoad(s *server) {
	l := api.GatewayLoad{Gateway: "g"}
	for _, name := range w.scaled {
		l.Services = append(l.Services, api.ServiceLoad{Service: name, Requests: uint64(w.elapsedTime() / time.Second), InFlight: map[string]int{"all": w.load}})
	}
	if len(w.scaled) > 0 {
		s.services.hub.PutLoad(l)
		w.gateAfter(s, s.name+" hears of the load", loadEach, func(string) { w.postLoad(s) }).quiet = true
	}
}

// plane is the control plane as the controller of services sees it.
type plane struct {
	controller.Plane
	w   *World
	s   *server
	hub *endpoints.Hub

	// ready has for each service the replicas that got requests when its last decision began. It belongs to
	// the controller's goroutine.
	ready map[string][]job.Part
}

// errLost is what the controller hears whose answer was lost.
var errLost = fault.New(fault.Unavailable, "the control plane does not answer")

// call passes a request through the gates: it may be made twice, and its answer may come late or never.
func (p *plane) call(ctx context.Context, what string, do func() error) error {
	key := p.s.name + " services " + what
	twice, err := p.w.passGate(ctx, p.s, key, false, func(key string, answer func(any, error)) {
		answer(p.w.faultAt(PlaneCallDoubled, key), nil)
	})
	if err != nil {
		return err
	}
	said := do()
	if twice.(bool) {
		if _, err := p.w.passGate(ctx, p.s, key+" again", false, func(_ string, answer func(any, error)) { answer(nil, nil) }); err != nil {
			return err
		}
		_ = do() // its answer is the one that is lost
	}
	_, err = p.w.passGate(ctx, p.s, key+": the answer", false, func(key string, answer func(any, error)) {
		later := func(what string, from, to time.Duration, err error) {
			p.w.gateAfter(p.s, key+": "+what, p.w.dice.streamFor(what, key).durationBetween(from, to), func(string) { answer(nil, err) })
		}
		switch {
		case p.w.faultAt(PlaneAnswerLost, key):
			later("the caller gives up", time.Second, 10*time.Second, errLost)
		case p.w.faultAt(PlaneAnswerLate, key):
			later("it comes late", 5*time.Second, 40*time.Second, said)
		default:
			answer(nil, said)
		}
	})
	return err
}

// awaitTurn waits until nothing else moves.
func (p *plane) awaitTurn(ctx context.Context) {
	_, _ = p.w.passGate(ctx, p.s, p.s.name+" services go on", false, func(_ string, answer func(any, error)) { answer(nil, nil) })
}

// Parts begins a decision: it waits until nothing else moves, and what is known then is what the decision
// is judged by.
func (p *plane) Parts(ctx context.Context, name string) ([]controller.Part, error) {
	_, err := p.w.passGate(ctx, p.s, p.s.name+" looks at "+name, false, func(_ string, answer func(any, error)) { answer(nil, nil) })
	if err != nil {
		return nil, err
	}
	parts, err := p.Plane.Parts(ctx, name)
	p.ready[name] = nil
	for i := range parts {
		v := &parts[i].View
		r, known := p.hub.Replica(v.Job.ID)
		if known && r.Ready && r.Ref == v.Ref && v.Job.State == job.Running && v.Job.Flags&job.Uncertain == 0 && !parts[i].Ending {
			p.ready[name] = append(p.ready[name], parts[i].Part)
		}
	}
	return parts, err
}

func (p *plane) SetDocument(ctx context.Context, by job.Actor, s controller.Stored) error {
	var d service.Document
	if err := json.Unmarshal(s.Payload, &d); err != nil {
		return err
	}
	p.tellLater(model.Planned{Controller: s.Controller, Document: &d, Ready: slices.Clone(p.ready[s.Controller])})
	return p.call(ctx, "keep "+s.Controller, func() error { return p.Plane.SetDocument(ctx, by, s) })
}

func (p *plane) RemoveDocument(ctx context.Context, by job.Actor, name string) error {
	return p.call(ctx, "forget "+name, func() error { return p.Plane.RemoveDocument(ctx, by, name) })
}

func (p *plane) Submit(ctx context.Context, part job.Part, s control.Submission) (out control.Accepted, err error) {
	what := fmt.Sprintf("submit %s of revision %d, try %d", s.Spec.Name, part.Revision, part.Try)
	err = p.call(ctx, what, func() (err error) { out, err = p.Plane.Submit(ctx, part, s); return err })
	return out, err
}

func (p *plane) Change(ctx context.Context, by job.Actor, ids []job.ID, op control.Op) (errs []error, err error) {
	// Its number is one that no other request has: the same end asked for again is the same request.
	p.tellLater(model.Asked{N: -int(ids[0]), Request: model.Request{Epoch: p.s.epoch, Verb: model.Cancel, Jobs: slices.Clone(ids)}})
	err = p.call(ctx, fmt.Sprint("end ", ids), func() (err error) { errs, err = p.Plane.Change(ctx, by, ids, op); return err })
	return errs, err
}

// tellLater tells the model a fact once everything is at rest, unless the server is dead.
func (p *plane) tellLater(f model.Fact) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if !p.s.dead {
		p.w.later = append(p.w.later, f)
	}
}

// askServices asks the newest leader's services, in a goroutine of its own. What they answer is for
// people.
func (w *World) askServices(name string, do func(ctx context.Context, c *services) error) {
	s := w.newestLeader()
	if s == nil || s.services == nil {
		w.gateAfter(nil, name+" asks again", 2*time.Second, func(string) { w.askServices(name, do) })
		return
	}
	go func() {
		err := do(context.Background(), s.services)
		w.mu.Lock()
		defer w.mu.Unlock()
		if fault.KindOf(err) == fault.Unavailable && !w.asks[name] { // it may have been done
			w.asks[name] = true
			w.gateAt(nil, w.uniqueKey(name+" asks again"), w.elapsedTime()+5*time.Second, func(string) { w.askServices(name, do) })
		}
	}()
}
