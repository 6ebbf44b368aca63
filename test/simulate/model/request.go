package model

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// question is a request that was asked.
type question struct {
	Request
	n     int
	since uint64 // the journal's end when it was asked
	done  bool   // it was answered, and not for certain
}

func (f Asked) tellModel(m *Model) {
	m.asked[f.N] = &question{Request: f.Request, n: f.N, since: m.seq}
}

func (f Answered) tellModel(m *Model) {
	q := m.asked[f.N]
	if q == nil {
		return
	}
	if f.Err != nil {
		if !isCertain(f.Err) {
			q.done = true
			return
		}
		delete(m.asked, f.N)
		if id := m.nameOf(q); id != 0 {
			m.addBroken(Account, "durable", "request %d (%q) was refused (%v), and the journal has it as job %d", q.n, q.Spec.Name, f.Err, id)
		}
		return
	}
	delete(m.asked, f.N)
	switch q.Verb {
	case Submit:
		m.checkAccepted(q, f.First)
		return
	case Drain, Undrain:
		m.noteDrain(q)
		return
	case SetController:
		m.checkDocument(q)
		return
	case Rule:
		if !slices.Contains(m.rulings, q.Text) {
			m.addBroken(Account, "durable", "request %d for the rules %s was answered, and the journal does not have them", q.n, q.Text)
		}
		return
	}
	for i, id := range q.Jobs {
		if i < len(f.Errs) && f.Errs[i] != nil {
			continue
		}
		if w := m.jobs[id]; w == nil {
			m.addBroken(Account, "durable", "request %d to %s job %d was answered, and there is no such job", q.n, q.Verb, id)
		} else if !q.isMet(w) {
			m.addBroken(Account, "durable", "request %d to %s job %d was answered, and the journal knows nothing of it (the job is %s)", q.n, q.Verb, id, w.state)
		}
	}
}

// isCertain reports whether an error says that nothing was done.
func isCertain(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Internal:
		return false
	}
	return true
}

// nameOf finds the job that a submission became.
func (m *Model) nameOf(q *question) job.ID {
	if q.Verb != Submit || q.Spec == nil || q.Spec.Name == "" || q.Spec.Part != nil {
		return 0
	}
	return m.named[q.Spec.Name]
}

// checkAccepted checks the answer to a submission.
func (m *Model) checkAccepted(q *question, first job.ID) {
	n := job.ID(1)
	if q.Spec != nil && q.Spec.Array != nil {
		n = job.ID(len(q.Spec.Array.Indices))
	}
	for id := first; id < first+n; id++ {
		w := m.jobs[id]
		switch {
		case w == nil:
			m.addBroken(Account, "durable", "request %d was answered with job %d, and the journal does not have it", q.n, id)
		case q.Spec != nil && w.name != q.Spec.Name && w.asked[Other] == 0:
			m.addBroken(Account, "durable", "request %d (%q) was answered with job %d, which is %q", q.n, q.Spec.Name, id, w.name)
		}
	}
}

func (m *Model) noteDrain(q *question) {
	for _, name := range q.Nodes {
		if n := m.nodes[name]; n != nil && n.set <= q.since && (n.drained != 0) != (q.Verb == Drain) {
			m.addBroken(Account, "durable", "request %d to %s node %s was answered, and the journal knows nothing of it", q.n, q.Verb, name)
		}
	}
}

// isMet reports whether the journal has what was asked of a job, or what makes it
// needless.
func (q *question) isMet(w *work) bool {
	if seq, ok := w.asked[q.Verb]; ok && seq > q.since {
		return true
	}
	switch q.Verb {
	case Cancel:
		return w.state.Final() || w.left > q.since
	case Requeue: // a job that waits needs nothing
		return w.state == job.Pending || w.asked[Hold] > q.since || w.changed > q.since
	case Suspend:
		return w.state == job.Suspended || w.changed > q.since
	case Resume:
		return w.state == job.Running || w.changed > q.since
	case SetLimit:
		return w.array != nil && slices.ContainsFunc(w.array.tasks, func(o *work) bool { return o.asked[SetLimit] > q.since })
	case Hold, Release:
		return false
	}
	return true
}
