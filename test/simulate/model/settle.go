package model

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

func (f Settled) tellModel(m *Model) {
	f.Sight.tellModel(m)
	for _, a := range m.live {
		switch {
		case len(a.lives) > 0 && !a.isHeld():
			m.addBroken(Ledger, "books", "%s lives on %s at the end of all, and nobody holds it", a.fullName(), joinNames(a.lives))
		case len(a.lives) == 0 && a.isHeld():
			m.addBroken(Ledger, "books", "%s holds %s at the end of all, and nothing of it lives", a.fullName(), formatClaims(a.claims))
		case len(a.lives) > 0 && a.failed:
			m.addBroken(Whole, "undone", "%s failed to start, and part of it is still there on %s", a.fullName(), joinNames(a.lives))
		}
	}
	shown := map[job.ID]*Job{}
	for i := range f.Sight.Jobs {
		shown[f.Sight.Jobs[i].ID] = &f.Sight.Jobs[i]
	}
	for _, w := range m.order {
		j := shown[w.id]
		switch {
		case w.state.Final():
		case j == nil:
			m.addBroken(Account, "final", "job %d is %s at the end of all, and nobody shows it", w.id, w.state)
		case w.state == job.Pending && !m.reasonHolds(w, j.Why, shown):
			m.addBroken(Account, "final", "job %d waits at the end of all because %s, which is not so", w.id, j.Why)
		}
	}
}

func (f Rested) tellModel(m *Model) {
	for _, a := range m.live {
		w := a.job
		odd := w != nil && a.isHeld() && a.begun && len(a.lives) > 0 && !a.ghost && !w.isEnding() && w.taken == "" && !a.back && a.paused != (w.state == job.Suspended)
		switch {
		case !odd:
			a.odd = 0
		case a.odd == w.changed:
			m.addBroken(Ledger, "astray", "%s is %s since record %d, and long since its processes are suspended: %v", a.fullName(), w.state, w.changed, a.paused)
		default:
			a.odd = w.changed
		}
	}
}

// reasonHolds reports whether a reason still holds where nothing happens any more.
func (m *Model) reasonHolds(w *work, why reason.Reason, shown map[job.ID]*Job) bool {
	switch why.Code {
	case reason.HeldUser, reason.HeldAdmin, reason.MaxRequeue:
		return w.isHeld()
	case reason.Dependency, reason.DependNever:
		return w.depends
	case reason.BeginTime, reason.Backoff:
		return why.Until > m.now.Unix()
	case reason.ArrayLimit:
		return w.array != nil && (w.array.openTasks() >= int(w.array.limit) || slices.ContainsFunc(w.array.tasks, func(o *work) bool {
			j := shown[o.id] // it was let through and waits for something else
			return j != nil && o.state == job.Pending && j.Why.Code != reason.ArrayLimit && m.reasonHolds(o, j.Why, shown)
		}))
	case reason.Priority: // those that wait in line with it wait for the same
		return len(m.live) > 0 || m.someNodeDown() || m.isForbidden(w) || m.isBehindStrict(w)
	case reason.Resources, reason.Reserved, reason.Endless:
		return len(m.live) > 0 || m.someNodeDown()
	case reason.NodeCount:
		return m.someNodeDown() || m.tooFewNodes(w.spec)
	case reason.NodeDown, reason.NodeList:
		return m.someNodeDown()
	case reason.TooLarge, reason.Constraint, reason.Partition:
		return true
	case reason.Reservation:
		return m.wantsPastReservation(w) || why.Until > m.now.Unix()
	case reason.Quota, reason.Licenses:
		return m.isForbidden(w)
	}
	return why.Code.Limit() != "" && m.isForbidden(w)
}

// someNodeDown reports whether some node takes no work.
func (m *Model) someNodeDown() bool {
	for _, n := range m.nodes {
		if n.State != fleet.Up || n.drained != 0 {
			return true
		}
	}
	return false
}

// tooFewNodes reports whether there are fewer nodes than a job needs, no two of whose groups could share
// one of them.
func (m *Model) tooFewNodes(spec *job.Spec) bool {
	need := 0
	for i := range spec.Groups {
		g := &spec.Groups[i]
		for j := range spec.Groups[:i] {
			o, shares := &spec.Groups[j], false
			for _, n := range m.nodes {
				shares = shares || !g.Exclusive && !o.Exclusive && g.PerTask.CPU+o.PerTask.CPU <= n.Capacity.CPU
			}
			if shares {
				return false
			}
		}
		need += max(g.Nodes.Min, 1)
	}
	return need > len(m.nodes)
}

func (f Twice) tellModel(m *Model) {
	for i := range max(len(f.A), len(f.B)) {
		a, b := lineAt(f.A, i), lineAt(f.B, i)
		if a != b {
			m.addBroken(Replay, "decisions", "%s: the same was given twice, and line %d differs: first %q, then %q", f.What, i+1, a, b)
			return
		}
	}
}

func lineAt(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return fmt.Sprintf("(only %d lines)", len(list))
}
