package simulate

import (
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// outrages are what goes wrong at times of its own: with the engine, its nodes, the
// server and the clock.
func (w *World) outrages(span time.Duration) (acts []Act) {
	s := w.dice.stream("outrages", "")
	for i := range 2 + s.n(5) {
		name := fmt.Sprintf("o%d", i+1)
		d := w.dice.stream("outrage", name)
		node := w.machine.nodes[d.n(len(w.machine.nodes))].Name
		at, long := d.between(time.Second, span), d.between(time.Second, 90*time.Second)
		kind := pick(d, EngineRestart, EngineDown, EngineAmnesia, NodeLost, NodeSilent, NodeGone,
			CrashAnywhere, FollowedAnywhere, ClockForward, ClockBack, Slow)
		jump := d.between(time.Second, 20*time.Minute)
		if d.one(50) {
			jump /= 60
		}
		acts = append(acts, Act{Name: fmt.Sprintf("%s %s", name, kind), At: at, Do: func(w *World) {
			if !w.calm {
				w.outrage(kind, name, node, long, jump)
			}
		}})
	}
	return acts
}

// outrage lets one happen.
func (w *World) outrage(kind Fault, name, node string, long, jump time.Duration) {
	m := w.machine
	w.out.Faults[kind]++
	w.say("*** %s", kind)
	later := func(what string, do func()) {
		w.arrive(nil, name+": "+what, long, func(string) { do() })
	}
	switch kind {
	case EngineRestart:
		m.stop()
		m.again()
	case EngineDown:
		m.stop()
		later("the engine is back", m.again)
	case EngineAmnesia:
		m.stop()
		m.wipe()
		later("the engine is back", m.again)
	case NodeLost:
		m.set(node, fleet.Down, "it was lost")
		m.world.Lose(node)
		later("the node is back", func() { m.set(node, fleet.Up, "") })
	case NodeSilent:
		m.set(node, fleet.Unknown, "it does not answer")
		m.world.Silence(node)
		later("the node answers", func() { m.set(node, fleet.Up, ""); m.world.Return(node) })
	case NodeGone:
		m.gone[node] = true
		later("the node is listed again", func() { delete(m.gone, node) })
	case CrashAnywhere:
		if s := w.leader(); s != nil {
			w.kill(s, "it was killed")
		}
	case FollowedAnywhere:
		w.open()
	case ClockForward:
		w.offset.Add(int64(jump))
		w.tell(model.Jumped{By: jump})
	case ClockBack:
		w.offset.Add(-int64(jump))
		w.tell(model.Jumped{By: -jump})
	case Slow:
		w.slow = 20
		later("everything is fast again", func() { w.slow = 1 })
	}
}
