package local

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// part is one node of a gang. The upper fields belong to the gang's goroutine,
// the lower ones to the part's own, which follows the supervisor.
type part struct {
	gang  *gang
	index int
	node  fleet.Node
	at    attempt.Slot // where it sits, as logged; no name: nowhere yet
	state attempt.State
	dead  bool // its supervisor is no more, and nothing else lives either
	lost  bool // and it had not said so itself
	fell  bool // it was lost before it was to end
	deaf  bool // its supervisor does not answer
	open  bool // its supervisor is dead, and what that left is not proved gone yet
	// ending is set when the supervisor was told to end.
	ending bool
	hold   attempt.Command // the last OpSuspend or OpResume that it was told; no Op: none yet

	commands chan attempt.Command
	followed chan struct{} // closed when the part's goroutine has ended
	home     attempt.Slot  // as at
	seat     *seat         // nil: none, or it is dead
	told     bool          // a command was given to the supervisor
}

// gone reports whether nothing of the part lives.
func (p *part) gone() bool { return p.dead || p.state.Gone && !p.state.Unsaved }

// blame is the cause of a launch that fails because of the part.
func (p *part) blame() engine.Cause {
	if p.state.Cause == engine.Unready {
		return engine.Unready
	}
	return engine.LaunchFailed
}

// failed reports whether the batch script ended by itself, and not well. One of which a
// node was lost does so: its srun fails.
func (p *part) failed() bool {
	return p.state.Cause == engine.Exited && p.state.Exit != nil && !p.state.Exit.OK()
}

// why is what is worth saying of the part.
func (p *part) why() string {
	switch {
	case p.lost:
		return cmp.Or(p.state.Text, "the supervisor on "+p.node.Name+" died")
	case p.deaf:
		return "the supervisor on " + p.node.Name + " does not answer"
	}
	return p.state.Text
}

// tell hands a command to the part's goroutine, and reports whether that takes it.
func (p *part) tell(c attempt.Command) bool {
	c.Ref = p.gang.launch.Ref
	select {
	case p.commands <- c:
		return true
	default:
		p.gang.e.cfg.Log.Warn("a supervisor is too far behind to take a command", "attempt", p.gang.launch.Ref, "node", p.node.Name, "op", c.Op)
		return false
	}
}

// event runs f on the gang's goroutine.
func (p *part) event(f func()) {
	select {
	case p.gang.inbox <- f:
	case <-p.gang.done:
	case <-p.gang.e.ctx.Done():
	}
}

// apply folds a record in, on the gang's goroutine.
func (p *part) apply(r attempt.Record) {
	p.deaf = false
	p.state.Apply(r)
	// A supervisor that was made ready before its server died still waits.
	if r.Kind == attempt.KindState && p.gang.decided == attempt.EntryGo && p.state.Phase == engine.Ready {
		p.gang.tellGo(p)
	}
	if r.Kind == attempt.KindState && p.gang.decided == attempt.EntryAbort && p.state.Phase < engine.Ending {
		p.tell(attempt.Command{Op: attempt.OpAbort, Cause: p.gang.cause, Text: p.gang.text})
	}
	if r.Kind == attempt.KindState && p.state.Phase == engine.Running && p.state.Turn < p.hold.Turn {
		p.tell(p.hold) // who connects anew may not have heard it
	}
}

// follow starts the supervisor if it may be started and is not there, listens to
// it until the part is gone or the supervisor is dead, and then makes sure that
// nothing else lives.
func (p *part) follow(start bool) {
	defer close(p.followed)
	ctx := p.gang.e.ctx
	s, err := p.attach(start)
	for again := start; s != nil; {
		p.seat = s
		if p.listen(ctx, s) {
			return
		}
		_ = s.conn.Close()
		if ctx.Err() != nil {
			return
		}
		was := s
		if s = p.again(ctx, s); s == nil && again && !p.told && ctx.Err() == nil && !p.sat() {
			p.gang.e.pool.dispose(was) // it ended, as one without work does, before it heard
			p.home, p.seat, again = attempt.Slot{}, nil, false
			s, err = p.begin()
		}
	}
	if err != nil {
		p.event(func() {
			p.state.Apply(attempt.Record{Kind: attempt.KindRefuse, Cause: attempt.CauseOf(err), Text: err.Error()})
		})
	}
	if ctx.Err() == nil {
		p.bury(ctx)
	}
}

// sat reports whether the attempt may have sat down on its seat.
func (p *part) sat() bool {
	_, sat, err := attempt.ReadJournal(p.home.Journal(), p.gang.launch.Ref)
	return sat || err != nil
}

