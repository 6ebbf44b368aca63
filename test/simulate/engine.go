package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// driver is the engine as one server sees it: over a network that loses and delays.
type driver struct {
	w *World
	s *server
}

var (
	_ engine.Engine    = (*driver)(nil)
	_ engine.Suspender = (*driver)(nil)
	_ engine.Regrouper = (*driver)(nil)
)

// errSense is an answer that is none.
var errSense = fault.New(fault.Internal, "the engine says something that makes no sense")

// errNoAnswer is what a caller hears who gave up.
var errNoAnswer = fault.New(fault.Unavailable, "the engine does not answer")

// callEngine sends a call to the engine. do runs there; told, unless nil, runs when its
// answer comes back.
func (d *driver) callEngine(ctx context.Context, verb string, ref engine.Ref, do func(*fake.Engine) (any, error), told func(any, error)) (any, error) {
	key := d.s.name + " " + verb
	if ref != (engine.Ref{}) {
		key += " " + ref.String()
	}
	sent := d.w.dice.happensOnce("sent", key, 500) && !isOrdered(verb)
	c := &call{w: d.w, s: d.s, life: d.w.machine.life.Load(), led: d.w.led.Load(), verb: verb, ref: ref, do: do, told: told}
	return d.w.passGate(ctx, d.s, key, sent, func(key string, answer func(any, error)) {
		c.key, c.answer = key, answer
		c.arriveAtEngine()
	})
}

// call is one call on its way.
type call struct {
	w      *World
	s      *server
	life   int64  // of the engine when it was sent
	led    uint64 // the newest epoch then
	key    string
	verb   string
	ref    engine.Ref
	do     func(*fake.Engine) (any, error)
	told   func(any, error)
	answer func(any, error)
}

// callAfter lets something happen to the call a while later.
func (c *call) callAfter(what string, from, to time.Duration, do func()) {
	d := c.w.dice.streamFor(what, c.key).durationBetween(from, to)
	c.w.gateAfter(nil, c.key+": "+what, d, func(string) { do() })
}

// arriveAtEngine is the call at the engine.
func (c *call) arriveAtEngine() {
	w := c.w
	switch {
	case w.faultAt(CallLost, c.key):
		c.callAfter("the caller gives up", time.Second, 20*time.Second, func() { c.answer(nil, errNoAnswer) })
		return
	case !isOrdered(c.verb) && w.faultAt(CallLate, c.key):
		c.callAfter("the caller gives up", time.Second, 20*time.Second, func() { c.answer(nil, errNoAnswer) })
		c.callAfter("it arrives late", 5*time.Second, 100*time.Second, func() { _, _ = c.carryOut() })
		return
	case c.verb == "launch" && w.faultAt(CallRefused, c.key):
		c.sendBack(nil, fault.New(fault.Invalid, "the engine does not take this"))
		return
	case c.verb == "launch" && w.faultAt(CallFull, c.key):
		c.sendBack(nil, fault.New(fault.Exhausted, "the engine has no room for this"))
		return
	}
	v, err := c.carryOut()
	if !isOrdered(c.verb) && w.faultAt(CallDoubled, c.key) {
		c.callAfter("it arrives again", 0, 30*time.Second, func() { _, _ = c.carryOut() })
	}
	switch {
	case w.faultAt(AnswerLost, c.key):
		c.callAfter("the caller gives up", time.Second, 20*time.Second, func() { c.answer(nil, errNoAnswer) })
	case w.faultAt(AnswerWrong, c.key):
		c.sendBack(nil, errSense)
	case w.faultAt(AnswerLate, c.key):
		c.callAfter("the answer comes late", 5*time.Second, 100*time.Second, func() { c.hearAnswer(v, err) })
	default:
		c.sendBack(v, err)
	}
}

// carryOut lets the engine do what it is asked.
func (c *call) carryOut() (any, error) {
	m := c.w.machine
	if m.driver == nil || m.life.Load() != c.life {
		return nil, errNoAnswer
	}
	switch c.verb {
	case "launch", "stop", "signal", "forget", "suspend", "resume":
		c.w.tellFact(model.Called{Epoch: c.s.epoch, Led: c.led, Verb: c.verb, Ref: c.ref})
	}
	return c.do(m.driver)
}

// sendBack sends an answer.
func (c *call) sendBack(v any, err error) {
	key := c.key + ": the answer"
	c.w.gateAfter(c.s, key, c.w.drawLatency(key), func(string) { c.hearAnswer(v, err) })
}

func (c *call) hearAnswer(v any, err error) {
	if c.s.dead {
		return
	}
	if c.told != nil {
		c.told(v, err)
	}
	if err != nil {
		c.w.addStory("    answer: %v", err)
	}
	c.answer(v, err)
}

// tellNothing tells the model that the engine is certain to have nothing of an attempt.
func (d *driver) tellNothing(ref engine.Ref, err error) {
	if err != nil && fault.KindOf(err) == fault.NotFound {
		d.w.tellFact(model.Heard{Epoch: d.s.epoch, Ref: ref})
	}
}

