package supervise

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/cgroup"
	"github.com/coxswain-sched/coxswain/engine"
)

// supervisorSlot is what lives as long as the process: attempts sit on it one after the
// other. Only the goroutine in serve touches it.
type supervisorSlot struct {
	attempt.Slot
	log          *slog.Logger
	journal      *attempt.Journal
	spawner      *spawner
	control      *control
	stepListener *stepListener // of steps
	kept         slotFiles

	group  *cgroup.Group // nil: none
	limits cgroup.Limits // of the group
	called string        // the name that the node was given; empty: none yet

	next    *attempt.Command // OpTake that is to be carried out
	now     *supervisor      // of the attempt that sits, or sat last; nil: none has
	resting bool             // nobody sits
	unfit   bool             // for another attempt

	events  chan event
	signals chan os.Signal
	telling sync.WaitGroup // peers are being told to end
}

// event is something for the loop to do.
type event func()

// serveAttempts takes one attempt after the other until nobody has more: a supervisor
// without work does not outlive its engine.
func (h *supervisorSlot) serveAttempts() {
	h.resting = true
	for h.awaitAttempt() {
		c := h.next
		h.next, h.resting = nil, false
		h.now = newSupervisor(h, c.Launch, c.Index)
		h.now.runLoop()
		h.resting = true
		h.telling.Wait()
	}
	h.removeFiles()
}

// awaitAttempt waits for an attempt; false if nobody can bring one any more.
func (h *supervisorSlot) awaitAttempt() bool {
	for h.next == nil {
		if len(h.control.conns) == 0 || h.unfit {
			return false
		}
		select {
		case do := <-h.events:
			do()
		case sig := <-h.signals:
			if sig == unix.SIGTERM {
				return false
			}
		case <-h.spawner.reaped:
		}
	}
	return true
}

// takeAttempt is OpTake.
func (h *supervisorSlot) takeAttempt(c attempt.Command) {
	switch {
	case c.Launch == nil || c.Seat == nil || c.Index < 0 || c.Index >= len(c.Launch.Nodes):
		h.log.Error("an attempt cannot be taken: the engine is of another version")
	case h.now != nil && h.now.launch.Ref == c.Ref: // again, after a lost connection
		h.control.queueRecord(h.now.wholeState())
	case h.resting && h.next == nil:
		h.Slot = *c.Seat
		h.next = &c
	default:
		h.log.Error("an attempt cannot be taken: another one sits here", "attempt", c.Ref)
	}
}

// resetCgroup makes the control group ready for another attempt. One that limited
// memory is made anew: what earlier attempts left in memory would count. So is one
// that was killed.
func (h *supervisorSlot) resetCgroup(base cgroup.Base, l cgroup.Limits) error {
	if !base.Kills() {
		return nil
	}
	if h.group != nil && !h.group.Killed() && h.limits == l && l.Memory == 0 {
		return nil
	}
	if err := h.leaveCgroup(); err != nil {
		return err
	}
	g, err := base.Create(h.Group, l)
	if err != nil {
		return err
	}
	h.group, h.limits = g, l
	return h.spawner.enterCgroup(g, l)
}

// leaveCgroup leaves the control group and removes it.
func (h *supervisorSlot) leaveCgroup() error {
	if h.group == nil {
		return nil
	}
	g := h.group
	h.group = nil
	return errors.Join(h.spawner.leaveCgroup(), g.Remove())
}

// removeFiles removes what only this process used. What it cannot remove the engine
// removes.
func (h *supervisorSlot) removeFiles() {
	h.telling.Wait()
	h.control.close()
	h.stepListener.close()
	if err := h.leaveCgroup(); err != nil {
		h.log.Warn("remove the control group", "err", err)
	}
	for _, name := range []string{h.ControlSocket(), h.StepSocket()} {
		_ = os.Remove(name) // it may not have come so far
	}
}

// runCommand carries out a command for the attempt that sits.
func (h *supervisorSlot) runCommand(c attempt.Command) {
	if c.Op == attempt.OpTake {
		h.takeAttempt(c)
		return
	}
	s := h.now
	if s == nil || h.resting || s.launch.Ref != c.Ref {
		return // a word to an attempt that sat here before
	}
	before := h.control.sent
	defer func() {
		if h.control.sent == before { // who gives a command hears something
			h.control.queueRecord(s.wholeState())
		}
	}()
	switch c.Op {
	case attempt.OpGo:
		s.openBarrier(c)
	case attempt.OpAbort:
		s.abortLaunch(cmp.Or(c.Cause, engine.LaunchFailed), c.Text)
	case attempt.OpStop:
		sig := unix.Signal(c.Signal)
		if sig == 0 {
			sig = unix.SIGTERM
		}
		s.stopAttempt(endOrder{signal: sig, grace: c.Grace, cause: c.Cause, text: c.Text, why: c.Why}, c.Drain)
	case attempt.OpSignal:
		s.signalScope(unix.Signal(c.Signal), c.Scope)
	case attempt.OpSuspend, attempt.OpResume:
		s.toHold(c.Op == attempt.OpSuspend, c.Turn)
	case attempt.OpLimit:
		s.changeLimit(c.Limit)
	case attempt.OpPing:
	}
}
