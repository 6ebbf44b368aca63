package model

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// payload is what the model reads of a record, whatever its kind.
type payload struct {
	// submitted
	First job.ID `json:"first"`
	Own   *struct {
		Name    string          `json:"name"`
		Held    bool            `json:"held"`
		Depends *job.Dependency `json:"depends"`
		Array   *job.ArraySpec  `json:"array"`
	} `json:"own"`
	Spec json.RawMessage `json:"spec"` // also job-updated

	// allocation-held
	Allocation *struct {
		ID      uint64        `json:"id"`
		Job     job.ID        `json:"job"`
		Attempt uint32        `json:"attempt"`
		Epoch   uint64        `json:"epoch"`
		Claims  []fleet.Claim `json:"claims"`
		Adds    uint64        `json:"adds"`
	} `json:"allocation"` // also allocation-added

	// attempt-started, attempt-ended, allocation-uncertain
	Ref       engine.Ref    `json:"ref"`
	State     *job.State    `json:"state"`
	By        job.Cause     `json:"by"`
	Flags     job.Flags     `json:"flags"`
	Report    engine.Report `json:"report"`
	Uncertain bool          `json:"uncertain"`

	// hold-set, requeue-asked, suspend-set
	Held  bool `json:"held"`
	Admin bool `json:"admin"`
	Hold  bool `json:"hold"`
	On    bool `json:"on"`

	Parked bool `json:"parked"` // suspend-set

	Settled bool `json:"settled"` // addition-ended

	Started time.Time `json:"started"` // attempt-started

	MaxRunning *uint32 `json:"max_running"` // job-updated

	Nodes []string `json:"nodes"` // nodes-set
	Drain bool     `json:"drain"`

	Limit time.Duration `json:"limit"` // allocation-held: of this attempt

	Rules json.RawMessage `json:"rules"` // policy-set
	Text  string          `json:"text"`

	For  job.ID `json:"for"` // preempt-asked, addition-asked-back
	Mode string `json:"mode"`

	At      json.RawMessage `json:"at"` // usage-kept: a second
	Entries []fair.Entry    `json:"entries"`
}

func (f Durable) tell(m *Model) {
	m.lead(f.Epoch).lags = true
	for i := range f.Records {
		r := &f.Records[i]
		switch {
		case f.Epoch < m.epoch:
			m.broken(Owner, "fenced", "leader %d wrote record %d (%s of job %d) after leader %d had taken the lead", f.Epoch, r.Seq, r.Kind, r.Job, m.epoch)
		case r.Seq != m.seq+1:
			m.broken(Account, "durable", "the journal goes from record %d to record %d", m.seq, r.Seq)
		}
		m.seq = r.Seq
		if read := readers[r.Kind]; read != nil {
			var p payload
			if err := json.Unmarshal(r.Data, &p); err != nil {
				m.broken(Account, "durable", "record %d (%s) cannot be read: %v", r.Seq, r.Kind, err)
				continue
			}
			read(m, r, &p)
		}
	}
}

// readers are what the kinds of record mean. Kinds that are not here change nothing
// that the model knows of.
var readers = map[string]func(*Model, *store.Record, *payload){
	"submitted":            (*Model).submitted,
	"allocation-held":      (*Model).granted,
	"attempt-started":      (*Model).started,
	"attempt-ended":        (*Model).ended,
	"allocation-uncertain": (*Model).uncertain,
	"cancel-asked":         (*Model).cancelled,
	"time-over":            (*Model).expired,
	"hold-set":             (*Model).held,
	"requeue-asked":        (*Model).requeued,
	"suspend-set":          (*Model).suspended,
	"job-updated":          (*Model).updated,
	"nodes-set":            (*Model).nodesSet,
	"policy-set":           (*Model).ruled,
	"preempt-asked":        (*Model).preempted,
	"allocation-added":     (*Model).extended,
	"addition-started":     (*Model).joined,
	"addition-asked-back":  (*Model).askedBack,
	"addition-ended":       (*Model).givenBack,
	"usage-kept":           (*Model).keeps,
}

