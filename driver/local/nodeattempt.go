package local

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// nodeAttempt is one node of a gang. The upper fields belong to the gang's goroutine,
// the lower ones to the part's own, which follows the supervisor.
type nodeAttempt struct {
	gang  *gang
	index int
	node  fleet.Node
	at    attempt.Slot // where it sits, as logged; no name: nowhere yet
	state attempt.State
	dead  bool   // its supervisor is no more, and nothing else lives either
	lost  bool   // and it had not said so itself
	fell  bool   // it was lost before it was to end
	deaf  bool   // its supervisor does not answer
	unfit string // why the node may not get the work; empty: nothing is known against it
	open  bool   // its supervisor is dead, and what that left is not proved gone yet
	// ending is set when the supervisor was told to end.
	ending bool
	hold   attempt.Command // the last OpSuspend or OpResume that it was told; no Op: none yet

	commands chan attempt.Command
	followed chan struct{}   // closed when the part's goroutine has ended
	home     attempt.Slot    // as at
	seat     *supervisorSlot // nil: none, or it is dead
	told     bool            // a command was given to the supervisor
}

// isGone reports whether nothing of the part lives.
func (p *nodeAttempt) isGone() bool { return p.dead || p.state.Gone && !p.state.Unsaved }

// failureCause is the cause of a launch that fails because of the part. A supervisor that somebody
// killed before the barrier says nothing about the job: none of its program has run, and nothing of
// the part lives, so it is launched again, but not without end. One that ended with a word of its own
// would do so again. It is called once, when the launch is given up.
func (p *nodeAttempt) failureCause() (engine.Cause, string) {
	text := p.failureText()
	switch c := p.state.Cause; {
	case c == engine.Unready || c == engine.Refused:
		return c, text
	case p.dead && p.lost && !p.state.Refused && p.supervisorWords() == "":
		n := p.gang.e.killed.noteKill(p.gang.launch.Job.ID)
		if n <= freeKills {
			return engine.Unready, text
		}
		text = fmt.Sprintf("%s before the job began, as in the %d launches before: a program on this machine kills it. Look for the out-of-memory killer in the kernel's log (dmesg), and for programs that end processes", text, n-1)
	}
	return engine.LaunchFailed, text
}

// hasFailed reports whether the batch script ended by itself, and not well. One of which a
// node was lost does so: its srun fails.
func (p *nodeAttempt) hasFailed() bool {
	return p.state.Cause == engine.Exited && p.state.Exit != nil && !p.state.Exit.OK()
}

// failureText is what is worth saying of the part.
func (p *nodeAttempt) failureText() string {
	switch {
	case p.lost:
		return cmp.Or(p.state.Text, "the supervisor on "+p.node.Name+" died")
	case p.deaf:
		return "the supervisor on " + p.node.Name + " does not answer"
	}
	return p.state.Text
}

// sendCommand hands a command to the part's goroutine, and reports whether that takes it.
func (p *nodeAttempt) sendCommand(c attempt.Command) bool {
	c.Ref = p.gang.launch.Ref
	select {
	case p.commands <- c:
		return true
	default:
		p.gang.e.cfg.Log.Warn("a supervisor is too far behind to take a command", "attempt", p.gang.launch.Ref, "node", p.node.Name, "op", c.Op)
		return false
	}
}

// onGang runs f on the gang's goroutine.
func (p *nodeAttempt) onGang(f func()) {
	select {
	case p.gang.inbox <- f:
	case <-p.gang.done:
	case <-p.gang.e.ctx.Done():
	}
}

// applyRecord folds a record in, on the gang's goroutine.
func (p *nodeAttempt) applyRecord(r attempt.Record) {
	p.deaf = false
	p.state.Apply(r)
	// A supervisor that was made ready before its server died still waits.
	if r.Kind == attempt.KindState && p.gang.decided == attempt.EntryGo && p.state.Phase == engine.Ready {
		p.gang.tellGo(p)
	}
	if r.Kind == attempt.KindState && p.gang.decided == attempt.EntryAbort && p.state.Phase < engine.Ending {
		p.sendCommand(attempt.Command{Op: attempt.OpAbort, Cause: p.gang.cause, Text: p.gang.text})
	}
	if r.Kind == attempt.KindState && p.state.Phase == engine.Running && p.state.Turn < p.hold.Turn {
		p.sendCommand(p.hold) // who connects anew may not have heard it
	}
}

