package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// endOrder is how the node's part is to end: signal at once, SIGKILL after grace.
type endOrder struct {
	signal unix.Signal
	grace  time.Duration
	cause  engine.Cause
	text   string
	why    engine.Why // of the cause Stopped
	once   bool       // a process that an earlier end signalled is not signalled again
}

// endAttempt begins to end the node's part, or hastens an end that was begun: the first
// cause stays, the earlier kill counts.
func (s *supervisor) endAttempt(e endOrder) {
	if s.state.Gone || s.hooks.done {
		return // nothing is left, or only the epilog
	}
	s.due.limit, s.due.warn, s.due.drain = time.Time{}, time.Time{}, time.Time{}
	s.stopServing("it is being ended")
	if s.state.Held {
		s.suspendAll(false, 0)
	}
	if s.state.Cause == "" || s.state.Phase < engine.Ending {
		s.recordFact(attempt.Record{Kind: attempt.KindEnding, Cause: e.cause, Text: e.text})
		s.announceEnd(e)
	}
	s.closeSteps()
	if s.killing {
		return
	}
	if e.signal != 0 && e.grace > 0 {
		s.signalEnd(e)
	}
	if at := time.Now().Add(e.grace); s.due.kill.IsZero() || at.Before(s.due.kill) {
		s.due.kill = at
	}
}

// announceEnd says in the output of the job and of its steps that they are ended from outside,
// and why.
func (s *supervisor) announceEnd(e endOrder) {
	why := e.why
	switch e.cause {
	case engine.Stopped:
	case engine.TimedOut:
		why = engine.ForTimeLimit
	case engine.NodeLost:
		why = engine.ForNodeFailure
	default:
		return // it ended by itself, or had not begun
	}
	if node := s.steps.theNode(); node != nil {
		node.Announce(why)
	}
	if s.batch != nil && s.launch.Job.Spec.Program.Kind == job.Batch {
		s.program.sayNotice(step.EndNotice(s.launch.Job.ID, engine.BatchStep, s.node.Name, time.Now(), why))
	}
}

// signalEnd sends the signal of an end to every process of the attempt on this node. What the
// script leaves behind when it is ended was told with it: a second word would be taken for
// haste, as srun does, which then kills its tasks before they have printed their last line.
func (s *supervisor) signalEnd(e endOrder) {
	if s.signalled == nil {
		s.signalled = make(map[int]bool)
	}
	if node := s.steps.theNode(); node != nil && e.signal == unix.SIGTERM {
		node.Ending()
	}
	for _, pid := range s.livingProcesses() {
		if e.once && s.signalled[pid] || s.containers.isRuntime(pid) {
			continue
		}
		s.signalled[pid] = true
		s.sendSignal(pid, e.signal)
		s.sendSignal(pid, unix.SIGCONT) // a stopped process acts on the signal only when it goes on
	}
}

// killAll sends SIGKILL to everything, and again until nothing is left.
func (s *supervisor) killAll() {
	if s.killing = true; s.kills == 0 {
		s.killed = time.Now()
	}
	s.kills++
	if s.group != nil {
		if err := s.group.Kill(); err != nil {
			s.log.Warn("kill the control group", "err", err)
		}
	}
	s.signalAll(unix.SIGKILL)
	s.spawner.signalChildren(unix.SIGKILL)
	if time.Since(s.killed) >= cmp.Or(s.launch.Stuck, time.Minute) {
		if names := proc.Names(s.livingProcesses()); names != "" && names != s.state.Stuck {
			s.recordFact(attempt.Record{Kind: attempt.KindNote, Stuck: names})
		}
	}
	s.due.kill = time.Now().Add(min(time.Duration(s.kills)*20*time.Millisecond, 2*time.Second))
}

// livingProcesses lists every process of the attempt on this node: the descendants of the
// supervisor and what is in its control group.
func (s *supervisor) livingProcesses() []int {
	var pids []int
	seen := map[int]bool{}
	tree, err := proc.Descendants(unix.Getpid())
	if err != nil {
		s.log.Warn("list descendants", "err", err)
		pids = s.spawner.childPIDs() // where no descriptor is left, ending these gives some back
		for _, pid := range pids {
			seen[pid] = true
		}
	}
	for _, p := range tree {
		seen[p.PID] = true
		pids = append(pids, p.PID)
	}
	if s.group == nil {
		return pids
	}
	more, err := s.group.Procs()
	if err != nil {
		s.log.Warn("list the control group", "err", err)
	}
	for _, pid := range more {
		if !seen[pid] {
			pids = append(pids, pid)
		}
	}
	return pids
}

// signalAll sends a signal to every process of the attempt on this node.
func (s *supervisor) signalAll(sig unix.Signal) {
	for _, pid := range s.livingProcesses() {
		if sig != unix.SIGKILL && sig != unix.SIGSTOP && sig != unix.SIGCONT && s.containers.isRuntime(pid) {
			continue
		}
		s.sendSignal(pid, sig)
	}
}

