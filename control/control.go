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
//
// A server that was followed by another changes nothing and answers no request: what
// needs no record is answered, and what the engine has beyond the ledger is ended,
// after a write of nothing has shown that it still leads. It notices within half a
// minute; until then it shows jobs as they were.
//
// Reading needs no loop and waits for no disk. What is shown of jobs is also
// written to the store's projection, a moment later and apart from the loop, so
// that a start reads the jobs that have not ended and the end of the journal, not
// all of it. Jobs leave memory some time after their end; the projection has them.
//
// It does not decide who may do what: callers name who asks, and have asked auth.
//
// The rooms below it, each importing only those before it: state (the fold of the journal),
// pools (the pools and what their engines say), query (answers). Dispatch calls engines,
// reconcile follows their reports; intake makes a submission of a text and uses this package.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/coxswain-sched/coxswain/control/eventlog"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/limit"
	"github.com/coxswain-sched/coxswain/store"
)

// Clock is where time comes from.
type Clock interface {
	Now() time.Time
	// After delivers once when d has passed; stop releases it.
	After(d time.Duration) (c <-chan time.Time, stop func())
}

// Config are the parts of a control plane. Engines and Store are used until Close
// and not closed by it.
type Config struct {
	Store store.Store
	Pools []pools.Pool // jobs that name no pool go to the first one
	// OpenPool opens the engine of a pool that was added while a server ran. It calls
	// nothing that may not answer: a pool that is down is opened all the same. nil: no
	// pools can be added.
	OpenPool func(context.Context, state.PoolSpec) (pools.Pool, error)
	// Declared are the pools of the site's configuration, which OpenPool opens too: their
	// engine and settings are what stands here, whatever the journal has. Declare adds those
	// that it has not.
	Declared []state.PoolSpec
	// SameSite reports whether a pool of the journal with these settings is where it was, so
	// that its jobs are found. nil: it is as long as its settings are the same.
	SameSite func(before, now state.PoolSpec) bool

	Clock Clock         // nil: the machine's
	Log   *slog.Logger  // nil: none
	Who   string        // names this leader in the store
	Grace time.Duration // between the signal to end and the kill; 0: 30 s, as Slurm's KillWait

	// Keep is how long an ended job stays in memory; 0: 5 min, as Slurm's MinJobAge;
	// negative: for ever.
	Keep time.Duration
	// JournalKeep and HistoryKeep are how long records of the journal and ended jobs
	// stay in the store; 0: for ever.
	JournalKeep, HistoryKeep time.Duration
	// KillIfNever ends jobs whose dependency can never be met, where a job does not
	// say itself.
	KillIfNever bool
	// Backoff is the pause after the second attempt in a row that failed; it doubles
	// with each further one. 0: 1 s.
	Backoff time.Duration
	// Project is the time between two writes of the projection; 0: 1 s; negative:
	// there is none, but for tests.
	Project time.Duration
	// Secret returns the value of a secret of a user; nil: nobody keeps any.
	Secret func(uid uint32, one *job.Secret) ([]byte, error)
	// Foretell is the time between two estimates of when waiting jobs start; 0: they
	// are made when somebody asks.
	Foretell time.Duration
}

