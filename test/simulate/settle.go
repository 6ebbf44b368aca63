package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// calmDown ends the faults: the engine and its nodes come back, the disk has room,
// nodes are let back, and a server is there.
func (w *World) calmDown() {
	if len(w.out.Broken) > 0 {
		return
	}
	w.out.Events0 = w.out.Events
	w.say("the faults stop")
	w.calm, w.full, w.slow = true, false, 1
	m := w.machine
	m.again()
	clear(m.gone)
	for _, n := range m.nodes {
		if n.State != fleet.Up {
			m.set(n.Name, fleet.Up, "")
		}
		m.world.Return(n.Name)
	}
	for _, ref := range slices.SortedFunc(maps.Keys(m.phases), compareRefs) {
		m.world.Release(ref)
	}
	if len(w.servers) == 0 {
		w.open()
	}
	w.rest()
}

// Settling lasts as long as anything can still end, but not for ever.
const (
	settleStep = 2 * time.Minute
	settleMost = 3 * time.Hour
)

// settle lets the world come to rest and has the model judge how it ended.
func (w *World) settle() {
	resumed := false
	from := w.now()
	for quiet := 0; len(w.out.Broken) == 0 && w.now()-from < settleMost; {
		w.run(w.now() + settleStep)
		w.tell(model.Rested{})
		if len(w.out.Broken) > 0 {
			return
		}
		if !resumed && w.leader() != nil {
			resumed = true
			for _, n := range w.machine.nodes {
				w.drain("in the end, "+n.Name, n.Name, false)
				w.rest()
				w.run(w.now() + time.Second)
			}
			continue
		}
		w.wake()
		if w.done() {
			if quiet++; quiet == 2 {
				break
			}
		} else {
			quiet = 0
		}
	}
	if len(w.out.Broken) > 0 {
		return
	}
	w.look(true)
	s := w.leader()
	if s == nil {
		w.broken("no server is there after %s without faults", settleMost)
		return
	}
	w.tell(model.Now{At: wall{w, s}.Now()})
	w.tell(model.Settled{Sight: w.sight(s, true)})
}

// wake lets go on what somebody suspended.
func (w *World) wake() {
	s := w.leader()
	if s == nil {
		return
	}
	for _, j := range w.sight(s, false).Jobs {
		if j.State == job.Suspended {
			w.alter(fmt.Sprintf("in the end, job %d goes on", j.ID), model.Resume, 0, []job.ID{j.ID}, control.Suspend{})
			w.rest()
		}
	}
}

// done reports whether nothing runs and nothing waits that will end by itself.
func (w *World) done() bool {
	s := w.leader()
	if s == nil || !w.idle(s) {
		return false
	}
	for _, j := range w.sight(s, false).Jobs {
		if j.State.Holds() || j.State == job.Pending && j.Flags&job.Held == 0 && !stuck(j) {
			return false
		}
	}
	return true
}

// stuck reports whether a waiting job waits for another one that may be held, or for
// what the rules may never allow, or stands in line behind one that does.
func stuck(j model.Job) bool {
	switch j.Why.Code {
	case reason.Dependency, reason.DependNever, reason.Priority, reason.ArrayLimit, reason.Quota, reason.Licenses:
		return true
	case reason.Reservation:
		return j.Why.Until == 0
	}
	return j.Why.Code.Limit() != ""
}

func compareRefs(a, b engine.Ref) int {
	return cmp.Or(cmp.Compare(a.Allocation, b.Allocation), cmp.Compare(a.Attempt, b.Attempt))
}

// broken notes what the world itself found.
func (w *World) broken(format string, args ...any) {
	v := model.Violation{Promise: model.Account, Rule: "rest", Text: fmt.Sprintf(format, args...)}
	w.say("!!! %s", v)
	w.out.Broken = append(w.out.Broken, v)
}