// attach connects to the supervisor that is there, or takes one.
func (p *part) attach(start bool) (*seat, error) {
	e := p.gang.e
	if p.home.Name != "" {
		s := p.again(e.ctx, &seat{Slot: p.home, kind: p.kind()})
		if s != nil && start {
			p.sit(s) // it may not have heard; again is no harm
		}
		if s != nil || !start || p.sat() {
			return s, nil
		}
	}
	if !start || e.ctx.Err() != nil {
		return nil, nil
	}
	return p.begin()
}

func (p *part) kind() kind {
	uid := uint32(os.Getuid())
	if u := p.gang.launch.User; u != nil {
		uid = u.UID
	}
	return p.gang.e.kindOf(isVirtual(p.node) && p.gang.launch.Naming != NamedByAddr, p.node.Name, uid)
}

func isVirtual(n fleet.Node) bool { return n.Virtual }

// begin puts the part on a seat: first in the log, then in fact.
func (p *part) begin() (*seat, error) {
	e := p.gang.e
	s, err := e.pool.take(p.kind(), p.node.Name)
	if err != nil {
		return nil, err
	}
	if err := e.log.Append(attempt.Entry{Kind: attempt.EntrySeat, Ref: p.gang.launch.Ref, Index: p.index, Seat: &s.Slot}); err != nil {
		e.pool.dispose(s)
		return nil, err
	}
	at := s.Slot
	p.home = at
	p.event(func() { p.at = at })
	p.sit(s)
	return s, nil
}

// sit tells a supervisor to take the part. If that fails the connection has ended, and
// whoever listens hears of it. Nothing is said where every part has long sat.
func (p *part) sit(s *seat) {
	if whole := p.gang.whole.Load(); whole != nil {
		_ = s.write(attempt.TakeLine(p.gang.launch.Ref, p.index, p.home, *whole), p.gang.e.cfg.Deaf)
	}
}

// again connects to a supervisor as long as it lives. It may not listen yet.
func (p *part) again(ctx context.Context, s *seat) *seat {
	for wait := time.Millisecond; s.alive(p.gang.e.boot) && ctx.Err() == nil; wait = min(2*wait, 200*time.Millisecond) {
		c, err := socket.Dial(s.ControlSocket(), 0)
		if err == nil {
			next := &seat{Slot: s.Slot, kind: s.kind, process: s.process, conn: c}
			p.gang.e.pool.hear(next)
			return next
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	return nil
}

// listen passes records to the gang and commands to the supervisor, until the part
// is gone (true) or the connection has ended. A supervisor that does not act on a
// command to end in time is ended with SIGKILL; one that is silent for long is asked
// whether it is there.
func (p *part) listen(ctx context.Context, s *seat) (over bool) {
	cfg := p.gang.e.cfg
	ref := p.gang.launch.Ref
	var deaf, silent <-chan time.Time
	pulse := time.NewTimer(cfg.Pulse)
	defer pulse.Stop()
	for {
		select {
		case c := <-p.commands:
			p.told = true
			if err := s.send(c, cfg.Deaf); err != nil {
				p.requeue(c)
				return false
			}
			if c.Op != attempt.OpSignal && deaf == nil {
				deaf = time.After(cfg.Deaf)
			}
		case r, ok := <-s.records:
			if !ok {
				return false
			}
			deaf, silent = nil, nil
			if r.Ref != ref {
				continue // of one that sat there before
			}
			p.event(func() { p.apply(r) })
			if ended(r) {
				return true
			}
		case <-deaf:
			deaf = nil
			p.execute(s)
		case <-pulse.C:
			if silent == nil && s.send(attempt.Command{Op: attempt.OpPing, Ref: ref}, cfg.Deaf) == nil {
				silent = time.After(cfg.Deaf)
			}
			pulse.Reset(cfg.Pulse)
		case <-silent:
			p.event(func() { p.deaf = true })
		case <-ctx.Done():
			return false
		}
	}
}

// ended reports whether a record is a supervisor's last word about an attempt.
func ended(r attempt.Record) bool {
	return !r.Unsaved && (r.Kind == attempt.KindGone || r.Kind == attempt.KindState && r.State.Gone)
}

// requeue keeps a command that could not be written for the next connection.
func (p *part) requeue(c attempt.Command) {
	select {
	case p.commands <- c:
	default:
	}
}

// execute ends a supervisor that no longer answers; bury does the rest.
func (p *part) execute(s *seat) {
	if s.alive(p.gang.e.boot) {
		p.gang.e.cfg.Log.Warn("a supervisor does not answer and is killed", "attempt", p.gang.launch.Ref, "node", p.node.Name, "pid", s.Identity.PID)
		_ = unix.Kill(s.Identity.PID, unix.SIGKILL)
	}
}

func sortTasks(ts []engine.TaskReport) {
	slices.SortStableFunc(ts, func(a, b engine.TaskReport) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Rank, b.Rank))
	})
}
