package control

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
)

// decisions are the decisions of one step of the core that go into the journal.
type decisions struct {
	starts  []state.Held
	grown   []ledger.Allocation
	shrunk  []sched.Shrink
	victims []sched.Preempt
}

// runScheduler tells the core what happened, and stages its decisions. Tasks of an array are let
// through only up to the array's limit, so a decision can never exceed it.
func (l *loop) runScheduler() {
	s := l.state
	now := l.cfg.Clock.Now()
	s.Lock()
	defer s.Unlock()
	l.recheckPending(now)
	if s.Ports.TakeStale() {
		for k := range s.Nodes.All() {
			l.tellNode(k)
		}
	}
	events := s.Events
	s.Events = nil
	at := l.coreInstant()
	list := l.core.Step(at, events...)
	l.reached = l.fleet
	l.flight.RecordStep(l.core, len(s.Live), at, events, list)
	s.Counts.Decision.Observe(l.cfg.Clock.Now().Sub(now).Seconds())
	if planted.MapOrder {
		list = anyOrder(list)
	}
	var made decisions
	proposed := l.proposeDecisions(list)
	for i, d := range list {
		l.applyDecision(&made, d, proposed[i], now)
	}
	l.stageStep(&made)
}

// applyDecision takes one decision: those without a record are carried out, the others wait for
// the whole step.
func (l *loop) applyDecision(made *decisions, d sched.Decision, p proposed, now time.Time) {
	s := l.state
	switch d := d.(type) {
	case sched.Start:
		if l.acceptStart(d, p.refused, now) {
			made.starts = append(made.starts, state.Held{Allocation: *p.hold, Limit: shortenedLimit(s.Jobs[d.Job], d.Until, l.latest)})
		}
	case sched.Grow:
		if l.acceptGrowth(d, p) {
			made.grown = append(made.grown, *p.hold)
		}
	case sched.Shrink:
		made.shrunk = append(made.shrunk, d)
	case sched.Preempt:
		made.victims = append(made.victims, d)
	case sched.Resume:
		l.stagePreemptResume(d, p)
	case sched.Proposal:
		s.NoteProposal(d)
	case sched.Wait:
		if e := s.Jobs[d.Job]; e != nil {
			l.noteWaitReason(e, d.Why, now)
		}
	case sched.Used:
		l.keepUsage()
	case sched.Learned:
		l.keepLearned()
	case sched.Promise:
		if e := s.Jobs[d.Job]; e != nil {
			e.EnsureExtra().StartsBy = int64(d.At)
			s.MarkDirty(e)
		}
	}
}

// stageStep stages a step, one record after the other in one batch. Nothing is held before it is
// durable.
func (l *loop) stageStep(made *decisions) {
	s := l.state
	for _, h := range made.starts {
		a := h.Allocation
		if planted.LaunchFirst {
			l.launchAttempt(s.Jobs[a.Job], a, false)
		}
		l.stageRecord(state.KindHeld, a.Job, job.Actor{}, h, func() { l.launchAttempt(s.Jobs[a.Job], a, false) })
	}
	l.stageGrowth(made.grown)
	for _, d := range made.shrunk {
		l.stageShrink(d)
	}
	l.granted, l.approval = l.approval, nil
	for _, d := range made.victims { // one of them may start in the same step
		by := job.Actor{}
		if d.Home != nil && l.granted != nil {
			by = l.granted.by
		}
		l.stagePreempt(d, made.starts, by)
	}
	l.refuseLapsedApproval()
}

// anyOrder is the defect of planted.MapOrder.
func anyOrder(list []sched.Decision) (out []sched.Decision) {
	set := map[int]sched.Decision{}
	for i, d := range list {
		set[i] = d
	}
	for _, d := range set {
		out = append(out, d)
	}
	return out
}

// noteWaitReason notes the first reason why a job waits.
func (l *loop) noteWaitReason(e *state.JobRecord, why reason.Reason, now time.Time) {
	if planted.DropReason && (why.Code == reason.Priority || why.Code == reason.Reserved) {
		e.Why = nil
		return
	}
	if away, is := l.pools.WhyUnreachable(e.Shared.Spec.Pool, why.Code); is {
		why = away
	}
	e.Since, e.Ahead, e.Before = now.Unix(), int32(min(why.Ahead, 1<<31-1)), job.ID(why.Job)
	why.Since, why.Ahead, why.Job = 0, 0, 0
	if l.shared == nil || *l.shared != why {
		l.shared = &why
	}
	e.Why = l.shared
	l.state.MarkTouched(e)
}

