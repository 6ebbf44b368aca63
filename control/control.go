// Package control is the loop that owns the clock, the state and every goroutine
// of the control plane.
//
// Requests and engine reports come in as messages. The loop turns them into
// journal records, makes these durable in one batch, applies them, asks the
// scheduling core what follows, verifies its decisions against the ledger, makes
// them durable too, and only then lets anything outside happen: an answer is
// given, an engine is called, a change is published. Nothing is applied before it
// is durable, so a crash between any two instructions leaves what the journal
// says, and Open takes up from there.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/dispatch"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/event"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/reason"
	"github.com/coxswain-sched/coxswain/reconcile"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/store"
)

// Clock is where time comes from.
type Clock interface {
	Now() time.Time
	// After delivers once when d has passed; stop releases it.
	After(d time.Duration) (c <-chan time.Time, stop func())
}

// Config are the parts of a control plane. Engine and Store are used until Close
// and not closed by it.
type Config struct {
	Store  store.Store
	Engine engine.Engine
	Pool   fleet.Pool
	Clock  Clock         // nil: the machine's
	Log    *slog.Logger  // nil: none
	Who    string        // names this leader in the store
	Grace  time.Duration // between the signal to end and the kill; 0: 30 s, as Slurm's KillWait

	// Keep is how long an ended job stays in memory; 0: 5 min, as Slurm's MinJobAge;
	// negative: for ever.
	Keep time.Duration
	// JournalKeep and HistoryKeep are how long records of the journal and ended jobs
	// stay in the store; 0: for ever.
	JournalKeep, HistoryKeep time.Duration
	// KillIfNever ends jobs whose dependency can never be met, where a job does not
	// say itself.
	KillIfNever bool
}

// View is a job as it is published: a copy that nobody writes to.
type View struct {
	Job    job.Job
	Claims []fleet.Claim // of the present or last attempt
	Report engine.Report // of the present or last attempt, as far as known
	Why    reason.Reason // the first reason why it waits
	Ref    engine.Ref    // of the present attempt; zero: it holds nothing

	Priority int64     // as the queue is ordered; larger goes first
	Eligible time.Time // since when nothing but the queue keeps it waiting; zero: something else does
	StartsBy time.Time // promised by the scheduler; zero: nothing is promised
	Pool     string    // of the present or last attempt
	Message  string    // why it was ended, as who ended it said
}

// Control is a running control plane. Its methods are safe for concurrent use.
type Control struct {
	cfg     Config
	inbox   chan message
	changes *event.Log[View]
	done    chan struct{}
	stop    context.CancelCauseFunc
	err     error // why the loop ended; readable after done
	opened  time.Time
}

// message is one piece of work for the loop. At most one message about a job is
// taken into one batch, so each sees what the one before it did.
type message struct {
	job    job.ID
	run    func(*loop)
	refuse func(error) // instead of run; nil: it cannot be refused
}

const (
	inboxSize   = 1024
	batchSize   = 512
	changesKept = 4096
	compareEach = 30 * time.Second
	retryWatch  = 200 * time.Millisecond
)

// Open takes the lead over a store, replays its journal, learns the engine's nodes
// and takes up the work that is running. The context bounds opening alone.
func Open(ctx context.Context, cfg Config) (*Control, error) {
	if cfg.Clock == nil {
		cfg.Clock = realClock{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Grace == 0 {
		cfg.Grace = 30 * time.Second
	}
	l := &loop{cfg: cfg, state: newState(), core: sched.New(sched.Config{}), blocked: map[job.ID]reason.Code{}}
	var err error
	if l.epoch, err = cfg.Store.Lead(ctx, cfg.Who); err != nil {
		return nil, fmt.Errorf("take the lead: %w", err)
	}
	if err = cfg.Store.Read(ctx, 0, l.state.apply); err != nil {
		return nil, fmt.Errorf("replay the journal: %w", err)
	}
	if err = l.state.check(); err != nil {
		return nil, fmt.Errorf("the journal does not add up: %w", err)
	}
	nodes, err := cfg.Engine.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the nodes of pool %s: %w", cfg.Pool.Name, err)
	}
	l.prime(nodes)
	run, stop := context.WithCancelCause(context.Background())
	c := &Control{
		cfg: cfg, inbox: make(chan message, inboxSize), changes: event.NewLog[View](changesKept),
		done: make(chan struct{}), stop: stop, opened: cfg.Clock.Now(),
	}
	l.ctx, l.control = run, c
	l.dispatch = dispatch.New(dispatch.Config{Engine: cfg.Engine, Log: cfg.Log})
	go l.main()
	return c, nil
}

// Close stops the loop and every goroutine. Work that runs goes on.
func (c *Control) Close() error {
	c.stop(errClosed)
	<-c.done
	if errors.Is(c.err, errClosed) {
		return nil
	}
	return c.err
}

// Done is closed when the loop has ended, by Close or because it lost the lead.
func (c *Control) Done() <-chan struct{} { return c.done }

var errClosed = errors.New("the control plane was closed")

// post hands a message to the loop; it gives up when ctx or the loop ends.
func (c *Control) post(ctx context.Context, m message) error {
	select {
	case c.inbox <- m:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "no answer from the control plane: %w", ctx.Err())
	case <-c.done:
		return fault.New(fault.Unavailable, "the control plane has ended: %w", c.err)
	}
}

