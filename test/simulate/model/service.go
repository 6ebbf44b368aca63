package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// Planned: the controller of services is about to keep a document. Ready are the replicas that got
// requests, as far as the server knew, when it began to decide upon it.
type Planned struct {
	Controller string
	Document   *service.Document
	Ready      []job.Part
}

// String is a sentence.
func (f Planned) String() string {
	var slots []string
	for _, s := range f.Document.Replicas {
		slots = append(slots, fmt.Sprintf("%d of revision %d, try %d", s.Index, s.Revision, s.Try))
	}
	return fmt.Sprintf("%s is to have %d replicas: %s; %d are ready", f.Controller, f.Document.Want, joinNames(slots), len(f.Ready))
}

// tellModel checks that the document takes away no replica that is ready while that leaves fewer of them
// than wanted, less those that may be unavailable.
func (f Planned) tellModel(m *Model) {
	was, ok := m.serviceDocument(f.Controller)
	if !ok || f.Document.Stopping || f.Document.Want == 0 {
		return
	}
	has := func(d *service.Document, p job.Part) bool {
		return slices.ContainsFunc(d.Replicas, func(s service.Slot) bool {
			return s.Index == p.Index && s.Revision == p.Revision && s.Try == p.Try
		})
	}
	ready := 0
	var lost []string
	for _, p := range f.Ready {
		switch {
		case has(f.Document, p):
			ready++
		case has(was, p):
			lost = append(lost, fmt.Sprintf("%d of revision %d", p.Index, p.Revision))
		}
	}
	_, unavailable := allowed(f.Document)
	if len(lost) > 0 && ready < f.Document.Want-unavailable {
		m.addBroken(Account, "available", "%s gives up its replica %s: %d ready ones are left, of %d wanted %d may be unavailable", f.Controller, joinNames(lost), ready, f.Document.Want, unavailable)
	}
}

// allowed is how many replicas a service may have more than it wants, and have ready fewer.
func allowed(d *service.Document) (surge, unavailable int) {
	u := &d.Revision(d.Target()).Spec.Update
	switch {
	case u.InPlace:
		return 0, max(u.Unavailable, 1)
	case u.Surge == 0 && u.Unavailable == 0:
		return 1, 0
	}
	return u.Surge, u.Unavailable
}

// keepServiceDocument keeps a document of a service, in the order of the journal.
func (m *Model) keepServiceDocument(name string, text []byte) {
	if !strings.HasPrefix(name, service.ControllerKind+"/") {
		return
	}
	var d service.Document
	if err := json.Unmarshal(text, &d); err != nil {
		m.addBroken(Account, "durable", "the document of %s cannot be read: %v", name, err)
		return
	}
	m.services[name] = append(m.services[name], &d)
}

// serviceDocument is the document of a service in the journal.
func (m *Model) serviceDocument(name string) (*service.Document, bool) {
	if all := m.services[name]; len(all) > 0 {
		return all[len(all)-1], true
	}
	return nil, false
}

// mostReplicas is how many replicas a service may have when one is submitted, by the document that decided
// so: people may have changed it since, so the documents count in which the replica has had its place.
func (m *Model) mostReplicas(p *job.Part) (most int) {
	for _, d := range slices.Backward(m.services[p.Controller]) {
		if !slices.ContainsFunc(d.Replicas, func(s service.Slot) bool {
			return s.Index == p.Index && s.Revision == p.Revision && s.Try == p.Try
		}) {
			break
		}
		surge, _ := allowed(d)
		most = max(most, d.Want+surge)
	}
	return most
}

// checkReplica checks a new replica: no other one lives in its place, and there are no more than are
// wanted and allowed. Of those of which nobody could tell for a while whether they live no more is known.
func (m *Model) checkReplica(w *work) {
	if w.part == nil {
		return
	}
	d, ok := m.serviceDocument(w.part.Controller)
	if !ok {
		return
	}
	living := 1
	for _, o := range m.order {
		if o.part == nil || o.part.Controller != w.part.Controller || o.state.Final() {
			continue
		}
		if o.part.Index == w.part.Index && o.part.Revision == w.part.Revision {
			m.addBroken(Ledger, "twice", "job %d is replica %d of revision %d of %s, as is job %d, which is %s", w.id, w.part.Index, w.part.Revision, w.part.Controller, o.id, o.state)
		}
		if !o.doubted {
			living++
		}
	}
	if most := m.mostReplicas(w.part); living > most {
		m.addBroken(Account, "surge", "job %d is one of %d replicas of %s, which wants %d and may have %d", w.id, living, w.part.Controller, d.Want, most)
	}
	m.countSeen("a replica is submitted")
}
