package model

import (
	"slices"

	"github.com/coxswain-sched/coxswain/store"
)

// document is what a controller above jobs keeps.
type document struct {
	version uint64
	text    string
}

// checkPart checks that a new job is not a part of a controller's work that has a living job.
func (m *Model) checkPart(w *work) {
	if w.part == nil {
		return
	}
	for _, o := range m.order {
		switch {
		case o.part == nil || *o.part != *w.part:
		case !o.state.Final():
			m.addBroken(Ledger, "twice", "job %d is part %d of revision %d, try %d, of %s, as is job %d, which is %s", w.id, w.part.Index, w.part.Revision, w.part.Try, w.part.Controller, o.id, o.state)
		default:
			m.countSeen("a part that was forgotten is begun again")
		}
	}
}

func (m *Model) recordController(r *store.Record, p *payload) {
	if was := m.controllers[p.Name].version; p.Version != was+1 {
		m.addBroken(Account, "durable", "record %d has version %d of controller %s after version %d", r.Seq, p.Version, p.Name, was)
	}
	m.controllers[p.Name] = document{p.Version, string(p.Document)}
	m.documents = append(m.documents, string(p.Document))
	m.keepServiceDocument(p.Name, p.Document)
	m.countSeen("a controller's document is kept")
}

func (m *Model) recordControllerGone(_ *store.Record, p *payload) {
	delete(m.controllers, p.Name)
	delete(m.services, p.Name)
}

// checkDocument checks that the journal has a document for which somebody was thanked.
func (m *Model) checkDocument(q *question) {
	if !slices.Contains(m.documents, q.Text) {
		m.addBroken(Account, "durable", "request %d to keep %s was answered, and the journal does not have it", q.n, q.Text)
	}
}

// compareControllers looks for documents that a leader knows otherwise than the journal.
func (m *Model) compareControllers(l *leader, shown map[string]string) {
	rule := "restart"
	if l.looked {
		rule = "journal"
	}
	if shown == nil {
		return
	}
	for name, d := range m.controllers {
		if text, ok := shown[name]; text != d.text {
			m.addBroken(Replay, rule, "leader %d shows controller %s with %q (%v), the journal has %q", l.epoch, name, text, ok, d.text)
		}
	}
	for name := range shown {
		if _, ok := m.controllers[name]; !ok {
			m.addBroken(Replay, rule, "leader %d shows controller %s, which is gone", l.epoch, name)
		}
	}
}
