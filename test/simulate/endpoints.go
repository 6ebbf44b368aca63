package simulate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/job"
)

// endpointWatch is the engine's news of endpoints as one server gets them.
type endpointWatch struct {
	w *World
	s *server
}

var _ engine.EndpointWatcher = (*endpointWatch)(nil)

// newsStream is a watch of endpoints on its way to one server.
type newsStream struct {
	s       *server
	deliver chan engine.Endpoints
	broken  chan struct{} // closed when the connection is gone
	ended   bool
}

func (n *newsStream) endNews() {
	if !n.ended {
		n.ended = true
		close(n.broken)
	}
}

// WatchEndpoints is engine.EndpointWatcher's. News come through gates, one at a time.
func (e *endpointWatch) WatchEndpoints(ctx context.Context, f func(engine.Endpoints) error) error {
	w, s := e.w, e.s
	v, err := w.passGate(ctx, s, s.name+" watches endpoints", false, func(key string, answer func(any, error)) {
		if w.machine.driver == nil || w.faultAt(CallLost, key) {
			answer(nil, errNoAnswer)
			return
		}
		n := &newsStream{s: s, deliver: make(chan engine.Endpoints, 64), broken: make(chan struct{})}
		w.machine.news = append(w.machine.news, n)
		for _, ref := range slices.SortedFunc(maps.Keys(w.machine.serving), compareRefs) {
			w.sendNews(n, *w.machine.serving[ref])
		}
		answer(n, nil)
	})
	if err != nil {
		return err
	}
	n := v.(*newsStream)
	for {
		select {
		case told := <-n.deliver:
			if err := f(told); err != nil {
				return err
			}
		case <-n.broken:
			return errNoAnswer
		case <-s.gone:
			return errGone
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sendNews puts news on their way. They may overtake each other, come late, twice, or be lost with the
// watch.
func (w *World) sendNews(n *newsStream, e engine.Endpoints) {
	key := fmt.Sprintf("%s hears that %s is ready: %v", n.s.name, e.Ref, e.Ready)
	w.gateAfter(n.s, key, w.drawLatency(key+fmt.Sprint(e.Version)), func(key string) {
		hand := func(string) {
			select {
			case n.deliver <- e:
			default:
				n.endNews() // it does not read
			}
		}
		switch {
		case n.ended:
		case w.faultAt(NewsLost, key):
			n.endNews()
		case w.faultAt(NewsLate, key):
			w.gateAfter(n.s, key+" late", w.dice.streamFor("late", key).durationBetween(time.Second, 40*time.Second), hand)
		case w.faultAt(NewsDoubled, key):
			w.gateAfter(n.s, key+" again", w.dice.streamFor("again", key).durationBetween(0, 10*time.Second), hand)
			fallthrough
		default:
			hand(key)
		}
	})
}

// noteServing hears of the start and the end of an attempt of a replica.
func (m *machine) noteServing(r engine.Report) {
	launched, ours := m.replicas[r.Ref]
	switch {
	case !ours:
	case r.Phase == engine.Ended:
		delete(m.replicas, r.Ref)
		if e := m.serving[r.Ref]; e != nil {
			delete(m.serving, r.Ref)
			m.changeServing(engine.Endpoints{Ref: e.Ref, Job: e.Job, Version: e.Version + 1})
		}
	case r.Phase == engine.Running && m.serving[r.Ref] == nil:
		e := engine.Endpoints{Ref: r.Ref, Job: r.Job, Version: 1, List: []engine.Endpoint{{Port: "http", Host: "10.0.0.1", Number: 20000 + int(r.Job)}}}
		m.serving[r.Ref] = &e
		m.changeServing(e)
		if launched.never && !m.w.calm {
			return
		}
		d := m.w.dice.streamFor("ready", launched.key)
		m.probeAfter(launched.key, r.Ref, true, d.durationBetween(100*time.Millisecond, 6*time.Second))
		if d.happensIn(25) { // its probe fails for a while
			from := d.durationBetween(10*time.Second, 60*time.Second)
			m.probeAfter(launched.key, r.Ref, false, from)
			m.probeAfter(launched.key, r.Ref, true, from+d.durationBetween(time.Second, 30*time.Second))
		}
	}
}

// probeAfter has the probe of a replica pass or fail after a while.
func (m *machine) probeAfter(key string, ref engine.Ref, ready bool, after time.Duration) {
	m.w.gateAfter(nil, fmt.Sprintf("the probe of %s passes: %v", key, ready), after, func(string) {
		if e := m.serving[ref]; e != nil && e.Ready != ready && (ready || !m.w.calm) {
			e.Ready, e.Version = ready, e.Version+1
			m.changeServing(*e)
		}
	})
}

// changeServing tells every server's watch.
func (m *machine) changeServing(e engine.Endpoints) {
	m.news = slices.DeleteFunc(m.news, func(n *newsStream) bool { return n.ended || n.s.dead })
	for _, n := range slices.SortedFunc(slices.Values(m.news), func(a, b *newsStream) int { return cmp.Compare(a.s.name, b.s.name) }) {
		m.w.sendNews(n, e)
	}
}

// replica is what is drawn for an attempt of a service.
type replica struct {
	key   string
	never bool // its probe never passes
}

// replicaOutcome says what becomes of an attempt of a service: it runs until it is ended, but those of
// bad revisions and some others. Once the faults have stopped, all are good.
func (m *machine) replicaOutcome(l *engine.Launch, key string) fake.Outcome {
	part := l.Job.Spec.Part
	s := m.w.dice.streamFor("replica", key)
	o := fake.Outcome{Ready: s.durationBetween(0, 2*time.Second), Run: fake.Never}
	r := replica{key: key}
	revision := m.w.dice.streamFor("revision", fmt.Sprint(part.Controller, part.Revision))
	kind := revision.intBelow(100)
	switch {
	case m.w.opt.Calm && part.Index == 0 && part.Revision == 1 && part.Try == 0 && l.Ref.Attempt == 1:
		o.Run = 15 * time.Second
	case m.w.calm, m.w.opt.Calm:
	case kind < 20:
		o.Run = s.durationBetween(0, 4*time.Second)
	case kind < 35:
		r.never = true
	case s.happensIn(12):
		o.Run = s.durationBetween(5*time.Second, 90*time.Second)
	}
	o.Exit.Code = job.ExitCode{Status: s.intBelow(3)}
	m.replicas[l.Ref] = r
	return o
}