// coreInstant is the clock's time for the core, which never goes back.
func (l *loop) coreInstant() sched.Instant {
	l.latest = max(l.latest, sched.Instant(l.cfg.Clock.Now().UnixNano()))
	return l.latest
}

// shortenedLimit is the limit of an attempt that should end before the job's own limit would end
// it; 0: the job's own limit holds.
func shortenedLimit(e *state.JobRecord, until, now sched.Instant) time.Duration {
	granted := time.Duration(until - now)
	if limit := max(e.Shared.Spec.TimeLimit, 0); until == 0 || limit > 0 && granted >= limit {
		return 0
	}
	return max(granted, 1)
}

// Of a job whose start the ledger refuses again and again.
const (
	refusalsBorne = 3
	benchedFor    = 30 * time.Second
)

// proposed is what a decision asks of the ledger, and the ledger's answer.
type proposed struct {
	hold    *ledger.Allocation // nil: nothing
	resumes bool               // a parked job goes on
	refused error
}

// proposeDecisions verifies the decisions of a step against the ledger, together: each one with
// those before it.
func (l *loop) proposeDecisions(list []sched.Decision) []proposed {
	out := make([]proposed, len(list))
	var batch []ledger.Change
	var of []int // decisions of the batch
	for i, d := range list {
		c := ledger.Change{}
		switch d := d.(type) {
		case sched.Start:
			c.Hold = &ledger.Allocation{
				Job: d.Job, Attempt: l.state.Jobs[d.Job].Attempt + 1, Epoch: l.epoch, Pool: l.poolOfClaims(d.Claims),
				Status: ledger.Held, Claims: d.Claims, Flavors: d.Flavors, License: d.License,
			}
		case sched.Grow:
			c.Hold = l.additionFor(d)
		case sched.Resume:
			if e := l.state.Jobs[d.Job]; e.CanResumePreempted() {
				c.Resume = e.Last.AllocationID
			}
		}
		if c != (ledger.Change{}) {
			out[i].hold, out[i].resumes = c.Hold, c.Resume != 0
			batch, of = append(batch, c), append(of, i)
		}
	}
	for k, err := range l.state.Ledger.Propose(batch) {
		out[of[k]].refused = err
	}
	return out
}

// acceptStart notes what the ledger says of a start, and reports whether it is made. The core
// decides anew about a refused start; after some refusals the job waits a while.
func (l *loop) acceptStart(d sched.Start, err error, now time.Time) bool {
	s := l.state
	e := s.Jobs[d.Job]
	if err == nil {
		if e.Extra != nil {
			e.Extra.Refused = 0
		}
		return true
	}
	s.Counts.Refused++
	m := e.EnsureExtra()
	m.Refused++
	m.Refusal = err.Error()
	if m.Refused == 1 {
		l.cfg.Log.Error("the core proposed what the ledger refuses", "job", e.Name(), "error", err)
	}
	if m.Refused >= refusalsBorne {
		m.Benched = now.Add(benchedFor).UnixNano()
	}
	s.Events = append(s.Events, sched.Released{Job: d.Job})
	s.QueuePending(e)
	return false
}

// launchAttempt hands an allocation to the engine; repeated says that a server before this one may have.
func (l *loop) launchAttempt(e *state.JobRecord, a ledger.Allocation, repeated bool) {
	view := state.ViewOf(e)
	ref, ahead := reconcile.Ref(a), l.backpressure.jobsAhead(e, a.Pool)
	l.callsOf(a).Launch(ref, func(ctx context.Context) (*engine.Launch, error) {
		avoid, err := l.ctl.NotOwned(a.Pool)
		if err != nil {
			return nil, err
		}
		launch, err := l.ctl.loadLaunch(ctx, &view.Job, a)
		if launch != nil {
			launch.Saved, launch.Ahead, launch.Avoid = view.Saved, ahead, avoid
		}
		return launch, err
	}, func(err error) {
		_ = l.postMessage(l.ctx, l.launchRefused(a.Job, ref, err, repeated)) // a closed loop hears nothing more
	})
}

