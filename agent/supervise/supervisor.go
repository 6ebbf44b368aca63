package supervise

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/devicelock"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// supervisor is what concerns one attempt on one node. Only the goroutine of its
// slot touches it.
type supervisor struct {
	*supervisorSlot
	launch *attempt.Launch
	index  int // of the node; 0 is the head, which runs the batch script
	node   fleet.Node
	log    *slog.Logger

	state   attempt.State
	program *program // head only
	steps   *steps
	peers   []string // control sockets of all nodes
	user    *jobUser // who the job's processes run as
	devices *devicelock.Set

	batch     <-chan barrier.Exit // nil: not running
	due       deadlines
	killing   bool         // SIGKILL was sent
	signalled map[int]bool // processes that were sent the signal of an end
	words     string       // what was to be said before the journal could not be written
	kills     int          // SIGKILLs sent to all
	stepKills int          // tasks of steps that the kernel ended at the memory limit
	killed    time.Time    // when SIGKILL was sent first
	hooks     hooks
	began     time.Time      // when its barrier was opened
	heldAt    time.Time      // when it was suspended
	heldFor   time.Duration  // it was suspended before that
	done      seenCheckpoint // of the checkpoint directory
	meter     usageMeter
	serving   *serving  // nil: it does not serve, or not here
	draining  *endOrder // what follows the wait for requests; nil: nothing waits

	containers *containers
}

// deadlines are moments at which the loop acts; zero is never.
type deadlines struct {
	orphan time.Time // no server and no barrier yet: give up
	tether time.Time // no server any more, and the work is to end with it
	warn   time.Time // --signal
	limit  time.Time // the job's time limit
	kill   time.Time // the end of the grace, or the next try to kill
	save   time.Time // the next try to write the journal
	hook   time.Time // a prolog or epilog has taken too long
	look   time.Time // at the checkpoint directory
	steps  time.Time // the Node of steps has not ended although nothing lives
	sample time.Time // of the memory
	drain  time.Time // the signal of an end that waited for requests
}

func (d *deadlines) allDeadlines() []*time.Time {
	return []*time.Time{&d.orphan, &d.tether, &d.warn, &d.limit, &d.kill, &d.save, &d.hook, &d.look, &d.steps, &d.sample, &d.drain}
}

// next returns the earliest, zero if there is none.
func (d *deadlines) next() time.Time {
	var first time.Time
	for _, t := range d.allDeadlines() {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = *t
		}
	}
	return first
}

// takeIfDue reports whether a moment has come, and forgets it then.
func takeIfDue(t *time.Time, now time.Time) bool {
	if t.IsZero() || now.Before(*t) {
		return false
	}
	*t = time.Time{}
	return true
}

func newSupervisor(h *supervisorSlot, l *attempt.Launch, index int) *supervisor {
	s := &supervisor{
		supervisorSlot: h, launch: l, index: index, node: l.Nodes[index],
		log: h.log.With("attempt", l.Ref.String(), "node", l.Nodes[index].Name),
	}
	s.containers = newContainers(s)
	return s
}

func (s *supervisor) isHead() bool { return s.index == 0 }

