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
		Part    *job.Part       `json:"part"`
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
	Retried   int           `json:"retried"`

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

	Name     string          `json:"name"` // controller-set, controller-gone
	Version  uint64          `json:"version"`
	Document json.RawMessage `json:"document"`

	At      json.RawMessage `json:"at"` // usage-kept: a second
	Entries []fair.Entry    `json:"entries"`
}

func (f Durable) tellModel(m *Model) {
	m.leaderOf(f.Epoch).lags = true
	for i := range f.Records {
		r := &f.Records[i]
		switch {
		case f.Epoch < m.epoch:
			m.addBroken(Owner, "fenced", "leader %d wrote record %d (%s of job %d) after leader %d had taken the lead", f.Epoch, r.Seq, r.Kind, r.Job, m.epoch)
		case r.Seq != m.seq+1:
			m.addBroken(Account, "durable", "the journal goes from record %d to record %d", m.seq, r.Seq)
		}
		m.seq = r.Seq
		if read := readers[r.Kind]; read != nil {
			var p payload
			if err := json.Unmarshal(r.Data, &p); err != nil {
				m.addBroken(Account, "durable", "record %d (%s) cannot be read: %v", r.Seq, r.Kind, err)
				continue
			}
			read(m, r, &p)
		}
	}
}

// readers are what the kinds of record mean. Kinds that are not here change nothing
// that the model knows of.
var readers = map[string]func(*Model, *store.Record, *payload){
	"submitted":            (*Model).recordSubmitted,
	"allocation-held":      (*Model).recordGranted,
	"attempt-started":      (*Model).recordStarted,
	"attempt-ended":        (*Model).recordEnded,
	"allocation-uncertain": (*Model).recordUncertain,
	"cancel-asked":         (*Model).recordCancelled,
	"time-over":            (*Model).recordExpired,
	"hold-set":             (*Model).recordHeld,
	"requeue-asked":        (*Model).recordRequeued,
	"suspend-set":          (*Model).recordSuspended,
	"job-updated":          (*Model).recordUpdated,
	"nodes-set":            (*Model).nodesSet,
	"policy-set":           (*Model).recordPolicy,
	"preempt-asked":        (*Model).recordPreempted,
	"allocation-added":     (*Model).recordExtended,
	"addition-started":     (*Model).recordJoined,
	"addition-asked-back":  (*Model).askedBack,
	"addition-ended":       (*Model).givenBack,
	"usage-kept":           (*Model).recordUsage,
	"controller-set":       (*Model).recordController,
	"controller-gone":      (*Model).recordControllerGone,
}

func (m *Model) recordSubmitted(r *store.Record, p *payload) {
	var spec job.Spec
	if err := json.Unmarshal(p.Spec, &spec); err != nil || p.Own == nil {
		m.addBroken(Account, "durable", "job %d cannot be read out of record %d: %v", p.First, r.Seq, err)
		return
	}
	if old := m.named[p.Own.Name]; old != 0 && p.Own.Name != "" && p.Own.Part == nil {
		m.addBroken(Account, "durable", "%q was asked for once and accepted twice, as job %d and as job %d", p.Own.Name, old, p.First)
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
			depends: p.Own.Depends != nil, part: p.Own.Part,
		}
		m.checkPart(w)
		m.checkReplica(w)
		if p.Own.Held {
			w.flags = job.Held
		}
		if m.jobs[w.id] != nil {
			m.addBroken(Account, "durable", "the number of job %d was given twice", w.id)
		}
		m.jobs[w.id] = w
		m.order = append(m.order, w)
		if a != nil {
			a.tasks = append(a.tasks, w)
		}
	}
}

// workOf returns the job of a record.
func (m *Model) workOf(r *store.Record, id job.ID) *work {
	w := m.jobs[id]
	if w == nil {
		m.addBroken(Account, "durable", "record %d (%s) is about job %d, which nobody submitted", r.Seq, r.Kind, id)
	}
	return w
}