func (m *Model) submitted(r *store.Record, p *payload) {
	var spec job.Spec
	if err := json.Unmarshal(p.Spec, &spec); err != nil || p.Own == nil {
		m.broken(Account, "durable", "job %d cannot be read out of record %d: %v", p.First, r.Seq, err)
		return
	}
	if old := m.named[p.Own.Name]; old != 0 && p.Own.Name != "" {
		m.broken(Account, "durable", "%q was asked for once and accepted twice, as job %d and as job %d", p.Own.Name, old, p.First)
	}
	m.named[p.Own.Name] = p.First
	n, a := 1, (*array)(nil)
	if p.Own.Array != nil {
		a = &array{first: p.First, limit: p.Own.Array.MaxRunning}
		m.arrays[p.First], n = a, len(p.Own.Array.Indices)
	}
	for i := range n {
		w := &work{
			id: p.First + job.ID(i), name: p.Own.Name, spec: &spec, array: a,
			depends: p.Own.Depends != nil,
		}
		if p.Own.Held {
			w.flags = job.Held
		}
		if m.jobs[w.id] != nil {
			m.broken(Account, "durable", "the number of job %d was given twice", w.id)
		}
		m.jobs[w.id] = w
		m.order = append(m.order, w)
		if a != nil {
			a.tasks = append(a.tasks, w)
		}
	}
}

// find returns the job of a record.
func (m *Model) find(r *store.Record, id job.ID) *work {
	w := m.jobs[id]
	if w == nil {
		m.broken(Account, "durable", "record %d (%s) is about job %d, which nobody submitted", r.Seq, r.Kind, id)
	}
	return w
}

// move changes a job's state along the table.
func (m *Model) move(r *store.Record, w *work, to job.State, by ...job.Cause) {
	if !slices.ContainsFunc(by, func(c job.Cause) bool { return job.Check(w.state, to, c) == nil }) {
		m.broken(Account, "transition", "job %d goes from %s to %s by %s (record %d), which is no transition", w.id, w.state, to, by[0], r.Seq)
	}
	if w.state.Final() {
		w.left = r.Seq
	}
	w.state, w.changed = to, r.Seq
}

// granted is the grant of an allocation, and the beginning of an attempt.
func (m *Model) granted(r *store.Record, p *payload) {
	if p.Allocation == nil {
		return
	}
	w := m.find(r, p.Allocation.Job)
	if w == nil {
		return
	}
	ref := engine.Ref{Allocation: p.Allocation.ID, Attempt: p.Allocation.Attempt}
	m.mayStart(r, w, ref)
	a := m.of(ref)
	if a.journaled {
		m.broken(Ledger, "twice", "the number of attempt %s is given to job %d a second time", ref, w.id)
	}
	a.job, a.claims, a.epoch, a.journaled = w, p.Allocation.Claims, p.Allocation.Epoch, true
	m.move(r, w, job.Running, job.ByScheduler)
	w.attempt, w.held, w.added, w.settled = ref.Attempt, a, nil, false
	w.flags = w.flags&^(job.Requeued|job.LaunchFailed) | job.Configuring
	w.cancel, w.requeue, w.expired, w.taken, w.awaits = false, false, false, "", false
	m.keep(a)
	if lack := short(w.spec, a.claims); lack != "" {
		m.broken(Whole, "gang", "job %d is to start as attempt %s with %s of its gang", w.id, ref, lack)
	}
	if a := w.array; a != nil && a.limit > 0 && a.open() > int(a.limit) {
		m.broken(Account, "quota", "job %d is task of array %d, of which %d may run at once: it is number %d", w.id, a.first, a.limit, a.open())
	}
	m.fits(a)
	m.obeys(a, r, p.Limit)
}

// mayStart checks what must not keep a job when it is granted an allocation.
func (m *Model) mayStart(r *store.Record, w *work, ref engine.Ref) {
	switch {
	case w.held != nil:
		m.broken(Ledger, "twice", "job %d is granted attempt %s while it holds attempt %s", w.id, ref, w.held.ref)
	case w.state.Final():
		m.broken(Ledger, "twice", "job %d is granted attempt %s after it ended (%s)", w.id, ref, w.state)
	case w.waiting():
		m.broken(Account, "quota", "job %d is held and is granted attempt %s", w.id, ref)
	case ref.Attempt != w.attempt+1:
		m.broken(Ledger, "stale", "job %d is granted attempt %d after attempt %d (record %d)", w.id, ref.Attempt, w.attempt, r.Seq)
	}
}