// runLoop runs the supervisor until its node is gone and that is on record.
func (s *supervisor) runLoop() {
	if err := s.recordBegin(); err != nil {
		s.log.Error("the attempt cannot be taken", "err", err)
		s.reportDeclined(err)
		return
	}
	defer func() { s.devices.Release(); s.serving.close() }()
	if err := s.prepareAttempt(); err != nil {
		s.reportUnready(err)
	} else if s.hooks.exited == nil {
		s.makeReady()
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !s.isOver() {
		var fire <-chan time.Time
		if next := s.nextMoment(); !next.IsZero() {
			timer.Reset(time.Until(next))
			fire = timer.C
		}
		select {
		case do := <-s.events:
			do()
		case e := <-s.batch:
			s.batch = nil
			s.batchEnded(e)
		case e := <-s.hooks.exited:
			s.hookEnded(e)
		case <-s.spawner.reaped:
		case <-s.stepNews():
			s.takeTasks()
		case sig := <-s.signals:
			s.handleSignal(sig)
		case <-fire:
			s.handleDeadlines(time.Now())
		}
		s.checkGone()
	}
	s.closeSteps()
	s.program.closeStreams()
}

// nextMoment is when the loop has to act; zero: never. What is suspended has no
// time limit.
func (s *supervisor) nextMoment() time.Time {
	due := s.due
	if s.state.Held {
		due.limit, due.warn = time.Time{}, time.Time{}
	}
	return due.next()
}

// recordBegin puts on record that the attempt sits here now.
func (s *supervisor) recordBegin() error {
	if err := s.journal.Begin(attempt.Record{Ref: s.launch.Ref, Time: time.Now()}); err != nil {
		return err
	}
	return s.journal.Flush(false)
}

// isOver reports whether there is nothing left to do or to tell.
func (s *supervisor) isOver() bool { return s.state.Gone && !s.state.Unsaved }

// recordFact records what happened: state, journal, connections, in this order.
func (s *supervisor) recordFact(r attempt.Record) {
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	was := s.state.Unsaved
	err := s.journal.Add(r)
	if err == nil {
		// Who listens has a durable journal of its own. Without anybody this is the
		// only word, and may have to outlive the machine's run.
		alone := len(s.control.conns) == 0
		err = s.journal.Flush(alone && (r.Kind == attempt.KindExit || r.Kind == attempt.KindGone))
	}
	s.planNextSave(err)
	r.Unsaved = err != nil
	if r.Unsaved && was {
		s.words = cmp.Or(r.Text, s.words)
	}
	if r.Unsaved && !was {
		s.log.Error("journal", "err", err)
		s.words = cmp.Or(r.Text, s.state.Text)
		r.Text = "its supervisor cannot write its journal, and keeps the facts in memory: " + err.Error() + "; make room in " + s.launch.Root
	}
	s.state.Apply(r)
	r.Ref = s.launch.Ref
	s.control.queueRecord(r)
}

// wholeState is the state as one record.
func (s *supervisor) wholeState() attempt.Record {
	return attempt.Record{Kind: attempt.KindState, Ref: s.launch.Ref, Time: time.Now(), State: s.state.Clone(), Unsaved: s.state.Unsaved}
}

// saveJournal tries again to write the journal. One of which the disk has lost what stood in it is written
// anew: else the node would be held for ever.
func (s *supervisor) saveJournal() error {
	err := s.journal.Flush(true)
	if err == nil || !s.journal.Bad() {
		return err
	}
	whole := s.state.Clone()
	whole.Unsaved, whole.Text = false, s.words
	if anew := s.journal.Anew(s.launch.Ref, whole); anew != nil {
		return errors.Join(err, anew)
	}
	s.log.Warn("the journal was written anew", "err", err)
	return nil
}

// planNextSave plans the next try after a failed write.
func (s *supervisor) planNextSave(err error) {
	s.due.save = time.Time{}
	if err != nil {
		s.due.save = time.Now().Add(time.Second)
	}
}

// handleDeadlines acts on the moments that have come.
func (s *supervisor) handleDeadlines(now time.Time) {
	if takeIfDue(&s.due.orphan, now) {
		s.abortLaunch(engine.Unready, "no server opened the start barrier in "+s.launch.Orphan.String())
	}
	if takeIfDue(&s.due.tether, now) {
		s.endAttempt(endOrder{signal: unix.SIGTERM, grace: s.launch.Grace, cause: engine.Stopped, text: "the cox that it belonged to has ended"})
	}
	if !s.state.Held && takeIfDue(&s.due.warn, now) {
		s.warnBeforeLimit()
	}
	if !s.state.Held && takeIfDue(&s.due.limit, now) {
		s.endAttempt(endOrder{signal: unix.SIGTERM, grace: s.launch.Grace, cause: engine.TimedOut, text: attempt.LimitText(s.launch.Job.Spec.TimeLimit)})
	}
	if takeIfDue(&s.due.drain, now) {
		s.endDrain()
	}
	if takeIfDue(&s.due.kill, now) {
		s.killAll()
	}
	if takeIfDue(&s.due.hook, now) {
		s.hookLate()
	}
	if takeIfDue(&s.due.steps, now) {
		s.abandonSteps()
	}
	if takeIfDue(&s.due.sample, now) {
		s.sampleMemory(now)
	}
	if takeIfDue(&s.due.look, now) {
		s.reportCheckpoint()
		s.due.look = now.Add(checkpointPoll)
	}
	if takeIfDue(&s.due.save, now) {
		err := s.saveJournal()
		s.planNextSave(err)
		if err == nil {
			s.state.Unsaved, s.state.Text = false, s.words
			s.control.queueRecord(s.wholeState())
		}
	}
}

// openBarrier opens the barrier: the limits of time begin, and the head's script starts.
func (s *supervisor) openBarrier(c attempt.Command) {
	if s.state.Phase != engine.Ready || s.state.Refused || len(c.Alloc) == 0 {
		return
	}
	s.due.orphan = time.Time{}
	s.peers = c.Peers
	s.began = time.Now()
	s.planLimit(true)
	s.startSampling()
	s.recordFact(attempt.Record{Kind: attempt.KindRun, Time: c.Time})
	if err := s.openSteps(c.Alloc); err != nil {
		s.endAttempt(endOrder{cause: attempt.CauseOf(err), text: err.Error()})
		return
	}
	if s.isHead() {
		s.startBatch()
	}
}

// planLimit sets the moments of the time limit and of the signal before it. A signal that was
// sent is sent again only where its moment is still to come.
func (s *supervisor) planLimit(warn bool) {
	spec := s.launch.Job.Spec
	s.due.limit, s.due.warn = time.Time{}, time.Time{}
	if spec.TimeLimit <= 0 {
		return
	}
	s.due.limit = s.began.Add(s.heldFor + spec.TimeLimit)
	if spec.Signal != nil {
		if at := s.due.limit.Add(-spec.Signal.Before); warn || at.After(time.Now()) {
			s.due.warn = at
		}
	}
	// The head's clock counts: it tells the others. One of them that came first would have
	// the script see its tasks die, and end by itself.
	if !s.isHead() {
		s.due.limit = s.due.limit.Add(cmp.Or(s.launch.Slack, time.Minute))
	}
}

// changeLimit changes the time limit of an attempt that runs or has yet to.
func (s *supervisor) changeLimit(limit time.Duration) {
	if s.state.Phase > engine.Running {
		return
	}
	s.launch.Job.Spec.TimeLimit = limit
	if s.state.Phase == engine.Running {
		s.planLimit(!s.due.warn.IsZero())
	}
	s.recordFact(attempt.Record{Kind: attempt.KindLimit, Limit: &limit})
}

func (s *supervisor) startBatch() {
	if s.launch.Checkpoint != "" {
		s.due.look = time.Now().Add(checkpointPoll)
	}
	pid, exited, err := s.program.startProgram(s)
	if err != nil {
		code, cause := job.ExitCode{Status: 127}, attempt.CauseOf(err)
		if cause != engine.Refused {
			cause = engine.LaunchFailed
		}
		s.recordFact(attempt.Record{Kind: attempt.KindExit, Exit: &code, Cause: cause, Text: err.Error()})
		s.endAttempt(endOrder{cause: cause})
		s.endPeers(attempt.Command{Op: attempt.OpStop, Cause: cause})
		return
	}
	s.batch = exited
	s.program.copyOutputs(s.spawner.wakeLoop)
	s.meter.begin(engine.BatchStep, 0, pid)
	s.recordFact(attempt.Record{Kind: attempt.KindTask, Files: s.program.files, Task: &engine.TaskReport{
		Step: engine.BatchStep, Node: s.node.Name, Running: true, PID: pid, Started: time.Now(), Log: s.program.log,
	}})
	s.startProbes()
}

// batchEnded records the exit code and ends what the script left behind, here
// and on the other nodes.
func (s *supervisor) batchEnded(e barrier.Exit) {
	code := job.ExitCode{Status: e.Status, Signal: e.Signal}
	cause := s.state.Cause // why it was ended, if it was
	var text string
	s.takeTasks()
	s.meter.end(engine.BatchStep, 0, s.node.Name, e.Used, proc.PeakMemory())
	if n := s.spawner.oomSince(); cause == "" && n > 0 { // also where the script went on
		cause, text, code = engine.OutOfMemory, s.oomText(n), job.OutOfMemoryExit
		if own := n - s.stepKills; own > 0 {
			s.program.sayNotice(step.OOMNotice(s.launch.Job.ID, engine.BatchStep, own))
		}
	}
	cause = cmp.Or(cause, engine.Exited)
	if s.serving.isDead() && code.OK() {
		code.Status = 1 // it was ended because it was not well, whatever it made of that
	}
	task := engine.TaskReport{Step: engine.BatchStep, Node: s.node.Name, Ended: time.Now(), Exit: code, Cause: cause, Log: s.program.log}
	for _, t := range s.state.Tasks {
		if t.Step == engine.BatchStep {
			task.PID, task.Started = t.PID, t.Started
		}
	}
	s.recordFact(attempt.Record{Kind: attempt.KindTask, Task: &task})
	s.recordFact(attempt.Record{Kind: attempt.KindExit, Exit: &code, Cause: cause, Text: text})
	s.due.limit, s.due.warn = time.Time{}, time.Time{}
	s.stopServing("its program has ended")
	if len(s.launch.Nodes) == 1 && s.noProcessLeft() {
		return // nothing is left to be ended
	}
	s.endAttempt(endOrder{signal: unix.SIGTERM, grace: s.launch.Grace, cause: cause, once: true})
	s.endPeers(attempt.Command{Op: attempt.OpStop, Grace: s.launch.Grace, Cause: s.state.Cause})
}

// endPeers tells the other nodes' supervisors. The loop does not wait for them,
// the end of the process does. The engine, if there is one, tells them too.
func (s *supervisor) endPeers(c attempt.Command) {
	c.Ref = s.launch.Ref
	for i := range s.peers {
		if i == s.index {
			continue
		}
		s.telling.Go(func() {
			if err := Tell(s.peers[i], c); err != nil {
				s.log.Warn("tell a peer to end", "peer", s.launch.Nodes[i].Name, "err", err)
			}
		})
	}
}

// handleSignal is a signal to the supervisor itself. Its terminal is not its business.
func (s *supervisor) handleSignal(sig os.Signal) {
	if sig != unix.SIGTERM {
		return
	}
	if s.state.Phase < engine.Running {
		s.abortLaunch(engine.LaunchFailed, "its supervisor was told to end")
		return
	}
	s.endAttempt(endOrder{signal: unix.SIGTERM, grace: s.launch.Grace, cause: engine.NodeLost, text: "its supervisor was told to end (SIGTERM)"})
}

// reportUnready reports why the node cannot be made ready. Nothing has run.
func (s *supervisor) reportUnready(err error) {
	if s.steps == nil {
		s.steps = &steps{}
	}
	s.recordFact(attempt.Record{Kind: attempt.KindRefuse, Cause: attempt.CauseOf(err), Text: err.Error()})
	s.recordFact(attempt.Record{Kind: attempt.KindGone})
}

// reportDeclined reports that the attempt did not sit down: the journal does not have it, and
// needs not, since who finds nothing there begins anew.
func (s *supervisor) reportDeclined(err error) {
	text := "its supervisor cannot write its journal: " + err.Error() + "; make room in " + s.launch.Root
	for _, r := range []attempt.Record{{Kind: attempt.KindRefuse, Cause: attempt.CauseOf(err), Text: text}, {Kind: attempt.KindGone}} {
		r.Ref, r.Time = s.launch.Ref, time.Now()
		s.state.Apply(r)
		s.control.queueRecord(r)
	}
}

// abortLaunch ends before anything has run.
func (s *supervisor) abortLaunch(cause engine.Cause, text string) {
	if s.state.Phase >= engine.Running {
		s.endAttempt(endOrder{signal: unix.SIGTERM, grace: s.launch.Grace, cause: cause, text: text})
		return
	}
	s.recordFact(attempt.Record{Kind: attempt.KindEnding, Cause: cause, Text: text})
	if s.hooks.exited != nil || s.containers.isMaking() {
		s.due.kill = time.Now()
	}
}

// Tell sends one command to a supervisor and does not wait for what follows.
func Tell(name string, c attempt.Command) error {
	var conn net.Conn
	var err error
	for try := range 10 {
		if conn, err = socket.Dial(name, time.Second); !errors.Is(err, unix.EAGAIN) {
			break
		}
		time.Sleep(time.Duration(try+1) * 10 * time.Millisecond) // others are waiting to be heard
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write(appendLine(nil, c))
	return err
}
