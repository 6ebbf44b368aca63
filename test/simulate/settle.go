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
	w.addStory("the faults stop")
	w.calm, w.full, w.slow = true, false, 1
	m := w.machine
	m.reopenDriver()
	clear(m.gone)
	for _, n := range m.nodes {
		if n.State != fleet.Up {
			m.setNodeState(n.Name, fleet.Up, "")
		}
		m.world.Return(n.Name)
	}
	for _, ref := range slices.SortedFunc(maps.Keys(m.phases), compareRefs) {
		m.world.Release(ref)
	}
	for _, ref := range slices.SortedFunc(maps.Keys(m.serving), compareRefs) {
		m.probeAfter(m.replicas[ref].key, ref, true, time.Second)
	}
	if len(w.servers) == 0 {
		w.openServer()
	}
	w.restUntilStill()
}

// Settling lasts as long as anything can still end, but not for ever.
const (
	settleStep = 2 * time.Minute
	settleMost = 3 * time.Hour
)

// settleWorld lets the world come to rest and has the model judge how it ended.
func (w *World) settleWorld() {
	resumed := false
	from := w.elapsedTime()
	for quiet := 0; len(w.out.Broken) == 0 && w.elapsedTime()-from < settleMost; {
		w.runUntil(w.elapsedTime() + settleStep)
		w.tellFact(model.Rested{})
		if len(w.out.Broken) > 0 {
			return
		}
		if !resumed && w.newestLeader() != nil {
			resumed = true
			for _, n := range w.machine.nodes {
				w.drainNode("in the end, "+n.Name, n.Name, false)
				w.restUntilStill()
				w.runUntil(w.elapsedTime() + time.Second)
			}
			continue
		}
		w.resumeSuspended()
		if w.allDone() {
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
	w.showPublished(true)
	s := w.newestLeader()
	if s == nil {
		w.addBroken("no server is there after %s without faults", settleMost)
		return
	}
	w.tellFact(model.Now{At: wall{w, s}.Now()})
	w.tellFact(model.Settled{Sight: w.publishedBy(s, true)})
}

// resumeSuspended lets go on what somebody suspended.
func (w *World) resumeSuspended() {
	s := w.newestLeader()
	if s == nil {
		return
	}
	for _, j := range w.publishedBy(s, false).Jobs {
		if j.State == job.Suspended {
			w.alterJobs(fmt.Sprintf("in the end, job %d goes on", j.ID), model.Resume, 0, []job.ID{j.ID}, control.Suspend{})
			w.restUntilStill()
		}
	}
}

// allDone reports whether nothing runs and nothing waits that will end by itself.
func (w *World) allDone() bool {
	s := w.newestLeader()
	if s == nil || !w.isIdle(s) {
		return false
	}
	for _, j := range w.publishedBy(s, false).Jobs {
		if j.State.Holds() || j.State == job.Pending && j.Flags&job.Held == 0 && !isStuck(j) {
			return false
		}
	}
	return true
}

// isStuck reports whether a waiting job waits for another one that may be held, or for
// what the rules may never allow, or stands in line behind one that does.
func isStuck(j model.Job) bool {
	return isStuckCode(j.Why.Code) || j.Why.Code == reason.Reservation && j.Why.Until == 0 || j.Why.Code.Limit() != ""
}

// isStuckCode reports whether a reason to wait may hold for ever, whatever else it says.
func isStuckCode(c reason.Code) bool {
	switch c {
	case reason.Dependency, reason.DependNever, reason.Priority, reason.ArrayLimit, reason.Quota, reason.Licenses:
		return true
	}
	return false
}

func compareRefs(a, b engine.Ref) int {
	return cmp.Or(cmp.Compare(a.Allocation, b.Allocation), cmp.Compare(a.Attempt, b.Attempt))
}

// addBroken notes what the world itself found.
func (w *World) addBroken(format string, args ...any) {
	v := model.Violation{Promise: model.Account, Rule: "rest", Text: fmt.Sprintf(format, args...)}
	w.addStory("!!! %s", v)
	w.out.Broken = append(w.out.Broken, v)
}
