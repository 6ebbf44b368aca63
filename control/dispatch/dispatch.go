// Package dispatch carries out what control has journaled: it calls the engine,
// and calls again where there was no answer.
//
// Calls about one attempt go out one after the other, in the order in which they
// were given; attempts do not wait for each other. A call without an answer is
// repeated, with growing pauses, until it is answered or the dispatcher is closed:
// engine calls are idempotent by engine.Ref. So is a stop, or a word that an attempt may be
// forgotten, that the engine could not carry out, as on a full disk. A launch that is to be stopped, or
// whose end was heard of, is not repeated. One that was refused, or given up, is
// reported once the engine is certain not to have it and a Stop has made sure that it
// never begins: a call that got no answer may still arrive.
package dispatch

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Pauses between repeated calls.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 10 * time.Second
)

// Config are a Dispatcher's parts.
type Config struct {
	Engine engine.Engine
	// Leads says whether what this dispatcher was told still holds: an error keeps it
	// from giving up a launch, which another leader may repeat. nil: it holds.
	Leads func(context.Context) error
	Pause func(context.Context, time.Duration) error // waits; nil: the real clock
	Log   *slog.Logger
}

// Dispatcher owns one goroutine per attempt that has calls outstanding.
type Dispatcher struct {
	cfg    Config
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	queues map[engine.Ref][]call // present: a goroutine works on it
	counts map[string]Count
}

// Count says how often a verb of the engine was called, and how often without success.
type Count struct{ Calls, Errors uint64 }

type call struct {
	name string
	do   func(context.Context) error
}

// New returns a Dispatcher; Close ends it.
func New(cfg Config) *Dispatcher {
	if cfg.Pause == nil {
		cfg.Pause = pauseFor
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Dispatcher{cfg: cfg, ctx: ctx, cancel: cancel, queues: map[engine.Ref][]call{}, counts: map[string]Count{}}
}

// Load reads what an attempt starts with. It is called when the call goes out, so
// that scripts and environments are in memory no longer than needed.
type Load func(context.Context) (*engine.Launch, error)

// Launch starts an attempt. refused is called, from a goroutine of the dispatcher,
// if the engine does not take it, has nothing of it and never will.
func (d *Dispatcher) Launch(ref engine.Ref, load Load, refused func(error)) {
	var given error // why it was given up: a stop is on its way, so it is not launched again
	d.push(ref, call{"launch", func(ctx context.Context) error {
		if given == nil {
			err := d.callLaunch(ctx, ref, load)
			switch {
			case err == nil || d.comesNext(ref, "forget"): // which fences it
				return nil
			case fault.KindOf(err) == fault.Unavailable && !d.comesNext(ref, "stop"):
				return err
			}
			if nothing, err := d.nothingLaunched(ctx, ref, err); !nothing {
				return err
			}
			given = err
		}
		return d.barLaunch(ctx, ref, given, refused)
	}})
}

// ErrStopped is why a launch is refused that was to be stopped before the engine had it.
var ErrStopped = fault.New(fault.Conflict, "it was to be stopped before it was launched")

var errOver = fault.New(fault.Conflict, "its end was heard of")

func (d *Dispatcher) callLaunch(ctx context.Context, ref engine.Ref, load Load) error {
	switch {
	case d.comesNext(ref, "forget"):
		return errOver
	case d.comesNext(ref, "stop"):
		return ErrStopped
	}
	l, err := load(ctx)
	if err != nil {
		return err
	}
	return d.cfg.Engine.Launch(ctx, l)
}

// nothingLaunched finds out whether the engine has nothing of a launch that is not repeated,
// so that it may be given up.
func (d *Dispatcher) nothingLaunched(ctx context.Context, ref engine.Ref, why error) (bool, error) {
	r, err := d.cfg.Engine.Inspect(ctx, ref)
	switch {
	case err == nil && (d.comesNext(ref, "stop") || fault.KindOf(why) == fault.Conflict):
		d.cfg.Log.Info("the engine has it already", "ref", ref, "phase", r.Phase, "launch", why)
		return false, nil // its reports say what becomes of it
	case err == nil:
		return false, fault.New(fault.Unavailable, "launch was answered with an error, yet something of it exists: %w", why)
	case fault.KindOf(err) != fault.NotFound:
		return false, fault.New(fault.Unavailable, "%w; and whether it exists is not known: %w", why, err)
	}
	if d.cfg.Leads != nil {
		if err := d.cfg.Leads(ctx); err != nil {
			return false, fault.New(fault.Unavailable, "%w; and whether it may be given up is not known: %w", why, err)
		}
	}
	return true, nil
}

// barLaunch sees to it that a launch that was given up never begins. That is a refusal.
func (d *Dispatcher) barLaunch(ctx context.Context, ref engine.Ref, why error, refused func(error)) error {
	err := d.cfg.Engine.Stop(ctx, ref, engine.Stop{Reason: "its launch was given up"})
	switch {
	case err == nil:
		d.cfg.Log.Info("a launch arrived after it was given up and is ended", "ref", ref, "launch", why)
		return nil // its reports say what becomes of it
	case fault.KindOf(err) != fault.NotFound:
		return fault.New(fault.Unavailable, "%w; and whether it will begin is not known: %w", why, err)
	}
	refused(why)
	return nil
}

// Stop begins to end an attempt. gone is called, from a goroutine of the dispatcher,
// if the engine has nothing of it and never will; nil: nobody asks.
func (d *Dispatcher) Stop(ref engine.Ref, s engine.Stop, gone func()) {
	d.push(ref, call{"stop", func(ctx context.Context) error {
		err := d.cfg.Engine.Stop(ctx, ref, s)
		if err != nil && fault.KindOf(err) == fault.NotFound && gone != nil {
			gone()
			return nil
		}
		return retryIfUndone(err)
	}})
}

// retryIfUndone has a call repeated that the engine could not carry out, as where it has no room to write
// it down: nobody else would ask for it again.
func retryIfUndone(err error) error {
	switch k := fault.KindOf(err); {
	case err == nil:
		return nil
	case k == fault.Exhausted || k == fault.Internal || k == fault.Permission:
		return fault.New(fault.Unavailable, "%w", err)
	}
	return err
}

// Busy reports whether calls about an attempt are outstanding.
func (d *Dispatcher) Busy(ref engine.Ref) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, busy := d.queues[ref]
	return busy
}

