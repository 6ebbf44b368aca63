package simulate

import (
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// drawOutrages are what goes wrong at times of its own: with the engine, its nodes, the
// server and the clock.
func (w *World) drawOutrages(span time.Duration) (acts []Act) {
	s := w.dice.streamFor("outrages", "")
	for i := range 2 + s.intBelow(5) {
		name := fmt.Sprintf("o%d", i+1)
		d := w.dice.streamFor("outrage", name)
		node := w.machine.nodes[d.intBelow(len(w.machine.nodes))].Name
		at, long := d.durationBetween(time.Second, span), d.durationBetween(time.Second, 90*time.Second)
		kind := pickOne(d, EngineRestart, EngineDown, EngineAmnesia, NodeLost, NodeSilent, NodeGone,
			CrashAnywhere, FollowedAnywhere, ClockForward, ClockBack, Slow)
		jump := d.durationBetween(time.Second, 20*time.Minute)
		if d.happensIn(50) {
			jump /= 60
		}
		acts = append(acts, Act{Name: fmt.Sprintf("%s %s", name, kind), At: at, Do: func(w *World) {
			if !w.calm {
				w.injectOutrage(kind, name, node, long, jump)
			}
		}})
	}
	return acts
}

// injectOutrage lets one happen.
func (w *World) injectOutrage(kind Fault, name, node string, long, jump time.Duration) {
	m := w.machine
	w.out.Faults[kind]++
	w.addStory("*** %s", kind)
	later := func(what string, do func()) {
		w.gateAfter(nil, name+": "+what, long, func(string) { do() })
	}
	switch kind {
	case EngineRestart:
		m.stopDriver()
		m.reopenDriver()
	case EngineDown:
		m.stopDriver()
		later("the engine is back", m.reopenDriver)
	case EngineAmnesia:
		m.stopDriver()
		m.wipeEngine()
		later("the engine is back", m.reopenDriver)
	case NodeLost:
		m.setNodeState(node, fleet.Down, "it was lost")
		m.world.Lose(node)
		later("the node is back", func() { m.setNodeState(node, fleet.Up, "") })
	case NodeSilent:
		m.setNodeState(node, fleet.Unknown, "it does not answer")
		m.world.Silence(node)
		later("the node answers", func() { m.setNodeState(node, fleet.Up, ""); m.world.Return(node) })
	case NodeGone:
		m.gone[node] = true
		later("the node is listed again", func() { delete(m.gone, node) })
	case CrashAnywhere:
		if s := w.newestLeader(); s != nil {
			w.killServer(s, "it was killed")
		}
	case FollowedAnywhere:
		w.openServer()
	case ClockForward:
		w.offset.Add(int64(jump))
		w.tellFact(model.Jumped{By: jump})
	case ClockBack:
		w.offset.Add(-int64(jump))
		w.tellFact(model.Jumped{By: -jump})
	case Slow:
		w.slow = 20
		later("everything is fast again", func() { w.slow = 1 })
	}
}
