package model

import (
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

func (f Led) tellModel(m *Model) {
	if f.Epoch <= m.epoch {
		m.addBroken(Owner, "fenced", "%s takes the lead with epoch %d, and epoch %d was given before", f.Who, f.Epoch, m.epoch)
	}
	m.epoch = max(m.epoch, f.Epoch)
	m.leaderOf(f.Epoch)
}

func (f Opened) tellModel(m *Model) { m.leaderOf(f.Epoch).open = true }

func (f Closed) tellModel(m *Model) {
	delete(m.leaders, f.Epoch)
	for n, q := range m.asked {
		if q.Epoch == f.Epoch && q.done {
			delete(m.asked, n) // nobody will write it any more
		}
	}
}

func (f Appending) tellModel(m *Model) {
	l := m.leaderOf(f.Epoch)
	l.writing = true
	l.suspect = l.suspect[:0]
	for i := range f.Records {
		if f.Records[i].Kind == "allocation-held" {
			m.noteSuspects(l, f.Records[i].Data)
		}
	}
}

func (f Appended) tellModel(m *Model) {
	l := m.leaderOf(f.Epoch)
	l.writing = false
	if f.Err == nil {
		l.lags = false
	}
	if f.Err == nil && f.Last > m.seq {
		m.addBroken(Account, "durable", "leader %d is told that record %d is durable, the journal ends with %d", f.Epoch, f.Last, m.seq)
	}
}

func (f Called) tellModel(m *Model) {
	a := m.claims[f.Ref]
	if a != nil && (f.Verb == "suspend" || f.Verb == "resume") {
		a.astray = f.Epoch < m.epoch // the present leader's word settles it
	}
	if a == nil || !a.isHeld() || f.Verb != "stop" && f.Verb != "kill" {
		return
	}
	switch {
	case a.job.isEnding() || len(a.lives) == 0: // what is not there may be barred
	case a.adds != nil && (a.back || len(a.adds.lives) == 0): // asked back, or what it was added to has ended
	case a.refusedTo >= f.Epoch: // its launch was refused and is given up
	case f.Epoch < m.epoch && f.Led == f.Epoch: // it was on its way when the other one took the lead
	case f.Epoch < m.epoch:
		m.addBroken(Owner, "fenced", "leader %d, which leader %d has followed, ends %s", f.Epoch, m.epoch, a.fullName())
	default:
		m.addBroken(Ledger, "stale", "leader %d ends %s, which nobody asked for", f.Epoch, a.fullName())
	}
}

func (f Heard) tellModel(m *Model) {
	a := m.attemptOf(f.Ref)
	switch {
	case f.Refused:
		a.refusedTo = max(a.refusedTo, f.Epoch)
	case f.Report == nil:
		a.unknownTo = max(a.unknownTo, f.Epoch)
	case f.Report.Phase == engine.Ended && f.Report.Gone:
		if f.Aside {
			a.asideTo = max(a.asideTo, f.Epoch)
		} else {
			a.provedTo = max(a.provedTo, f.Epoch)
		}
		a.heard = f.Report
	}
	over := f.Report == nil && !f.Refused || f.Report != nil && f.Report.Phase == engine.Ended && f.Report.Gone
	if over && a.job != nil && a.job.held == a && len(a.job.added) > 0 {
		a.waited = true
	}
}

// noteSuspects notes grants on nodes that their leader had last shown not to be up. They
// are judged at its next Sight: it may have heard better between the two.
func (m *Model) noteSuspects(l *leader, data []byte) {
	ref, id, claims := grantOf(data)
	for _, c := range claims {
		if s, ok := l.states[c.Node]; ok && s != fleet.Up {
			l.suspect = append(l.suspect, suspect{ref, id, c.Node})
		}
	}
}
