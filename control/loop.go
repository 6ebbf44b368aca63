package control

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/limit"
	"github.com/coxswain-sched/coxswain/store"
)

// loop has the fields that only the loop's goroutine uses.
type loop struct {
	*parts
	ctl     *Control
	ctx     context.Context
	epoch   uint64
	project *projector
	helpers sync.WaitGroup // goroutines that ask the engine or the store apart from the loop

	batch         []staged
	doubt         bool                      // a write of batch failed, and nobody knows whether it is durable
	sure          []func(error)             // to be called when it is certain that this server leads
	acts          []func()                  // what to do when that is certain
	carry         []message                 // taken from the inbox, for the next batch
	latest        sched.Instant             // of what the core was told
	asked         time.Time                 // when the engine was last asked for everything
	lastHeartbeat time.Time                 // … for a heartbeat
	purged        time.Time                 // when the store was last purged
	numbers       job.ID                    // the first number that no record and no staged one uses
	arriving      map[job.Part]*partArrival // submissions of parts on their way into the journal
	changing      map[string]bool           // names of controllers of which a change is on its way
	claiming      map[string]bool           // machines of which a record is on its way
	checking      map[fleet.NodeKey]bool    // nodes of which a change of health is on its way
	backpressure  backpressure
	coming        map[limit.Key]int // jobs that are staged and not accepted yet, as limits on submissions count them
	fleet         uint64            // counts changes of the fleet
	reached       uint64            // of these, those that the core has heard of
	reason        *reason.Reason
	approval      *approval // nil: nobody has approved moves
	granted       *approval // moves that were approved and are in the batch; nil: none
	shared        *reason.Reason
}

// staged is a record that waits to become durable, and what follows then.
type staged struct {
	rec  store.Record
	val  any
	then func()   // after the record is durable and applied; nil: nothing
	req  *request // who is answered then; nil: nobody, and the record is tried for ever
}

// request is the request for which records of a batch were staged.
type request struct {
	answer  func(error)
	records int // not yet durable
}

func (l *loop) main() {
	defer close(l.done)
	defer l.pools.Close()
	for _, p := range l.pools.AllPools() {
		l.watchPool(p)
		if p.OpenFailure() != nil {
			spec := l.state.Pools[p.Name]
			l.helpers.Go(func() { l.ctl.reopenPool(l.ctx, p, spec) })
		}
	}
	projected := make(chan struct{})
	go func() {
		defer close(projected)
		l.project.run(l.ctx)
	}()
	if l.cfg.Foretell > 0 {
		l.helpers.Go(func() { l.ctl.KeepForecasts(l.ctx) })
	}
	defer func() { l.cancel(errClosed); <-projected; l.helpers.Wait(); l.pools.WaitUnwatched() }()
	l.resumeAttempts()
	err := l.decideAndCommit() // the core learns of nodes and running work before the first message
	for err == nil {
		if err = l.awaitMessage(); err == nil {
			err = l.runBatch()
		}
	}
	l.err = err
}