// ask posts a message and waits until it called answer, which it may do at most once.
func (c *Control) ask(ctx context.Context, id job.ID, run func(l *loop, answer func(error))) error {
	reply := make(chan error, 1)
	if err := c.post(ctx, message{id, func(l *loop) { run(l, func(err error) { reply <- err }) }, func(err error) { reply <- err }}); err != nil {
		return err
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "no answer from the control plane: %w", ctx.Err())
	case <-c.done:
		select {
		case err := <-reply:
			return err
		default:
			return fault.New(fault.Unavailable, "the control plane has ended: %w", c.err)
		}
	}
}

// loop is what only the loop's goroutine touches.
type loop struct {
	cfg      Config
	control  *Control
	ctx      context.Context
	epoch    uint64
	state    *state
	core     *sched.Core
	dispatch *dispatch.Dispatcher
	nodes    map[string]fleet.Node
	blocked  map[job.ID]reason.Code // what the core was told of jobs that may not be considered

	helpers sync.WaitGroup // goroutines that ask the engine apart from the loop

	batch  []staged
	carry  []message     // taken from the inbox, for the next batch
	wakeAt time.Time     // the next begin time; zero: none
	latest sched.Instant // of what the core was told
	asked  time.Time     // when the engine was last asked for everything
}

// staged is a record that waits to become durable, and what follows then.
type staged struct {
	rec    store.Record
	then   func()      // after the record is durable and applied
	failed func(error) // instead, if it could not be written; nil: try again for ever
}

// prime tells the core what the replayed state holds.
func (l *loop) prime(nodes []fleet.Node) {
	l.nodes = map[string]fleet.Node{}
	var evs []sched.Event
	for _, n := range nodes {
		l.nodes[n.Name] = n
		l.state.led.SetNode(n)
		evs = append(evs, sched.NodeSet{Node: n})
	}
	for _, id := range l.state.order {
		e := l.state.jobs[id]
		switch {
		case e.State.Holds():
			evs = append(evs, sched.Restored{Job: id, Spec: e.Spec, Claims: e.claims, Until: l.until(e)})
		case e.State == job.Pending:
			l.state.queue(e)
		}
		l.state.touch(id)
	}
	var queued []sched.Event
	for _, ev := range l.state.events { // only what still waits: replay collected the past too
		if s, ok := ev.(sched.Submitted); ok && l.state.jobs[s.Job].State == job.Pending {
			queued = append(queued, s)
		}
	}
	l.state.events = append(evs, queued...)
}

// until is when a running job's limit ends it; 0 for none.
func (l *loop) until(e *entry) sched.Instant {
	if e.Spec.TimeLimit == 0 {
		return 0
	}
	from := e.Started
	if from.IsZero() {
		from = l.cfg.Clock.Now()
	}
	return sched.Instant(from.Add(e.Spec.TimeLimit).UnixNano())
}

func (l *loop) main() {
	c := l.control
	defer close(c.done)
	defer l.dispatch.Close()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		reconcile.Follow(l.ctx, l.cfg.Engine, retryWatch, l.cfg.Log, func(ev engine.Event) {
			_ = c.post(l.ctx, l.reported(ev.Report)) // a closed loop hears nothing more
		})
	}()
	defer func() { c.stop(errClosed); <-watched; l.helpers.Wait() }()
	l.resume()
	err := l.follow() // the core learns of nodes and running work before the first message
	for err == nil {
		if err = l.wait(); err == nil {
			err = l.turn()
		}
	}
	c.err = err
}