// followSupervisor starts the supervisor if it may be started and is not there, listens to
// it until the part is gone or the supervisor is dead, and then makes sure that
// nothing else lives.
func (p *nodeAttempt) followSupervisor(start bool) {
	defer close(p.followed)
	ctx := p.gang.e.ctx
	s, err := p.attachSupervisor(start)
	for again := start; s != nil; {
		p.seat = s
		if p.listenSupervisor(ctx, s) {
			return
		}
		_ = s.conn.Close()
		if ctx.Err() != nil {
			return
		}
		was := s
		if s = p.reconnectSupervisor(ctx, s); s == nil && again && !p.told && ctx.Err() == nil && !p.mayHaveStarted() {
			p.gang.e.pool.disposeSlot(was) // it ended, as one without work does, before it heard
			p.home, p.seat, again = attempt.Slot{}, nil, false
			s, err = p.assignSlot()
		}
	}
	if err != nil {
		p.onGang(func() {
			p.state.Apply(attempt.Record{Kind: attempt.KindRefuse, Cause: attempt.CauseOf(err), Text: err.Error()})
		})
	}
	if ctx.Err() == nil {
		p.reapProcesses(ctx)
	}
}

// mayHaveStarted reports whether the attempt may have sat down on its seat.
func (p *nodeAttempt) mayHaveStarted() bool {
	_, sat, err := attempt.ReadJournal(p.home.Journal(), p.gang.launch.Ref)
	return sat || err != nil
}

// attachSupervisor connects to the supervisor that is there, or takes one.
func (p *nodeAttempt) attachSupervisor(start bool) (*supervisorSlot, error) {
	e := p.gang.e
	if p.home.Name != "" {
		s := p.reconnectSupervisor(e.ctx, &supervisorSlot{Slot: p.home, kind: p.slotKind()})
		if s != nil && start {
			p.startOnSlot(s) // it may not have heard; again is no harm
		}
		if s != nil || !start || p.mayHaveStarted() {
			return s, nil
		}
	}
	if !start || e.ctx.Err() != nil {
		return nil, nil
	}
	return p.assignSlot()
}

func (p *nodeAttempt) slotKind() kind {
	uid := uint32(os.Getuid())
	if u := p.gang.launch.User; u != nil {
		uid = u.UID
	}
	k := p.gang.e.kindOf(isVirtual(p.node) && p.gang.launch.Naming != NamedByAddr, p.node.Name, uid)
	k.network = p.gang.launch.Network
	return k
}

func isVirtual(n fleet.Node) bool { return n.Virtual }

// assignSlot puts the part on a seat: first in the log, then in fact.
func (p *nodeAttempt) assignSlot() (*supervisorSlot, error) {
	e := p.gang.e
	s, err := e.pool.takeSlot(p.slotKind(), p.node.Name)
	if err != nil {
		return nil, err
	}
	if err := e.log.Append(attempt.Entry{Kind: attempt.EntrySeat, Ref: p.gang.launch.Ref, Index: p.index, Seat: &s.Slot}); err != nil {
		e.pool.disposeSlot(s)
		return nil, err
	}
	at := s.Slot
	p.home = at
	p.onGang(func() { p.at = at })
	p.startOnSlot(s)
	return s, nil
}

// startOnSlot tells a supervisor to take the part. If that fails the connection has ended, and
// whoever listens hears of it. Nothing is said where every part has long sat.
func (p *nodeAttempt) startOnSlot(s *supervisorSlot) {
	if whole := p.gang.whole.Load(); whole != nil {
		_ = s.writeLine(attempt.TakeLine(p.gang.launch.Ref, p.index, p.home, *whole), p.gang.e.cfg.Deaf)
	}
}