// awaitMessage takes at least one message, or returns when something is due.
func (l *loop) awaitMessage() error {
	if len(l.carry) > 0 || l.hasPending() {
		return nil
	}
	select {
	case m := <-l.inbox:
		l.carry = append(l.carry, m)
		return nil
	default:
	}
	now := l.cfg.Clock.Now()
	if l.runPeriodic(now); l.hasPending() {
		return nil
	}
	d := l.pools.MaxSleep()
	if next := l.core.Next(); next > 0 {
		d = min(d, max(time.Duration(int64(next)-now.UnixNano()), 0))
	}
	if at, ok := l.state.NextTimer(); ok {
		d = min(d, max(time.Duration(at-now.UnixNano()), 0))
	}
	timer, stop := l.cfg.Clock.After(d)
	defer stop()
	select {
	case m := <-l.inbox:
		l.carry = append(l.carry, m)
	case <-timer:
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
	return nil
}

// runPeriodic does what is due at intervals.
func (l *loop) runPeriodic(now time.Time) {
	if past := now.Sub(l.asked); past >= pools.CompareInterval || past < 0 {
		l.asked = now
		l.whileLeading(func() { l.compareEngines() })
	}
	if past := now.Sub(l.lastHeartbeat); past >= pools.HeartbeatInterval || past < 0 {
		l.lastHeartbeat = now
		l.whileLeading(l.askHeartbeats)
	}
	if past := now.Sub(l.purged); past >= purgeEach || past < 0 {
		l.purged = now
		l.purgeStore(now)
	}
}

// runBatch makes one batch of the messages at hand durable, and what follows from it.
func (l *loop) runBatch() error {
	if err := l.ctx.Err(); err != nil {
		return context.Cause(l.ctx)
	}
	l.takeMessages()
	if err := l.commitBatch(); err != nil {
		return err
	}
	return l.decideAndCommit()
}

// decideAndCommit decides what follows from what was applied, makes it durable and
// publishes all changes.
func (l *loop) decideAndCommit() error {
	s := l.state
	for {
		l.runScheduler()
		if len(l.batch) > 0 && len(l.carry)+len(l.inbox) > 0 {
			break // it is written together with what has come meanwhile
		}
		if err := l.commitBatch(); err != nil {
			return err
		}
		if !s.HasNews() {
			break
		}
	}
	l.changes.Append(s.TakeTouched()...)
	s.Lock()
	l.forgetEnded()
	s.Compact()
	s.Unlock()
	return nil
}

// takeMessages runs messages until the batch is full or a second one about a job comes.
func (l *loop) takeMessages() {
	seen := map[job.ID]bool{}
	for i := range l.batch { // decisions that are not written yet
		seen[job.ID(l.batch[i].rec.Job)] = true
	}
	for n := 0; n < batchSize; n++ {
		if len(l.carry) == 0 {
			select {
			case m := <-l.inbox:
				l.carry = append(l.carry, m)
			default:
				return
			}
		}
		m := l.carry[0]
		if m.job != 0 && seen[m.job] || m.bulk && len(seen) > 0 {
			return
		}
		if m.job != 0 {
			seen[m.job] = true
		}
		l.carry = l.carry[1:]
		m.run(l)
		if m.bulk {
			return
		}
	}
}

// stageRecord adds a record to the batch. Without a request it is tried until it is durable.
func (l *loop) stageRecord(kind string, id job.ID, by job.Actor, payload any, then func()) {
	l.batch = append(l.batch, staged{state.NewRecord(l.cfg.Clock.Now(), kind, id, by, payload), payload, then, nil})
}

// stageFor adds a record to the batch whose request is answered once all its records
// are durable and applied.
func (l *loop) stageFor(req *request, kind string, id job.ID, by job.Actor, payload any, then func()) {
	l.stageRecord(kind, id, by, payload, then)
	l.batch[len(l.batch)-1].req = req
	req.records++
}

// applyAll applies a durable batch, at once for readers.
func (l *loop) applyAll(batch []staged, last uint64, took time.Duration) error {
	s := l.state
	s.Lock()
	defer s.Unlock()
	s.Counts.Write.Observe(took.Seconds())
	s.Counts.Batch.Observe(float64(len(batch)))
	news := make([]state.Event, 0, len(batch))
	for i := range batch {
		r := &batch[i].rec
		r.Seq, r.Epoch = last-uint64(len(batch)-1-i), l.epoch
		if err := s.Apply(*r, batch[i].val); err != nil {
			return err
		}
		ev, err := s.EventOfRecord(r, batch[i].val)
		if err != nil {
			return err
		}
		news = append(news, ev)
	}
	l.events.Append(news...)
	return nil
}

// primeCore tells the core what the restored state holds.
func (l *loop) primeCore(nodes map[*pools.Member][]fleet.Node) {
	s := l.state
	s.Events = nil
	if p := s.Policies.CurrentPolicy(); p != nil && !planted.RulesForgotten {
		s.Events = append(s.Events, sched.PolicySet{Policy: p.Rules})
	}
	for _, p := range l.pools.AllPools() {
		if of, answered := nodes[p]; answered {
			l.takeNodes(p, of)
		}
	}
	l.claimMachines(l.pools.AllPools()...)
	l.core.Step(l.coreInstant(), s.Events...) // without jobs nothing follows from nodes
	l.reached = l.fleet
	l.flight.Restart(l.core.Snapshot())
	s.Events = nil
	if u := s.Usage; u != nil { // with what runs, which is charged from then on
		s.Events = append(s.Events, sched.UsageSet{At: u.At, Entries: u.Entries, Since: fair.Merge(nil, u.Since)})
	}
	for _, e := range s.Live {
		if e.State.Holds() {
			s.Events = append(s.Events, l.restoredEvent(e))
			s.PrimeAdded(e)
			s.Arrays.OpenTask(e)
			s.RecheckEligible(e)
		}
	}
	for _, e := range s.Live {
		if e.State == job.Pending {
			s.QueueRestored(e)
		}
	}
	if s.Arrivals != nil { // after the jobs: these were learned from before
		s.Events = append(s.Events, sched.Taught{Seen: *s.Arrivals})
	}
	s.TakeTouched()
}

// restoredEvent tells the core of a job that holds resources.
func (l *loop) restoredEvent(e *state.JobRecord) sched.Restored {
	now := l.cfg.Clock.Now()
	r := sched.Restored{
		Job: e.ID, Spec: l.state.CoreSpecOf(e), Submitted: sched.Instant(e.QueuedAt), Claims: fleet.InPool(e.Last.Pool, e.Last.Claims), Flavors: e.Last.Flavors, License: e.Last.License, Until: state.UntilOf(e, now),
		Began: state.BeganOf(e, now), Priority: e.Priority, Saved: sched.Instant(e.Last.Saved), Stopping: e.Flags&job.Stopping != 0 || e.OnlyAdditionsLeft(), Begun: l.state.BegunOf(e), Waits: e.Flags&job.Configuring != 0 && state.IsDelegated(e.Last.Claims),
		Moved: sched.Instant(e.ExtraOrZero().Moved),
	}
	r.GoesFor, r.Home = e.MigrationTarget()
	if e.Last.PreemptSuspended {
		r.Parked = &sched.Parked{At: sched.Instant(e.Last.SuspendedAt)}
		if r.Until > 0 {
			r.Parked.Left = max(r.Until-sched.Instant(e.Last.SuspendedAt), 0)
		}
	}
	return r
}

// tellNodes tells core and ledger of all nodes of a name.
func (l *loop) tellNodes(name string) {
	for _, pool := range l.state.Nodes.Pools(name) {
		l.tellNode(fleet.NodeKey{Pool: pool, Name: name})
	}
}

// tellNode tells core and ledger of a node, with the state that its engine and administrators
// give it.
func (l *loop) tellNode(k fleet.NodeKey) {
	n, ok := l.state.NodeWithDrain(k)
	if !ok {
		return
	}
	l.fleet++
	n = l.state.NodeWithPorts(n)
	l.state.Ledger.SetNode(n)
	l.state.Events = append(l.state.Events, sched.NodeSet{Node: n})
}
