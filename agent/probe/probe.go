package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Target is what is looked at.
type Target struct {
	Serve *job.Serve
	Hosts []string // at which it may listen; the first that takes a connection counts. At least one
	Ports []int    // in the order of Serve.Ports
	Began time.Time

	// Exec runs the command of a probe until it ends or ctx does; an error says why it did not pass.
	// nil: no probe has a command.
	Exec func(ctx context.Context, command []string) error

	// Owns says why connections to a port at a host do not reach the target; nil: they do, or nobody
	// takes them. It is asked whenever the readiness probe passes. Without it whoever listens counts.
	Owns func(host string, port int) error
}

// State is what probes say of a target.
type State struct {
	Host  string // of Target.Hosts, at which it listens; the first until one takes a connection
	Ready bool
	Began bool   // the startup probe has passed; false: it has not, or there is none
	Dead  bool   // the liveness probe or the startup probe failed: nothing is looked at any more
	Why   string // it is not ready, or is dead, for people; empty: nothing was seen yet
}

// Watch looks until ctx ends, or the target is dead, and calls f with each change, from one goroutine
// at a time. It returns when all its goroutines have ended.
func Watch(ctx context.Context, t *Target, f func(State)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &watch{t: t, tell: f, cancel: cancel, state: State{Host: t.Hosts[0]}}
	if p := t.Serve.Startup; p != nil && !w.awaitStart(ctx, p) {
		return
	}
	w.update(func(s *State) { s.Began = t.Serve.Startup != nil })
	var all sync.WaitGroup
	all.Go(func() { w.watchReadiness(ctx) })
	if p := t.Serve.Liveness; p != nil {
		all.Go(func() { w.watchLiveness(ctx, p) })
	}
	all.Wait()
}

// watch is a Watch.
type watch struct {
	t      *Target
	cancel context.CancelFunc

	mu    sync.Mutex // held while f runs
	tell  func(State)
	state State
}

// update changes the state, and tells of it.
func (w *watch) update(change func(*State)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.state
	if was.Dead {
		return
	}
	change(&w.state)
	if w.state != was {
		w.tell(w.state)
	}
}

// awaitStart looks until the startup probe has passed.
func (w *watch) awaitStart(ctx context.Context, p *job.Probe) (passed bool) {
	w.repeatLooks(ctx, p, func(c *counter, err error) (more bool) {
		switch {
		case c.hasPassed():
			passed = true
		case c.hasFailed():
			w.update(func(s *State) { s.Dead, s.Why = true, "the startup probe failed: "+err.Error() })
		case err != nil:
			w.update(func(s *State) { s.Why = "the startup probe has not passed: " + err.Error() })
		}
		return !passed && !c.hasFailed()
	})
	return passed
}

// watchReadiness looks whether the target is ready.
func (w *watch) watchReadiness(ctx context.Context) {
	p := w.t.Serve.Readiness
	what := "the readiness probe"
	if p == nil {
		p, what = &job.Probe{TCP: true}, "the first port"
	}
	w.repeatLooks(ctx, p, func(c *counter, err error) bool {
		switch {
		case c.hasPassed():
			w.update(func(s *State) { s.Ready, s.Why = true, "" })
		case c.hasFailed() || err != nil && !c.everPassed:
			w.update(func(s *State) { s.Ready, s.Why = false, what+" does not pass: "+err.Error() })
		}
		return true
	})
}

// watchLiveness looks whether the target lives.
func (w *watch) watchLiveness(ctx context.Context, p *job.Probe) {
	w.repeatLooks(ctx, p, func(c *counter, err error) bool {
		if !c.hasFailed() {
			return true
		}
		w.update(func(s *State) { s.Ready, s.Dead, s.Why = false, true, "the liveness probe failed: "+err.Error() })
		w.cancel()
		return false
	})
}