// reconnectSupervisor connects to a supervisor as long as it lives. It may not listen yet.
// One that cannot be reached for long although somebody has a command for it is ended.
func (p *nodeAttempt) reconnectSupervisor(ctx context.Context, s *supervisorSlot) *supervisorSlot {
	from := time.Now()
	for wait := time.Millisecond; s.isAlive(p.gang.e.boot) && ctx.Err() == nil; wait = min(2*wait, 200*time.Millisecond) {
		c, err := socket.Dial(s.ControlSocket(), 0)
		if err == nil {
			next := &supervisorSlot{Slot: s.Slot, kind: s.kind, process: s.process, conn: c}
			p.gang.e.pool.hearSlot(next)
			return next
		}
		if len(p.commands) > 0 && time.Since(from) > reconnectTries*p.gang.e.cfg.Deaf {
			p.killSupervisor(s)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	return nil
}

// reconnectTries is how many times Config.Deaf a supervisor may not be reachable.
const reconnectTries = 4

// listenSupervisor passes records to the gang and commands to the supervisor, until the part
// is gone (true) or the connection has ended. A supervisor that does not act on a
// command in time counts as hung, and so does one that is silent for long and does not answer when it is asked
// whether it is there. It is ended with SIGKILL only if it was told to end the part.
func (p *nodeAttempt) listenSupervisor(ctx context.Context, s *supervisorSlot) (over bool) {
	cfg := p.gang.e.cfg
	ref := p.gang.launch.Ref
	var deaf, silent <-chan time.Time
	toEnd := false // it was told to end the part
	pulse := time.NewTimer(cfg.Pulse)
	defer pulse.Stop()
	for {
		select {
		case c := <-p.commands:
			p.told = true
			if err := s.sendCommand(c, cfg.Deaf); err != nil {
				p.requeueCommand(c)
				return false
			}
			if !toEnd && (c.Op == attempt.OpStop || c.Op == attempt.OpAbort) {
				toEnd, deaf = true, nil
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
			p.onGang(func() { p.applyRecord(r) })
			if isLastRecord(r) {
				return true
			}
		case <-deaf:
			deaf = nil
			switch {
			case len(s.records) > 0: // this goroutine was late, not the supervisor
			case toEnd:
				p.killSupervisor(s)
			default: // what it watches over may go on
				p.onGang(func() { p.deaf = true })
			}
		case <-pulse.C:
			if silent == nil && s.sendCommand(attempt.Command{Op: attempt.OpPing, Ref: ref}, cfg.Deaf) == nil {
				silent = time.After(cfg.Deaf)
			}
			pulse.Reset(cfg.Pulse)
		case <-silent:
			if len(s.records) > 0 {
				continue
			}
			p.onGang(func() { p.deaf = true })
			if toEnd { // what it said after the command was on its way before
				p.killSupervisor(s)
			}
		case <-ctx.Done():
			return false
		}
	}
}

// isLastRecord reports whether a record is a supervisor's last word about an attempt.
func isLastRecord(r attempt.Record) bool {
	return !r.Unsaved && (r.Kind == attempt.KindGone || r.Kind == attempt.KindState && r.State.Gone)
}

// requeueCommand keeps a command that could not be written for the next connection.
func (p *nodeAttempt) requeueCommand(c attempt.Command) {
	select {
	case p.commands <- c:
	default:
	}
}

// killSupervisor ends a supervisor that no longer answers; bury does the rest.
func (p *nodeAttempt) killSupervisor(s *supervisorSlot) {
	if s.isAlive(p.gang.e.boot) {
		p.gang.e.cfg.Log.Warn("a supervisor does not answer and is killed", "attempt", p.gang.launch.Ref, "node", p.node.Name, "pid", s.Identity.PID)
		_ = unix.Kill(s.Identity.PID, unix.SIGKILL)
	}
}

func sortTasks(ts []engine.TaskReport) {
	slices.SortStableFunc(ts, func(a, b engine.TaskReport) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Rank, b.Rank))
	})
}