// Info is engine.Engine's. It is no call: it says what never changes, and what depends on
// it is shown to people alone.
func (d *driver) Info(context.Context) (engine.Info, error) {
	return engine.Info{Name: "fake", Version: "1", Abilities: engine.Abilities{Gang: engine.GangStrict, Placed: true, Elastic: true}}, nil
}

// Nodes is engine.Engine's.
func (d *driver) Nodes(ctx context.Context) ([]fleet.Node, error) {
	v, err := d.callEngine(ctx, "nodes", engine.Ref{}, func(*fake.Engine) (any, error) { return d.w.machine.listNodes(), nil }, nil)
	if err != nil {
		return nil, err
	}
	return v.([]fleet.Node), nil
}

// Launch is engine.Engine's.
func (d *driver) Launch(ctx context.Context, l *engine.Launch) error {
	_, err := d.callEngine(ctx, "launch", l.Ref, func(e *fake.Engine) (any, error) { return nil, e.Launch(context.Background(), l) },
		func(_ any, err error) {
			if err != nil && fault.KindOf(err) != fault.Unavailable { // it may be given up now
				d.w.tellFact(model.Heard{Epoch: d.s.epoch, Ref: l.Ref, Refused: true})
			}
		})
	return err
}

// Stop is engine.Engine's.
func (d *driver) Stop(ctx context.Context, ref engine.Ref, s engine.Stop) error {
	_, err := d.callEngine(ctx, "stop", ref, func(e *fake.Engine) (any, error) { return nil, e.Stop(context.Background(), ref, s) },
		func(_ any, err error) { d.tellNothing(ref, err) })
	return err
}

// Signal is engine.Engine's.
func (d *driver) Signal(ctx context.Context, ref engine.Ref, signal int, to engine.Scope) error {
	_, err := d.callEngine(ctx, "signal", ref, func(e *fake.Engine) (any, error) { return nil, e.Signal(context.Background(), ref, signal, to) }, nil)
	return err
}

// Inspect is engine.Engine's.
func (d *driver) Inspect(ctx context.Context, ref engine.Ref) (engine.Report, error) {
	v, err := d.callEngine(ctx, "inspect", ref, func(e *fake.Engine) (any, error) { return e.Inspect(context.Background(), ref) },
		func(v any, err error) {
			if err == nil {
				r := v.(engine.Report)
				d.w.tellFact(model.Heard{Epoch: d.s.epoch, Ref: ref, Report: &r, Aside: true})
			}
		})
	if err != nil {
		return engine.Report{}, err
	}
	return v.(engine.Report), nil
}

// List is engine.Engine's.
func (d *driver) List(ctx context.Context) ([]engine.Report, error) {
	v, err := d.callEngine(ctx, "list", engine.Ref{}, func(e *fake.Engine) (any, error) {
		all, err := e.List(context.Background())
		if key := d.s.name + " list" + fmt.Sprint(d.w.out.Events); len(all) > 0 && d.w.faultAt(ListShort, key) {
			i := d.w.dice.streamFor("short", key).intBelow(len(all))
			all = slices.Delete(slices.Clone(all), i, i+1)
		}
		return all, err
	}, nil)
	if err != nil {
		return nil, err
	}
	return v.([]engine.Report), nil
}

// Forget is engine.Engine's.
func (d *driver) Forget(ctx context.Context, ref engine.Ref) error {
	_, err := d.callEngine(ctx, "forget", ref, func(e *fake.Engine) (any, error) { return nil, e.Forget(context.Background(), ref) }, nil)
	return err
}

// isOrdered reports whether calls of a verb overtake none of the same server's: an engine
// has no number by which it could tell which of two is the later one.
func isOrdered(verb string) bool { return verb == "suspend" || verb == "resume" }

// Suspend is engine.Suspender's.
func (d *driver) Suspend(ctx context.Context, ref engine.Ref) error {
	_, err := d.callEngine(ctx, "suspend", ref, func(e *fake.Engine) (any, error) { return nil, e.Suspend(context.Background(), ref) }, nil)
	return err
}

// Resume is engine.Suspender's.
func (d *driver) Resume(ctx context.Context, ref engine.Ref) error {
	_, err := d.callEngine(ctx, "resume", ref, func(e *fake.Engine) (any, error) { return nil, e.Resume(context.Background(), ref) }, nil)
	return err
}

// Regroup is engine.Regrouper's.
func (d *driver) Regroup(ctx context.Context, ref engine.Ref, r engine.Roster) error {
	_, err := d.callEngine(ctx, "regroup", ref, func(e *fake.Engine) (any, error) { return nil, e.Regroup(context.Background(), ref, r) }, nil)
	return err
}

// Close is engine.Engine's; the machine has its own.
func (d *driver) Close() error { return nil }