// fits checks the nodes of a new grant.
func (m *Model) fits(a *attempt) {
	for _, name := range a.nodes() {
		n := m.nodes[name]
		if n == nil {
			m.broken(Ledger, "capacity", "%s claims node %s, which does not exist", a.title(), name)
			continue
		}
		l := m.grants(name)
		if over := l.over(n); over != "" {
			m.broken(Ledger, "capacity", "%s claims node %s, with which %s", a.title(), name, over)
		}
		if n.drained != 0 {
			m.broken(Owner, "drained", "%s gets node %s, which record %d drained", a.title(), name, n.drained)
		}
	}
}

// holder returns the attempt of a record if its job holds it.
func (m *Model) holder(r *store.Record, ref engine.Ref) *attempt {
	w := m.find(r, job.ID(r.Job))
	if w == nil {
		return nil
	}
	a := m.claims[ref]
	if a == nil || a.job != w || w.held != a {
		what := "holds nothing"
		if w.held != nil {
			what = "holds attempt " + w.held.ref.String()
		}
		m.broken(Ledger, "stale", "record %d (%s) is about attempt %s, and job %d %s", r.Seq, r.Kind, ref, w.id, what)
		return nil
	}
	return a
}

func (m *Model) started(r *store.Record, p *payload) {
	a := m.holder(r, p.Ref)
	if a == nil {
		return
	}
	if !a.begun {
		m.broken(Ledger, "stale", "the journal says that %s has started, and it has not", a.title())
	}
	a.started, a.ran, a.opened = true, r.At, p.Started
	a.job.flags &^= job.Configuring
}

// ended is the proved end of an attempt.
func (m *Model) ended(r *store.Record, p *payload) {
	a := m.holder(r, p.Ref)
	if a == nil || p.State == nil {
		return
	}
	w := a.job
	m.mayFree(r, a, p)
	for _, o := range w.added {
		m.broken(Ledger, "books", "%s is freed (record %d), and %s is still held", a.title(), r.Seq, o.title())
	}
	a.freed = true
	if *p.State == job.Pending && !w.requeue && !w.spec.Requeue && !w.goes() && !a.unready(&p.Report) {
		m.broken(Ledger, "twice", "job %d is to run again after attempt %s, and neither does it allow that nor did anybody ask", w.id, p.Ref)
	}
	if *p.State == job.Preempted && w.taken != account.PreemptCancel {
		m.broken(Account, "preempt", "job %d ends as %s for good, and was to make room %q", w.id, p.State, w.taken)
	}
	if *p.State == job.Cancelled && !w.cancel {
		m.broken(Account, "final", "job %d ends as %s, and nobody asked for that", w.id, p.State)
	}
	if *p.State == job.Completed && (p.Report.Cause != engine.Exited || !p.Report.Exit.OK()) {
		m.broken(Account, "final", "job %d ends as %s though its attempt %s ended otherwise (%s, %s)", w.id, p.State, p.Ref, p.Report.Cause, p.Report.Exit)
	}
	hold := w.requeue && w.holdAfter && *p.State == job.Pending
	w.flags = w.flags&(job.Held|job.HeldAdmin|job.HeldFailed) | p.Flags
	if hold {
		w.flags |= job.Held
	}
	m.move(r, w, *p.State, p.By)
	w.held, w.cancel, w.requeue, w.expired, w.taken = nil, false, false, false, ""
	m.spends(a, p.Report.Ended, r.At)
	m.drop(a)
}