// stopAttempt asks the engine to end everything that runs of a job. What it serves has its time to drain
// first, unless it is to be killed at once.
func (l *loop) stopAttempt(e *state.JobRecord, s engine.Stop) {
	if serve := e.Shared.Spec.Serve; serve != nil && s.Grace > 0 && !e.StartTime().IsZero() {
		s.Drain = serve.Drain
	}
	l.sendStop(e, s)
}

func (l *loop) sendStop(e *state.JobRecord, s engine.Stop) {
	l.stopAdded(e, s)
	if a, ok := l.state.Ledger.Of(e.ID); ok {
		if a.Parked {
			s.Grace = 0 // what it needs to end in order others have
		}
		l.callsOf(a).Stop(reconcile.Ref(a), s, l.vanishedCallback(a))
	}
}

// loadLaunch reads script and environment of an attempt. It runs in a goroutine of dispatch.
func (c *Control) loadLaunch(ctx context.Context, j *job.Job, a ledger.Allocation) (*engine.Launch, error) {
	out := &engine.Launch{Ref: reconcile.Ref(a), Job: j, Claims: a.Claims, Grace: c.cfg.Grace}
	if planted.PartOfGang && len(a.Claims) > 1 {
		out.Claims = a.Claims[:len(a.Claims)-1]
	}
	if h := j.Spec.Program.ScriptHash; h != "" {
		script, err := c.cfg.Store.Blob(ctx, h)
		if err != nil {
			return nil, err
		}
		out.Script = script
	}
	if h := j.Spec.Env.Hash; h != "" {
		env, err := c.cfg.Store.Blob(ctx, h)
		if err != nil {
			return nil, err
		}
		out.Env = SplitEnv(env)
	}
	return out, c.loadSecrets(out)
}

// loadSecrets reads the values of the secrets of an attempt. One that is gone ends it.
func (c *Control) loadSecrets(l *engine.Launch) error {
	for _, s := range l.Job.Spec.Secrets {
		if c.cfg.Secret == nil {
			return fault.New(fault.Unsupported, "secret %s: nobody keeps secrets here", s.Name)
		}
		value, err := c.cfg.Secret(l.Job.Spec.Owner.UID, &s)
		if fault.KindOf(err) == fault.NotFound && s.Kept != "" {
			return fault.New(fault.Invalid, "%w", err).Advise("%s", fault.Remedy(err))
		}
		if fault.KindOf(err) == fault.NotFound {
			return fault.New(fault.Invalid, "%s has no secret %s any more", l.Job.Spec.Owner.User, s.Name).Advise("cox secret set %s, then submit the job again", s.Name)
		}
		if err != nil {
			return fault.New(fault.Unavailable, "read secret %s: %w", s.Name, err)
		}
		l.Secrets = append(l.Secrets, engine.Secret{Secret: s, Value: value})
	}
	return nil
}

// SplitEnv takes an environment blob apart.
func SplitEnv(b []byte) (out []string) {
	for _, kv := range bytes.Split(b, []byte{0}) {
		if len(kv) > 0 {
			out = append(out, string(kv))
		}
	}
	return out
}

func joinEnv(env []string) []byte {
	n := 0
	for _, kv := range env {
		n += len(kv) + 1
	}
	b := make([]byte, 0, n)
	for _, kv := range env {
		b = append(append(b, kv...), 0)
	}
	return b
}

// keepUsage stages the usage that the core has computed.
func (l *loop) keepUsage() {
	at, entries := l.core.Usage()
	if at > 0 {
		l.stageRecord(state.KindUsage, 0, job.Actor{}, state.Usage{At: at, Entries: entries}, nil)
	}
}

// keptAt is the second of the usage that is kept, or is about to be; 0: there is none.
func (l *loop) keptAt() int64 {
	for i := range slices.Backward(l.batch) {
		if v, ok := l.batch[i].val.(state.Usage); ok {
			return v.At
		}
	}
	if l.state.Usage == nil {
		return 0
	}
	return l.state.Usage.At
}

// keepLearned stages what the core has learned about arriving jobs, each time that the core
// begins to use more of it: a restart forgets at most what arrived since, an eighth of it.
func (l *loop) keepLearned() {
	if m := l.core.Learned(); m != nil {
		l.stageRecord(state.KindLearned, 0, job.Actor{}, *m, nil)
	}
}