// wait takes at least one message, or returns because time has come to look again.
func (l *loop) wait() error {
	if len(l.carry) > 0 {
		return nil
	}
	now := l.cfg.Clock.Now()
	if past := now.Sub(l.asked); past >= compareEach || past < 0 {
		l.asked = now
		l.compare()
	}
	d := compareEach
	if !l.wakeAt.IsZero() {
		d = min(d, max(l.wakeAt.Sub(now), 0))
	}
	timer, stop := l.cfg.Clock.After(d)
	defer stop()
	select {
	case m := <-l.control.inbox:
		l.carry = append(l.carry, m)
	case <-timer:
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
	return nil
}

// turn makes one batch of the messages at hand durable, and what follows from it.
func (l *loop) turn() error {
	l.take()
	if err := l.commit(); err != nil {
		return err
	}
	return l.follow()
}

// follow decides what follows from what was applied, makes it durable and
// publishes all changes.
func (l *loop) follow() error {
	l.schedule()
	if err := l.commit(); err != nil {
		return err
	}
	l.publish()
	return nil
}

// take runs messages until the batch is full or a second one about a job comes.
func (l *loop) take() {
	seen := map[job.ID]bool{}
	for n := 0; n < batchSize; n++ {
		if len(l.carry) == 0 {
			select {
			case m := <-l.control.inbox:
				l.carry = append(l.carry, m)
			default:
				return
			}
		}
		m := l.carry[0]
		if m.job != 0 && seen[m.job] {
			return
		}
		seen[m.job] = true
		l.carry = l.carry[1:]
		m.run(l)
	}
}

func (l *loop) stage(kind string, id job.ID, payload any, then func(), failed func(error)) {
	l.batch = append(l.batch, staged{record(l.cfg.Clock.Now(), kind, id, payload), then, failed})
}

// commit writes the batch, applies it, and does what follows. Where the journal
// cannot be written for now, requests are refused and the rest is tried again.
func (l *loop) commit() error {
	for pause := dispatchPause; len(l.batch) > 0; pause = min(2*pause, 5*time.Second) {
		recs := make([]store.Record, len(l.batch))
		for i, s := range l.batch {
			recs[i] = s.rec
		}
		last, err := l.cfg.Store.Append(l.ctx, l.epoch, recs)
		if err == nil {
			return l.applyBatch(last)
		}
		if l.ctx.Err() != nil {
			return context.Cause(l.ctx)
		}
		if fault.KindOf(err) == fault.Conflict {
			return fmt.Errorf("no longer the leader: %w", err)
		}
		l.cfg.Log.Error("the journal cannot be written", "records", len(recs), "again in", pause, "error", err)
		l.refuseBatch(err)
		if len(l.batch) > 0 {
			l.meanwhile(pause, err)
		}
	}
	return nil
}

// meanwhile waits for the next try to write the journal. Readers are answered and
// what is to change is refused, so that nobody waits for a disk to have room.
func (l *loop) meanwhile(pause time.Duration, why error) {
	timer, stop := l.cfg.Clock.After(pause)
	defer stop()
	for {
		inbox := l.control.inbox
		if len(l.carry) >= batchSize {
			inbox = nil
		}
		select {
		case m := <-inbox:
			switch {
			case m.refuse == nil:
				l.carry = append(l.carry, m)
			case m.job == 0:
				m.run(l)
				l.refuseBatch(why)
			default:
				m.refuse(why)
			}
		case <-timer:
			return
		case <-l.ctx.Done():
			return
		}
	}
}

const dispatchPause = 50 * time.Millisecond

func (l *loop) applyBatch(last uint64) error {
	batch := l.batch
	l.batch = nil
	for i, s := range batch {
		s.rec.Seq, s.rec.Epoch = last-uint64(len(batch)-1-i), l.epoch
		if err := l.state.apply(s.rec); err != nil {
			return fmt.Errorf("a durable record does not apply, which is a defect: %w", err)
		}
	}
	for _, s := range batch {
		if s.then != nil {
			s.then()
		}
	}
	return nil
}

// refuseBatch answers the requests of the batch with an error and keeps the rest.
func (l *loop) refuseBatch(err error) {
	kept := l.batch[:0]
	for _, s := range l.batch {
		if s.failed == nil {
			kept = append(kept, s)
			continue
		}
		s.failed(err)
	}
	l.batch = kept
}

func (l *loop) publish() {
	seen := map[job.ID]bool{}
	for _, id := range l.state.touched {
		if !seen[id] {
			seen[id] = true
			l.control.changes.Append(l.view(l.state.jobs[id]))
		}
	}
	l.state.touched = l.state.touched[:0]
}

func (l *loop) view(e *entry) View {
	v := View{Job: e.Job, Claims: e.claims, Report: e.report, Why: e.why}
	if a, ok := l.state.led.Of(e.ID); ok {
		v.Ref = reconcile.Ref(a)
	}
	return v
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