// moveState changes a job's state along the table.
func (m *Model) moveState(r *store.Record, w *work, to job.State, by ...job.Cause) {
	if !slices.ContainsFunc(by, func(c job.Cause) bool { return job.Check(w.state, to, c) == nil }) {
		m.addBroken(Account, "transition", "job %d goes from %s to %s by %s (record %d), which is no transition", w.id, w.state, to, by[0], r.Seq)
	}
	if w.state.Final() {
		w.left = r.Seq
	}
	w.state, w.changed = to, r.Seq
}

// recordGranted is the grant of an allocation, and the beginning of an attempt.
func (m *Model) recordGranted(r *store.Record, p *payload) {
	if p.Allocation == nil {
		return
	}
	w := m.workOf(r, p.Allocation.Job)
	if w == nil {
		return
	}
	ref := engine.Ref{Allocation: p.Allocation.ID, Attempt: p.Allocation.Attempt}
	m.mayStart(r, w, ref)
	a := m.attemptOf(ref)
	if a.journaled {
		m.addBroken(Ledger, "twice", "the number of attempt %s is given to job %d a second time", ref, w.id)
	}
	a.job, a.claims, a.epoch, a.journaled = w, p.Allocation.Claims, p.Allocation.Epoch, true
	m.moveState(r, w, job.Running, job.ByScheduler)
	w.attempt, w.held, w.added, w.settled = ref.Attempt, a, nil, false
	w.flags = w.flags&^(job.Requeued|job.LaunchFailed) | job.Configuring
	w.cancel, w.requeue, w.expired, w.taken, w.awaits = false, false, false, "", false
	m.keepAttempt(a)
	if lack := missingTasks(w.spec, a.claims); lack != "" {
		m.addBroken(Whole, "gang", "job %d is to start as attempt %s with %s of its gang", w.id, ref, lack)
	}
	if a := w.array; a != nil && a.limit > 0 && a.openTasks() > int(a.limit) {
		m.addBroken(Account, "quota", "job %d is task of array %d, of which %d may run at once: it is number %d", w.id, a.first, a.limit, a.openTasks())
	}
	m.checkNodes(a)
	m.checkRules(a, r, p.Limit)
}

// mayStart checks what must not keep a job when it is granted an allocation.
func (m *Model) mayStart(r *store.Record, w *work, ref engine.Ref) {
	switch {
	case w.held != nil:
		m.addBroken(Ledger, "twice", "job %d is granted attempt %s while it holds attempt %s", w.id, ref, w.held.ref)
	case w.state.Final():
		m.addBroken(Ledger, "twice", "job %d is granted attempt %s after it ended (%s)", w.id, ref, w.state)
	case w.isHeld():
		m.addBroken(Account, "quota", "job %d is held and is granted attempt %s", w.id, ref)
	case ref.Attempt != w.attempt+1:
		m.addBroken(Ledger, "stale", "job %d is granted attempt %d after attempt %d (record %d)", w.id, ref.Attempt, w.attempt, r.Seq)
	}
}

// checkNodes checks the nodes of a new grant.
func (m *Model) checkNodes(a *attempt) {
	for _, name := range a.nodeNames() {
		n := m.nodes[name]
		if n == nil {
			m.addBroken(Ledger, "capacity", "%s claims node %s, which does not exist", a.fullName(), name)
			continue
		}
		l := m.grantedLoad(name)
		if over := l.overload(n); over != "" {
			m.addBroken(Ledger, "capacity", "%s claims node %s, with which %s", a.fullName(), name, over)
		}
		if n.drained != 0 {
			m.addBroken(Owner, "drained", "%s gets node %s, which record %d drained", a.fullName(), name, n.drained)
		}
	}
}