// comesNext reports whether a call of that name is to be made next.
func (d *Dispatcher) comesNext(ref engine.Ref, name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.queues[ref], func(c call) bool { return c.name == name })
}

// Signal sends a signal to an attempt.
func (d *Dispatcher) Signal(ref engine.Ref, signal int, to engine.Scope) {
	d.push(ref, call{"signal", func(ctx context.Context) error { return d.cfg.Engine.Signal(ctx, ref, signal, to) }})
}

// Suspend stops the processes of an attempt, or continues them; that is not repeated once
// the attempt is to end. An engine that is no engine.Suspender does nothing.
func (d *Dispatcher) Suspend(ref engine.Ref, on bool) {
	s, ok := d.cfg.Engine.(engine.Suspender)
	if !ok {
		return
	}
	name, do := "resume", s.Resume
	if on {
		name, do = "suspend", s.Suspend
	}
	d.push(ref, call{name, func(ctx context.Context) error { return d.retryIfUnsure(ref, do(ctx, ref)) }})
}

// Relimit changes the time limit of an attempt. A call that fails is tried again until the attempt
// is told to end. It does nothing where the engine is no engine.Relimiter.
func (d *Dispatcher) Relimit(ref engine.Ref, limit time.Duration) {
	k, ok := d.cfg.Engine.(engine.Relimiter)
	if !ok {
		return
	}
	d.push(ref, call{"limit", func(ctx context.Context) error { return d.retryIfUnsure(ref, k.Relimit(ctx, ref, limit)) }})
}

// Park suspends an attempt so that others can have what it holds. then is called, from a
// goroutine of the dispatcher, with what the engine says of it after it was told: that
// report, and every later one, is about this and about nothing that was said before.
func (d *Dispatcher) Park(ref engine.Ref, then func(engine.Report)) {
	s, ok := d.cfg.Engine.(engine.Suspender)
	if !ok {
		return
	}
	d.push(ref, call{"suspend", func(ctx context.Context) error {
		if err := s.Suspend(ctx, ref); err != nil {
			return d.retryIfUnsure(ref, err)
		}
		r, err := d.cfg.Engine.Inspect(ctx, ref)
		if err == nil {
			then(r)
		}
		return d.retryIfUnsure(ref, err)
	}})
}