func (cfg *Config) setDefaults() {
	if cfg.Clock == nil {
		cfg.Clock = realClock{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		at  *time.Duration
		def time.Duration
	}{{&cfg.Grace, 30 * time.Second}, {&cfg.Keep, 5 * time.Minute}, {&cfg.Backoff, time.Second}, {&cfg.Project, time.Second}} {
		if *d.at == 0 {
			*d.at = d.def
		}
	}
}

// Control is a running control plane. Its methods are safe for concurrent use.
type Control struct {
	*parts
	*query.Reader
	opened time.Time
}

// parts is what a Control and its loop share.
type parts struct {
	cfg     Config
	state   *state.State
	core    *sched.Core           // guarded by the state
	flight  *query.FlightRecorder // guarded by the state
	inbox   chan message
	changes *eventlog.Log[job.ID]      // jobs that changed, for Next
	events  *eventlog.Log[state.Event] // numbered as the journal
	pools   *pools.Set
	done    chan struct{}
	cancel  context.CancelCauseFunc
	err     error // why the loop ended; readable after done
}

// message is one piece of work for the loop. A batch takes at most one message about a job, so
// each message sees what the one before it did.
type message struct {
	job    job.ID
	bulk   bool // it is about many jobs
	run    func(*loop)
	refuse func(error) // instead of run; nil: it cannot be refused
}

const (
	inboxSize   = 1024
	batchSize   = 512
	changesKept = 4096
	eventsKept  = 1 << 13
	retryWatch  = 200 * time.Millisecond
	firstWait   = 10 * time.Second // for the first records of a start
)

// Open takes the lead over a store, reads the projection and the journal after it,
// learns the engines' nodes and takes up the work that is running. The context
// bounds opening alone.
func Open(ctx context.Context, cfg Config) (*Control, error) {
	cfg.setDefaults()
	s := state.New()
	if len(cfg.Pools) == 0 {
		return nil, fault.New(fault.Invalid, "there is no pool")
	}
	s.ElasticPools, s.Specs.Home = pools.ElasticPoolNames(cfg.Pools), cfg.Pools[0].Name
	epoch, err := cfg.Store.Lead(ctx, cfg.Who)
	if err != nil {
		return nil, fmt.Errorf("take the lead: %w", err)
	}
	projected, err := s.Restore(ctx, cfg.Store, cfg.Clock.Now(), cfg.Keep)
	if err != nil {
		return nil, err
	}
	for _, why := range s.Skipped {
		cfg.Log.Warn("a record of the journal says nothing", "why", why)
	}
	s.Skipped = nil
	if err = s.Check(); err != nil {
		return nil, state.DamagedError(fmt.Errorf("the journal does not add up: %w", err))
	}
	if err = cfg.checkDeclared(s); err != nil {
		return nil, err
	}
	kept := cfg.openKept(ctx, s.Pools)
	for _, p := range kept {
		s.ElasticPools[p.Name] = p.Elastic
	}
	ps, err := pools.NewSet(cfg.Pools, kept, s.Ledger.Live(), cfg.Log, func(ctx context.Context) error {
		_, err := cfg.Store.Append(ctx, epoch, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.DelegatedPools, s.AddressedPools, s.ManyPools = ps.DelegatedNames(), ps.AddressedNames(), len(ps.AllPools()) > 1
	s.PoolNames = ps.ConfiguredNames()
	nodes, err := ps.AskNodes(ctx, cfg.Clock, cfg.Log)
	if err != nil {
		ps.Close()
		return nil, err
	}
	run, stop := context.WithCancelCause(context.Background())
	all := &parts{
		cfg: cfg, state: s, core: sched.New(sched.Config{}), flight: new(query.FlightRecorder),
		inbox: make(chan message, inboxSize), changes: eventlog.NewLog[job.ID](changesKept),
		events: eventlog.Resume[state.Event](eventsKept, s.Seq),
		done:   make(chan struct{}), cancel: stop, pools: ps,
	}
	c := &Control{parts: all, opened: cfg.Clock.Now(), Reader: query.New(query.Sources{
		Store: cfg.Store, Clock: cfg.Clock, Log: cfg.Log, ForecastEach: cfg.Foretell,
		State: s, Core: all.core, Flight: all.flight, Pools: ps,
		Changes: all.changes, Events: all.events, Done: all.done, Inbox: func() int { return len(all.inbox) },
	})}
	l := &loop{
		parts: all, ctl: c, backpressure: backpressure{parts: all}, ctx: run, epoch: epoch, numbers: s.Next, coming: map[limit.Key]int{}, arriving: map[job.Part]*partArrival{}, changing: map[string]bool{}, claiming: map[string]bool{}, checking: map[fleet.NodeKey]bool{},
		project: &projector{parts: all, epoch: epoch, upTo: projected, kick: make(chan struct{}, 1)},
	}
	l.primeCore(nodes)
	first := len(l.batch) > 0
	go l.main()
	if first { // who owns machines: without these records nothing starts there
		ctx, cancel := context.WithTimeout(ctx, firstWait)
		defer cancel()
		_ = c.askLoop(ctx, message{}, func(l *loop, answer func(error)) { l.answerWhenLeading(answer) })
	}
	return c, nil
}

// Close stops the loop and every goroutine. Work that runs goes on.
func (c *Control) Close() error {
	c.cancel(errClosed)
	<-c.done
	if errors.Is(c.err, errClosed) {
		return nil
	}
	return c.err
}

// Done is closed when the loop has ended, by Close or because it lost the lead.
func (c *Control) Done() <-chan struct{} { return c.done }

// Started is when this control plane was opened.
func (c *Control) Started() time.Time { return c.opened }

var errClosed = errors.New("the control plane was closed")

// postMessage hands a message to the loop; it gives up when ctx or the loop ends.
func (c *parts) postMessage(ctx context.Context, m message) error {
	select {
	case c.inbox <- m:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "no answer from the control plane: %w", ctx.Err())
	case <-c.done:
		return fault.New(fault.Unavailable, "the control plane has ended: %w", c.err)
	}
}

// askLoop posts a message and waits until it called answer, which it may do at most once.
func (c *Control) askLoop(ctx context.Context, m message, run func(l *loop, answer func(error))) error {
	reply := make(chan error, 1)
	answer := func(err error) { reply <- err }
	m.run, m.refuse = func(l *loop) { run(l, answer) }, answer
	if err := c.postMessage(ctx, m); err != nil {
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

// Check verifies every invariant of the state; for tests.
func (c *Control) Check(ctx context.Context) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) { answer(l.state.Check()) })
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