// mayFree checks that nothing lives on what is freed, and that there was a proof.
func (m *Model) mayFree(r *store.Record, a *attempt, p *payload) {
	switch {
	case a.ghost:
	case len(a.lives) > 0 && a.failed && !a.begun:
		m.broken(Whole, "undone", "%s failed to start and is given up (record %d), and what was set up of it is still there on %s", a.title(), r.Seq, names(a.lives))
	case len(a.lives) > 0 && !a.begun:
		m.broken(Whole, "undone", "%s is given up before it began (record %d), and part of it is there on %s", a.title(), r.Seq, names(a.lives))
	case len(a.lives) > 0:
		m.broken(Ledger, "unproved", "%s is said to have ended (record %d) and lives on %s", a.title(), r.Seq, names(a.lives))
	case a.waited: // the proof was kept while what was added to it ended
	case a.provedTo != r.Epoch && a.unknownTo != r.Epoch && a.asideTo != r.Epoch:
		m.broken(Ledger, "unproved", "%s is freed (record %d), and leader %d has no proof of its end", a.title(), r.Seq, r.Epoch)
	case p == nil: // of an addition
	case a.heard != nil && a.unknownTo != r.Epoch && (a.heard.Cause != p.Report.Cause || a.heard.Exit != p.Report.Exit):
		m.broken(Ledger, "stale", "%s ended (%s, %s), and record %d says otherwise (%s, %s)", a.title(), a.heard.Cause, a.heard.Exit, r.Seq, p.Report.Cause, p.Report.Exit)
	}
}

func (m *Model) uncertain(r *store.Record, p *payload) {
	if w := m.jobs[job.ID(r.Job)]; w != nil && slices.ContainsFunc(w.added, func(a *attempt) bool { return a.ref == p.Ref }) {
		m.addition(r, p.Ref).uncertain = p.Uncertain
		m.doubts(w)
		return
	}
	if a := m.holder(r, p.Ref); a != nil {
		a.uncertain = p.Uncertain
		m.doubts(a.job)
	}
}

// doubts has a job uncertain while anything of it is.
func (m *Model) doubts(w *work) {
	w.flags &^= job.Uncertain
	if w.held.uncertain || slices.ContainsFunc(w.added, func(a *attempt) bool { return a.uncertain }) {
		w.flags |= job.Uncertain
	}
}

func (m *Model) cancelled(r *store.Record, _ *payload) {
	w := m.find(r, job.ID(r.Job))
	if w == nil {
		return
	}
	if !m.wanted(Cancel, w.id) && !w.depends {
		m.broken(Account, "final", "job %d is cancelled (record %d), and nobody asked for that", w.id, r.Seq)
	}
	w.note(Cancel, r.Seq)
	if w.state == job.Pending {
		m.move(r, w, job.Cancelled, job.ByUser)
		return
	}
	if w.state.Final() {
		m.broken(Account, "final", "job %d has ended (%s) and is cancelled (record %d)", w.id, w.state, r.Seq)
	}
	w.cancel, w.requeue = true, false
	w.flags |= job.Stopping
}

func (m *Model) expired(r *store.Record, p *payload) {
	w := m.find(r, job.ID(r.Job))
	if w == nil || p.State == nil {
		return
	}
	if w.state == job.Pending {
		m.move(r, w, *p.State, job.ByControl)
		return
	}
	w.expired = true
	w.flags |= job.Stopping
}

func (m *Model) held(r *store.Record, p *payload) {
	w := m.find(r, job.ID(r.Job))
	if w == nil {
		return
	}
	if p.Held {
		w.note(Hold, r.Seq)
		w.flags |= job.Held
		if p.Admin {
			w.flags |= job.HeldAdmin
		}
		return
	}
	w.note(Release, r.Seq)
	w.flags &^= job.Held | job.HeldAdmin | job.HeldFailed
}

func (m *Model) requeued(r *store.Record, p *payload) {
	w := m.find(r, job.ID(r.Job))
	if w == nil {
		return
	}
	if !m.wanted(Requeue, w.id) {
		m.broken(Ledger, "twice", "job %d is to run again (record %d), and nobody asked for that", w.id, r.Seq)
	}
	w.note(Requeue, r.Seq)
	switch {
	case w.state.Holds():
		w.requeue, w.holdAfter = true, p.Hold
		w.flags |= job.Stopping
	case w.state.Final():
		m.move(r, w, job.Pending, job.ByUser)
		w.flags |= job.Requeued
		if p.Hold {
			w.flags |= job.Held
		}
	}
}