// firstLooks is from one look to the next until a probe has passed for the first time: a program that
// begins in a moment serves in a moment, however seldom it is looked at later.
const firstLooks = 50 * time.Millisecond

// repeatLooks looks again and again until ctx ends or note says that this is enough.
func (w *watch) repeatLooks(ctx context.Context, p *job.Probe, note func(*counter, error) (more bool)) {
	c := &counter{failures: cmp.Or(p.Failures, job.ProbeFailures), passes: cmp.Or(p.Passes, 1)}
	every := cmp.Or(p.Every, job.ProbeEvery)
	wait := time.Until(w.t.Began.Add(p.Delay))
	for n := 0; sleepFor(ctx, wait); n++ {
		err := w.lookOnce(ctx, p)
		if err == nil && p != w.t.Serve.Liveness && p != w.t.Serve.Startup {
			err = w.checkOwner()
		}
		if ctx.Err() != nil {
			return
		}
		c.add(err)
		if !note(c, err) {
			return
		}
		wait = every
		if !c.everPassed && p.Delay == 0 && countsEarly(w.t.Serve, p) {
			wait = min(every, firstLooks<<min(n/10, 4))
		}
	}
}

// countsEarly reports whether looks of a probe may come sooner than was asked until the first that
// passes: not where failures in a row end the program, and not where they run a command.
func countsEarly(s *job.Serve, p *job.Probe) bool {
	return p != s.Liveness && p != s.Startup && len(p.Exec) == 0
}

// lookOnce looks once.
func (w *watch) lookOnce(ctx context.Context, p *job.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.Timeout, job.ProbeTimeout))
	defer cancel()
	if len(p.Exec) > 0 {
		if w.t.Exec == nil {
			return errors.New("commands cannot be run here")
		}
		return w.t.Exec(ctx, p.Exec)
	}
	number := w.t.portNumber(p.Port)
	if number == 0 {
		return fmt.Errorf("it has no port %q", p.Port)
	}
	port := strconv.Itoa(number)
	c, host, err := w.dialPort(ctx, port)
	if err != nil {
		return fmt.Errorf("port %s: %w", port, err)
	}
	defer c.Close()
	if p.HTTP != "" {
		if err := lookHTTP(ctx, c, net.JoinHostPort(host, port), p.HTTP); err != nil {
			return fmt.Errorf("port %s: %w", port, err)
		}
	}
	return nil
}

// Look looks once at a target, as a probe of it says, within the probe's timeout. nil: it passed.
func Look(ctx context.Context, t *Target, p *job.Probe) error {
	return (&watch{t: t, tell: func(State) {}, state: State{Host: t.Hosts[0]}}).lookOnce(ctx, p)
}

// dialPort connects to a port at the first host that takes the connection.
func (w *watch) dialPort(ctx context.Context, port string) (c net.Conn, host string, err error) {
	for _, host = range w.t.Hosts {
		if c, err = dialAddress(ctx, net.JoinHostPort(host, port)); err == nil {
			w.update(func(s *State) { s.Host = host })
			return c, host, nil
		}
	}
	return nil, "", err
}

// portNumber is the number of a port by its name; 0: there is none.
func (t *Target) portNumber(name string) int {
	for i, p := range t.Serve.Ports {
		if (name == "" || p.Name == name) && i < len(t.Ports) {
			return t.Ports[i]
		}
	}
	return 0
}

// counter counts looks in a row.
type counter struct {
	failures, passes int // that count
	failed, passed   int // in a row
	everPassed       bool
}

func (c *counter) add(err error) {
	if err != nil {
		c.failed, c.passed = c.failed+1, 0
		return
	}
	c.failed, c.passed = 0, c.passed+1
	c.everPassed = c.everPassed || c.hasPassed()
}

func (c *counter) hasPassed() bool { return c.passed >= c.passes }
func (c *counter) hasFailed() bool { return c.failed >= c.failures }

// sleepFor waits; false if ctx ended before.
func sleepFor(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
