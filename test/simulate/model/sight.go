package model

import (
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// journaled are the flags that follow from the journal alone.
const journaled = job.Configuring | job.Requeued | job.Held | job.HeldAdmin | job.HeldFailed |
	job.LaunchFailed | job.Stopping | job.Uncertain

func (f Sight) tellModel(m *Model) {
	l := m.leaders[f.Epoch]
	if l == nil || f.Epoch != m.epoch {
		return // one that was followed knows no better
	}
	m.judgeGrants(l, &f)
	if l.lags {
		return // it is not told yet what the journal has
	}
	m.sights++
	for i := range f.Jobs {
		j := &f.Jobs[i]
		w := m.jobs[j.ID]
		if w == nil {
			m.addBroken(Account, "durable", "leader %d shows job %d, which the journal does not have", f.Epoch, j.ID)
			continue
		}
		w.seen = m.sights
		m.compareJob(l, w, j)
	}
	for _, w := range m.order {
		if w.seen != m.sights && !w.state.Final() {
			m.addBroken(Account, "durable", "job %d is %s in the journal, and leader %d does not know it", w.id, w.state, f.Epoch)
		}
	}
	for i := range f.Nodes {
		m.compareNode(&f.Nodes[i])
	}
	m.compareControllers(l, f.Controllers)
	if f.Idle && !l.writing {
		m.checkReasons(&f)
		m.checkProofs(&f)
		if f.Used != nil {
			m.checkLostUsage(f.Used, "leader %d shows", f.Epoch)
		}
	}
	l.looked = true
}

// judgeGrants looks at grants on nodes that were not up when they were decided, and keeps
// what the leader shows of its nodes.
func (m *Model) judgeGrants(l *leader, f *Sight) {
	if f.Nodes == nil {
		return
	}
	states := make(map[string]fleet.NodeState, len(f.Nodes))
	for i := range f.Nodes {
		states[f.Nodes[i].Name] = f.Nodes[i].State
	}
	for _, s := range l.suspect {
		if now := states[s.node]; now != fleet.Up {
			m.addBroken(Owner, "drained", "job %d gets node %s as attempt %s, and leader %d knows that the node is %s", s.job, s.node, s.ref, l.epoch, now)
		}
	}
	l.suspect, l.states = nil, states
}

// compareJob looks for what a leader knows otherwise than the journal.
func (m *Model) compareJob(l *leader, w *work, j *Job) {
	ref := engine.Ref{}
	if w.held != nil {
		ref = w.held.ref
	}
	differs := func(format string, args ...any) {
		rule := "restart"
		if l.looked {
			rule = "journal"
		}
		m.addBroken(Replay, rule, format, args...)
	}
	switch {
	case j.State != w.state:
		differs("leader %d shows job %d as %s, the journal says %s", l.epoch, j.ID, j.State, w.state)
	case j.Attempt != w.attempt:
		differs("leader %d shows job %d at attempt %d, the journal says %d", l.epoch, j.ID, j.Attempt, w.attempt)
	case j.Ref != ref:
		differs("leader %d shows that job %d holds attempt %s, the journal says %s", l.epoch, j.ID, j.Ref, ref)
	case !w.state.Final() && (j.Flags^w.flags)&journaled != 0:
		differs("leader %d shows job %d as %s, the journal says %s", l.epoch, j.ID, formatFlags(j.Flags), formatFlags(w.flags))
	case j.Claims != nil && w.held != nil && !sameClaims(j.Claims, w.allClaims()):
		differs("leader %d shows that job %d holds %s, the journal says %s", l.epoch, j.ID, formatClaims(j.Claims), formatClaims(w.allClaims()))
	case w.array != nil && j.Array == w.array.first && j.Limit != w.array.limit:
		differs("leader %d shows that %d tasks of array %d may run at once, the journal says %d", l.epoch, j.Limit, j.Array, w.array.limit)
	}
}

// compareNode compares a node with what the journal grants on it.
func (m *Model) compareNode(n *Node) {
	l := m.grantedLoad(n.Name)
	if diff := l.differsFrom(n); diff != "" {
		m.addBroken(Ledger, "books", "node %s: %s", n.Name, diff)
	}
}

// checkReasons checks that everything that waits says why, and that it is so.
func (m *Model) checkReasons(f *Sight) {
	for i := range f.Jobs {
		j := &f.Jobs[i]
		w := m.jobs[j.ID]
		if w == nil || w.state != job.Pending || j.State != job.Pending {
			continue
		}
		held := j.Why.Code == reason.HeldUser || j.Why.Code == reason.HeldAdmin || j.Why.Code == reason.MaxRequeue
		switch {
		case j.Why.Code == reason.None:
			m.addBroken(Account, "reason", "job %d waits and nobody says why", j.ID)
		case held && !w.isHeld():
			m.addBroken(Account, "reason", "job %d waits because %s, and it is not held", j.ID, j.Why)
		case !held && w.isHeld():
			m.addBroken(Account, "reason", "job %d is held, and it is said to wait because %s", j.ID, j.Why)
		case j.Why.Code == reason.ArrayLimit && (w.array == nil || w.array.limit == 0):
			m.addBroken(Account, "reason", "job %d waits because %s, and there is no such limit", j.ID, j.Why)
		}
	}
}

// checkProofs checks that nothing is held whose end its leader has proved.
func (m *Model) checkProofs(f *Sight) {
	for _, a := range m.live {
		if a.isHeld() && a.provedTo == f.Epoch && (a.adds != nil || len(a.job.added) == 0) {
			m.addBroken(Ledger, "books", "%s has ended, leader %d has the proof and nothing to do, and it is still held", a.fullName(), f.Epoch)
		}
	}
}