func (m *Model) suspended(r *store.Record, p *payload) {
	w := m.find(r, job.ID(r.Job))
	if w == nil {
		return
	}
	to, verb := job.Running, Resume
	if p.On {
		to, verb = job.Suspended, Suspend
	}
	switch a := w.held; {
	case p.Parked && p.On: // a job that somebody suspended can make room too
		w.asleep = w.state == job.Suspended
	case p.Parked && w.asleep: // and is suspended still when it has its place again
		to = job.Suspended
		m.see("has its place again and stays suspended")
	case !p.Parked && a != nil && a.parked: // it says what becomes of it then
		to, w.asleep = job.Suspended, p.On
	case p.On:
		m.see("suspended by somebody")
	}
	if !p.Parked && !m.wanted(verb, w.id) {
		m.broken(Account, "final", "job %d is to %s (record %d), and nobody asked for that", w.id, verb, r.Seq)
	}
	w.note(verb, r.Seq)
	if w.state != to {
		m.move(r, w, to, job.ByUser, job.ByScheduler)
	}
	if a := w.held; p.Parked && a != nil {
		m.parks(r, a, p.On)
	}
}

// parks is a job that lends its CPUs and devices to others, or has them again.
func (m *Model) parks(r *store.Record, a *attempt, on bool) {
	w := a.job
	switch {
	case on == a.parked:
		m.broken(Ledger, "stale", "job %d makes room by being suspended, or goes on, a second time (record %d)", w.id, r.Seq)
	case on && w.taken != account.PreemptSuspend:
		m.broken(Account, "preempt", "job %d is suspended to make room (record %d), and was not asked to", w.id, r.Seq)
	case on && !a.paused && !a.astray:
		m.broken(Ledger, "unproved", "%s lends what it has (record %d), and it runs", a.title(), r.Seq)
	}
	a.parked = on
	if on {
		m.see("suspended to make room")
		w.taken = ""
		return
	}
	m.see("goes on again")
	for _, name := range a.nodes() {
		n := m.nodes[name]
		if n == nil {
			continue
		}
		if l := m.grants(name); l.over(n) != "" {
			m.broken(Ledger, "capacity", "%s goes on (record %d), and on %s %s", a.title(), r.Seq, name, l.over(n))
		}
	}
}

func (m *Model) updated(r *store.Record, p *payload) {
	w := m.find(r, job.ID(r.Job))
	if w == nil {
		return
	}
	var spec job.Spec
	if err := json.Unmarshal(p.Spec, &spec); err != nil {
		m.broken(Account, "durable", "job %d cannot be read out of record %d: %v", w.id, r.Seq, err)
		return
	}
	w.spec = &spec
	if p.Own != nil {
		w.depends = p.Own.Depends != nil
	}
	w.note(Other, r.Seq)
	if p.MaxRunning != nil && w.array != nil {
		w.array.limit = *p.MaxRunning
		w.note(SetLimit, r.Seq)
	}
}

func (m *Model) nodesSet(r *store.Record, p *payload) {
	for _, name := range p.Nodes {
		n := m.nodes[name]
		if n == nil {
			continue
		}
		n.drained = 0
		if p.Drain {
			n.drained = r.Seq
		}
		n.set = r.Seq
		for _, l := range m.leaders { // what it had shown before is no longer what it knows
			delete(l.states, name)
		}
	}
}

// wanted reports whether somebody asked for a change of a job and may not have been
// refused.
func (m *Model) wanted(v Verb, id job.ID) bool {
	for _, q := range m.asked {
		if q.Verb == v && slices.Contains(q.Jobs, id) {
			return true
		}
	}
	return false
}

// grantOf reads a grant.
func grantOf(data []byte) (engine.Ref, job.ID, []fleet.Claim) {
	var p payload
	if json.Unmarshal(data, &p) != nil || p.Allocation == nil {
		return engine.Ref{}, 0, nil
	}
	return engine.Ref{Allocation: p.Allocation.ID, Attempt: p.Allocation.Attempt}, p.Allocation.Job, p.Allocation.Claims
}