// holdingAttempt returns the attempt of a record if its job holds it.
func (m *Model) holdingAttempt(r *store.Record, ref engine.Ref) *attempt {
	w := m.workOf(r, job.ID(r.Job))
	if w == nil {
		return nil
	}
	a := m.claims[ref]
	if a == nil || a.job != w || w.held != a {
		what := "holds nothing"
		if w.held != nil {
			what = "holds attempt " + w.held.ref.String()
		}
		m.addBroken(Ledger, "stale", "record %d (%s) is about attempt %s, and job %d %s", r.Seq, r.Kind, ref, w.id, what)
		return nil
	}
	return a
}

func (m *Model) recordStarted(r *store.Record, p *payload) {
	a := m.holdingAttempt(r, p.Ref)
	if a == nil {
		return
	}
	if !a.begun {
		m.addBroken(Ledger, "stale", "the journal says that %s has started, and it has not", a.fullName())
	}
	a.started, a.ran, a.opened = true, r.At, p.Started
	a.job.flags &^= job.Configuring
}

// recordEnded is the proved end of an attempt.
func (m *Model) recordEnded(r *store.Record, p *payload) {
	a := m.holdingAttempt(r, p.Ref)
	if a == nil || p.State == nil {
		return
	}
	w := a.job
	m.mayFree(r, a, p)
	for _, o := range w.added {
		m.addBroken(Ledger, "books", "%s is freed (record %d), and %s is still held", a.fullName(), r.Seq, o.fullName())
	}
	a.freed = true
	if *p.State == job.Pending && !w.requeue && !w.spec.Requeue && !w.requeuesAfterPreempt() && !a.neverBegan(&p.Report) && p.Retried == 0 {
		m.addBroken(Ledger, "twice", "job %d is to run again after attempt %s, and neither does it allow that nor did anybody ask", w.id, p.Ref)
	}
	m.checkRetry(w, p)
	if *p.State == job.Preempted && w.taken != account.PreemptCancel {
		m.addBroken(Account, "preempt", "job %d ends as %s for good, and was to make room %q", w.id, p.State, w.taken)
	}
	if *p.State == job.Cancelled && !w.cancel {
		m.addBroken(Account, "final", "job %d ends as %s, and nobody asked for that", w.id, p.State)
	}
	if *p.State == job.Completed && (p.Report.Cause != engine.Exited || !p.Report.Exit.OK()) {
		m.addBroken(Account, "final", "job %d ends as %s though its attempt %s ended otherwise (%s, %s)", w.id, p.State, p.Ref, p.Report.Cause, p.Report.Exit)
	}
	hold := w.requeue && w.holdAfter && *p.State == job.Pending
	w.flags = w.flags&(job.Held|job.HeldAdmin|job.HeldFailed) | p.Flags
	if hold {
		w.flags |= job.Held
	}
	m.moveState(r, w, *p.State, p.By)
	w.held, w.cancel, w.requeue, w.expired, w.taken = nil, false, false, false, ""
	m.chargeEnd(a, p.Report.Ended, r.At)
	m.dropFinished(a)
}

// checkRetry judges whether a retry follows an attempt exactly if the job asks for it: after any
// exit code but 0 (the only failure that drawn jobs name), as often as it says, and never after its
// end was asked for.
func (m *Model) checkRetry(w *work, p *payload) {
	count := 0
	if w.spec.Retries != nil {
		count = w.spec.Retries.Count
	}
	failed := p.Report.Cause == engine.Exited && !p.Report.Exit.OK()
	switch {
	case p.Retried == 0:
		if failed && *p.State == job.Failed && w.retried < count && !w.cancel && !w.expired {
			m.addBroken(Account, "retry", "job %d ends for good after %d of %d retries", w.id, w.retried, count)
		}
		return
	case *p.State != job.Pending || !failed || w.cancel || w.expired:
		m.addBroken(Ledger, "twice", "job %d is retried after attempt %s (%s, %s), after which nothing allows that", w.id, p.Ref, p.Report.Cause, p.Report.Exit)
	case p.Retried != w.retried+1 || p.Retried > count:
		m.addBroken(Ledger, "twice", "job %d has retry %d after %d, of %d", w.id, p.Retried, w.retried, count)
	}
	w.retried = p.Retried
	m.countSeen("retried after a failure")
}