// sendSignal sends a signal to a process, which may have ended meanwhile.
func (s *supervisor) sendSignal(pid int, sig unix.Signal) {
	if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		s.log.Warn("signal", "process", pid, "signal", sig, "err", err)
	}
}

// toHold obeys a command to suspend every process or let them go on, and answers it also
// where there is nothing to do. One that was overtaken by a later one is not obeyed.
func (s *supervisor) toHold(on bool, turn uint64) {
	switch {
	case s.state.Phase != engine.Running || turn < s.state.Turn || turn == s.state.Turn && s.state.Held == on:
		s.control.queueRecord(s.wholeState())
	case s.state.Held == on:
		s.recordFact(attempt.Record{Kind: attempt.KindHeld, Held: on, Turn: turn})
	default:
		s.suspendAll(on, turn)
	}
}

// suspendAll suspends every process, or lets them go on. The time limit waits meanwhile.
func (s *supervisor) suspendAll(on bool, turn uint64) {
	now := time.Now()
	s.pauseProbes(on)
	if on {
		s.heldAt = now
		if s.group == nil || s.group.Freeze(true) != nil {
			s.stopAll()
		}
	} else {
		if s.group == nil || s.group.Freeze(false) != nil {
			s.signalAll(unix.SIGCONT)
		}
		s.heldFor += now.Sub(s.heldAt)
		for _, t := range []*time.Time{&s.due.limit, &s.due.warn} {
			if !t.IsZero() {
				*t = t.Add(now.Sub(s.heldAt))
			}
		}
	}
	s.recordFact(attempt.Record{Kind: attempt.KindHeld, Held: on, Turn: turn})
}

// stopAll stops every process. What is born while others are stopped is met in the next round: all
// are stopped once a round has met none that is new.
func (s *supervisor) stopAll() {
	stopped := map[int]bool{}
	for range stopRounds {
		before := len(stopped)
		for _, pid := range s.livingProcesses() {
			s.sendSignal(pid, unix.SIGSTOP)
			stopped[pid] = true
		}
		if len(stopped) == before {
			return
		}
	}
}

// stopRounds bounds the rounds of stopAll: a program may start processes faster than they are stopped.
const stopRounds = 10

// signalScope sends a signal and nothing more.
func (s *supervisor) signalScope(sig unix.Signal, to engine.Scope) {
	switch to {
	case engine.ToAll:
		s.signalAll(sig)
	case engine.ToTasks:
		s.signalSteps(sig)
	case engine.ToBatch:
		for _, t := range s.state.Tasks {
			if t.Step == engine.BatchStep && t.Running {
				_ = unix.Kill(t.PID, sig) // it may have ended meanwhile
			}
		}
	}
}

// warnBeforeLimit is sbatch's --signal before the time limit.
func (s *supervisor) warnBeforeLimit() {
	w := s.launch.Job.Spec.Signal
	to := engine.ToTasks
	if w.BatchOnly {
		to = engine.ToBatch
	}
	s.signalScope(unix.Signal(w.Signal), to)
}

// checkGone says that the node is empty once that is proved: it is being ended,
// the supervisor has no child, and the control group holds no process.
func (s *supervisor) checkGone() {
	if s.state.Phase != engine.Ending || s.batch != nil {
		return
	}
	s.containers.closeIdle()
	if s.containers.isMaking() || !s.noProcessLeft() {
		return
	}
	if !s.stepsClosed() {
		return // asked again when it has, with all of the above
	}
	s.takeTasks()
	if !s.program.outputCopied() {
		return // asked again when it is
	}
	if !s.epilogEnded() {
		return // asked again when it has ended
	}
	if !s.containers.cleaned() {
		return // asked again when they are removed
	}
	s.reportCheckpoint()
	s.due = deadlines{}
	if n := s.spawner.oomSince(); n > 0 && !s.isHead() {
		s.recordFact(attempt.Record{Kind: attempt.KindNote, OOMKills: n, Text: s.oomText(n)})
	}
	s.recordFact(attempt.Record{Kind: attempt.KindGone, Used: s.finalUsage()})
}

// noProcessLeft proves that no process of the attempt is left on this node: the
// supervisor has no child, and the control group is empty.
func (s *supervisor) noProcessLeft() bool {
	if !s.spawner.hasNoChild() {
		return false
	}
	if s.group == nil {
		return true
	}
	empty, err := s.group.Empty()
	return err == nil && empty
}

func (s *supervisor) oomText(kills int) string {
	limit := resource.Amount(0)
	for _, c := range s.launch.Claims {
		if c.Node == s.node.Name {
			limit = limit.Add(c.Take.Memory)
		}
	}
	return fmt.Sprintf("the kernel ended %d of its processes on %s at the memory limit of %s; ask for more with --mem", kills, s.node.Name, resource.FormatBytes(limit))
}