// retryIfUnsure has a call repeated whose answer says nothing of the attempt, unless that is to
// end: whatever else is to be done about it waits for the call.
func (d *Dispatcher) retryIfUnsure(ref engine.Ref, err error) error {
	k := fault.KindOf(err)
	switch {
	case err == nil || k == fault.NotFound || k == fault.Conflict:
		return err
	case d.comesNext(ref, "stop") || d.comesNext(ref, "forget"):
		d.cfg.Log.Warn("the attempt may not have got the call, and it is told to end now", "ref", ref, "error", err)
		return nil
	}
	return fault.New(fault.Unavailable, "the attempt may not have got the call: %w", err)
}

// Regroup writes for a gang who is in it now, and then signals all of it. The first of
// the refs is the gang's own, others were added. An engine that is no engine.Regrouper
// does nothing. Telling keeps nothing else waiting: it is not repeated once another call
// about the gang's own attempt is to be made, and who was added is signalled once.
func (d *Dispatcher) Regroup(refs []engine.Ref, r engine.Roster) {
	e, ok := d.cfg.Engine.(engine.Regrouper)
	if !ok || len(refs) == 0 {
		return
	}
	d.push(refs[0], call{"regroup", func(ctx context.Context) error {
		err := e.Regroup(ctx, refs[0], r)
		for i, ref := range refs {
			if err != nil {
				break
			}
			if failed := d.cfg.Engine.Signal(ctx, ref, resized, engine.ToTasks); failed != nil && i == 0 && fault.KindOf(failed) == fault.Unavailable {
				err = failed
			}
		}
		if err != nil && d.hasMore(refs[0]) {
			d.cfg.Log.Warn("a gang was not told who is in it", "ref", refs[0], "error", err)
			return nil
		}
		return err
	}})
}

// hasMore reports whether another call about an attempt is to be made.
func (d *Dispatcher) hasMore(ref engine.Ref) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queues[ref]) > 0
}

// resized tells a process that its gang has changed: SIGWINCH, which one that does not
// ask for it does not notice.
const resized = 28

// Counts returns the calls so far by verb.
func (d *Dispatcher) Counts() map[string]Count {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.counts)
}

func (d *Dispatcher) countCall(c call, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.counts[c.name]
	n.Calls++
	if err != nil {
		n.Errors++
	}
	d.counts[c.name] = n
}

// Forget lets the engine drop an ended attempt.
func (d *Dispatcher) Forget(ref engine.Ref) {
	d.push(ref, call{"forget", func(ctx context.Context) error { return retryIfUndone(d.cfg.Engine.Forget(ctx, ref)) }})
}

// Close abandons outstanding calls and waits for the goroutines to end.
func (d *Dispatcher) Close() {
	d.mu.Lock() // a call that is pushed meanwhile is counted before, or not at all
	d.cancel()
	d.mu.Unlock()
	d.wg.Wait()
}

func (d *Dispatcher) push(ref engine.Ref, c call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return
	}
	queue, working := d.queues[ref]
	d.queues[ref] = append(queue, c)
	if !working {
		d.wg.Go(func() { d.runCalls(ref) })
	}
}

func (d *Dispatcher) runCalls(ref engine.Ref) {
	for {
		d.mu.Lock()
		queue := d.queues[ref]
		if len(queue) == 0 || d.ctx.Err() != nil {
			delete(d.queues, ref)
			d.mu.Unlock()
			return
		}
		d.queues[ref] = queue[1:]
		d.mu.Unlock()
		d.repeatCall(ref, queue[0])
	}
}

// repeatCall makes a call until it is answered.
func (d *Dispatcher) repeatCall(ref engine.Ref, c call) {
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		err := c.do(d.ctx)
		d.countCall(c, err)
		switch {
		case err == nil || d.ctx.Err() != nil:
			return
		case fault.KindOf(err) != fault.Unavailable:
			d.cfg.Log.Warn("engine call failed", "call", c.name, "ref", ref, "error", err)
			return
		}
		d.cfg.Log.Info("engine call without an answer, trying again", "call", c.name, "ref", ref, "in", wait, "error", err)
		if d.cfg.Pause(d.ctx, wait) != nil {
			return
		}
	}
}

func pauseFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