// mayFree checks that nothing lives on what is freed, and that there was a proof.
func (m *Model) mayFree(r *store.Record, a *attempt, p *payload) {
	switch {
	case a.ghost:
	case len(a.lives) > 0 && a.failed && !a.begun:
		m.addBroken(Whole, "undone", "%s failed to start and is given up (record %d), and what was set up of it is still there on %s", a.fullName(), r.Seq, joinNames(a.lives))
	case len(a.lives) > 0 && !a.begun:
		m.addBroken(Whole, "undone", "%s is given up before it began (record %d), and part of it is there on %s", a.fullName(), r.Seq, joinNames(a.lives))
	case len(a.lives) > 0:
		m.addBroken(Ledger, "unproved", "%s is said to have ended (record %d) and lives on %s", a.fullName(), r.Seq, joinNames(a.lives))
	case a.waited: // the proof was kept while what was added to it ended
	case a.provedTo != r.Epoch && a.unknownTo != r.Epoch && a.asideTo != r.Epoch:
		m.addBroken(Ledger, "unproved", "%s is freed (record %d), and leader %d has no proof of its end", a.fullName(), r.Seq, r.Epoch)
	case p == nil: // of an addition
	case a.heard != nil && a.unknownTo != r.Epoch && (a.heard.Cause != p.Report.Cause || a.heard.Exit != p.Report.Exit):
		m.addBroken(Ledger, "stale", "%s ended (%s, %s), and record %d says otherwise (%s, %s)", a.fullName(), a.heard.Cause, a.heard.Exit, r.Seq, p.Report.Cause, p.Report.Exit)
	}
}

func (m *Model) recordUncertain(r *store.Record, p *payload) {
	if w := m.jobs[job.ID(r.Job)]; w != nil && slices.ContainsFunc(w.added, func(a *attempt) bool { return a.ref == p.Ref }) {
		m.additionOf(r, p.Ref).uncertain = p.Uncertain
		m.updateUncertain(w)
		return
	}
	if a := m.holdingAttempt(r, p.Ref); a != nil {
		a.uncertain = p.Uncertain
		m.updateUncertain(a.job)
	}
}

// updateUncertain has a job uncertain while anything of it is.
func (m *Model) updateUncertain(w *work) {
	w.flags &^= job.Uncertain
	if w.held.uncertain || slices.ContainsFunc(w.added, func(a *attempt) bool { return a.uncertain }) {
		w.flags |= job.Uncertain
		w.doubted = true
	}
}

func (m *Model) recordCancelled(r *store.Record, _ *payload) {
	w := m.workOf(r, job.ID(r.Job))
	if w == nil {
		return
	}
	if !m.wasAsked(Cancel, w.id) && !w.depends {
		m.addBroken(Account, "final", "job %d is cancelled (record %d), and nobody asked for that", w.id, r.Seq)
	}
	w.noteVerb(Cancel, r.Seq)
	if w.state == job.Pending {
		m.moveState(r, w, job.Cancelled, job.ByUser)
		return
	}
	if w.state.Final() {
		m.addBroken(Account, "final", "job %d has ended (%s) and is cancelled (record %d)", w.id, w.state, r.Seq)
	}
	w.cancel, w.requeue = true, false
	w.flags |= job.Stopping
}

func (m *Model) recordExpired(r *store.Record, p *payload) {
	w := m.workOf(r, job.ID(r.Job))
	if w == nil || p.State == nil {
		return
	}
	if w.state == job.Pending {
		m.moveState(r, w, *p.State, job.ByControl)
		return
	}
	w.expired = true
	w.flags |= job.Stopping
}

func (m *Model) recordHeld(r *store.Record, p *payload) {
	w := m.workOf(r, job.ID(r.Job))
	if w == nil {
		return
	}
	if p.Held {
		w.noteVerb(Hold, r.Seq)
		w.flags |= job.Held
		if p.Admin {
			w.flags |= job.HeldAdmin
		}
		return
	}
	w.noteVerb(Release, r.Seq)
	w.flags &^= job.Held | job.HeldAdmin | job.HeldFailed
}

func (m *Model) recordRequeued(r *store.Record, p *payload) {
	w := m.workOf(r, job.ID(r.Job))
	if w == nil {
		return
	}
	if !m.wasAsked(Requeue, w.id) {
		m.addBroken(Ledger, "twice", "job %d is to run again (record %d), and nobody asked for that", w.id, r.Seq)
	}
	w.noteVerb(Requeue, r.Seq)
	switch {
	case w.state.Holds():
		w.requeue, w.holdAfter = true, p.Hold
		w.flags |= job.Stopping
	case w.state.Final():
		m.moveState(r, w, job.Pending, job.ByUser)
		w.flags |= job.Requeued
		w.retried = 0
		if p.Hold {
			w.flags |= job.Held
		}
	}
}

func (m *Model) recordSuspended(r *store.Record, p *payload) {
	w := m.workOf(r, job.ID(r.Job))
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
		m.countSeen("has its place again and stays suspended")
	case !p.Parked && a != nil && a.parked: // it says what becomes of it then
		to, w.asleep = job.Suspended, p.On
	case p.On:
		m.countSeen("suspended by somebody")
	}
	if !p.Parked && !m.wasAsked(verb, w.id) {
		m.addBroken(Account, "final", "job %d is to %s (record %d), and nobody asked for that", w.id, verb, r.Seq)
	}
	w.noteVerb(verb, r.Seq)
	if w.state != to {
		m.moveState(r, w, to, job.ByUser, job.ByScheduler)
	}
	if a := w.held; p.Parked && a != nil {
		m.noteParked(r, a, p.On)
	}
}

// noteParked is a job that lends its CPUs and devices to others, or has them again.
func (m *Model) noteParked(r *store.Record, a *attempt, on bool) {
	w := a.job
	switch {
	case on == a.parked:
		m.addBroken(Ledger, "stale", "job %d makes room by being suspended, or goes on, a second time (record %d)", w.id, r.Seq)
	case on && w.taken != account.PreemptSuspend:
		m.addBroken(Account, "preempt", "job %d is suspended to make room (record %d), and was not asked to", w.id, r.Seq)
	case on && !a.paused && !a.astray:
		m.addBroken(Ledger, "unproved", "%s lends what it has (record %d), and it runs", a.fullName(), r.Seq)
	}
	a.parked = on
	if on {
		m.countSeen("suspended to make room")
		w.taken = ""
		return
	}
	m.countSeen("goes on again")
	for _, name := range a.nodeNames() {
		n := m.nodes[name]
		if n == nil {
			continue
		}
		if l := m.grantedLoad(name); l.overload(n) != "" {
			m.addBroken(Ledger, "capacity", "%s goes on (record %d), and on %s %s", a.fullName(), r.Seq, name, l.overload(n))
		}
	}
}

func (m *Model) recordUpdated(r *store.Record, p *payload) {
	w := m.workOf(r, job.ID(r.Job))
	if w == nil {
		return
	}
	var spec job.Spec
	if err := json.Unmarshal(p.Spec, &spec); err != nil {
		m.addBroken(Account, "durable", "job %d cannot be read out of record %d: %v", w.id, r.Seq, err)
		return
	}
	w.spec = &spec
	if p.Own != nil {
		w.depends = p.Own.Depends != nil
	}
	w.noteVerb(Other, r.Seq)
	if p.MaxRunning != nil && w.array != nil {
		w.array.limit = *p.MaxRunning
		w.noteVerb(SetLimit, r.Seq)
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

// wasAsked reports whether somebody asked for a change of a job and may not have been
// refused.
func (m *Model) wasAsked(v Verb, id job.ID) bool {
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
