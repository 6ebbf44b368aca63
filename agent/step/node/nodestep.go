package node

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/engine"
)

// nodeStep is one step on one node, from its preparation until nothing of it lives.
type nodeStep struct {
	node  *Node
	link  *wire.Link
	prep  wire.Preparation
	pmix  *pmixServer         // nil: not offered; set under mu
	tasks []*task             // grows under mu while they are started, then no more
	files map[string]*os.File // output files that tasks of this node share, by name
	place *Place              // where its tasks run; nil: on the node itself

	over chan struct{} // closed when nothing of it lives and all output was sent

	mu     sync.Mutex
	held   bool // every task is at its barrier
	opened bool // the barrier
	queued int  // input that no task has taken yet
	ending bool // a kill is on its way

	announced bool           // the end, to srun
	notices   sync.WaitGroup // are on their way to srun
}

// serveStep holds the tasks of a step, and then does what srun says until the
// connection ends. A broken connection ends the step.
func (n *Node) serveStep(l *wire.Link, f wire.Frame) {
	s := &nodeStep{node: n, link: l, files: make(map[string]*os.File), over: make(chan struct{})}
	err := f.Decode(&s.prep)
	if err == nil {
		err = s.prep.Check(n.cfg.Alloc)
	}
	if err == nil {
		err = n.enterStep(s)
	}
	if err != nil {
		_ = l.Send(wire.Frame{Kind: wire.MsgRefused, Body: []byte(err.Error())})
		return
	}
	left := make(chan struct{})
	n.serving.Go(func() { // also while the tasks are started: srun may go before they are held
		defer close(left)
		s.followSrun()
		s.killTasks(false)
	})
	pids, err := s.holdTasks()
	if err == nil && s.isEnding() {
		err = errEnding
	}
	n.serving.Go(func() { s.awaitTasks(err == nil) })
	if err != nil {
		// srun hears why before the end of tasks that may take long to end.
		_ = l.Send(wire.Frame{Kind: wire.MsgRefused, Body: []byte(err.Error())})
		s.killTasks(true)
		<-s.over
		return
	}
	if l.SendJSON(wire.MsgHeld, pids) != nil {
		s.killTasks(false)
	} else {
		<-left
	}
	<-s.over
}

// errEnding refuses a step because the node is being closed.
var errEnding = errors.New("the job is ending")

// isEnding reports whether a kill is on its way.
func (s *nodeStep) isEnding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}

// enterStep adds the step to those that live here.
func (n *Node) enterStep(s *nodeStep) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := s.prep.Info.Step
	switch {
	case n.closed:
		return errEnding
	case n.steps[id] != nil:
		return fmt.Errorf("step %d is already here", id)
	}
	n.steps[id] = s
	return nil
}

// holdTasks starts every task of this node and waits until all are at their barrier.
// After an error the tasks that were started are still there.
func (s *nodeStep) holdTasks() (pids map[int]int, err error) {
	info := &s.prep.Info
	if err := s.openPMIx(); err != nil {
		return nil, err
	}
	place, err := s.node.placeOf(s.prep.Container, info.Step, s.sayLine)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.place = place
	s.mu.Unlock()
	for index, part := range info.Parts {
		if part.Node != s.node.cfg.Node {
			continue
		}
		if part.Component >= len(s.prep.Programs) {
			return nil, fmt.Errorf("step %d has no program for component %d", info.Step, part.Component)
		}
		for local := range part.Ranks {
			if s.isEnding() {
				return nil, errEnding
			}
			t, err := s.startTask(index, local)
			if t != nil {
				s.addTask(t)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	pids = make(map[int]int)
	for _, t := range s.tasks {
		if err := t.held.Ready(); err != nil {
			return nil, fmt.Errorf("task %d: %w", t.state.Rank, barrier.ExplainLaunch(s.node.cfg.Spawner, err))
		}
		pids[t.state.Rank] = t.held.PID
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = true
	return pids, nil
}

// sayLine has srun print a line.
func (s *nodeStep) sayLine(line string) {
	_ = s.link.Send(wire.Frame{Kind: wire.MsgNotice, Body: []byte("srun: " + line + "\n")})
}

// addTask adds a task that has a process. A kill that is on its way reaches it too.
func (s *nodeStep) addTask(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, t)
	if s.ending {
		t.held.Close()
	}
}

// followSrun does what srun says until the connection ends.
func (s *nodeStep) followSrun() {
	for {
		f, err := s.link.Receive()
		if err != nil {
			return
		}
		switch f.Kind {
		case wire.MsgGo:
			s.openBarrier()
		case wire.MsgStdin:
			if !s.takeInput(f) {
				return
			}
		case wire.MsgResize:
			s.resizeTerminal(f)
		case wire.MsgSignal:
			s.signalTasks(syscall.Signal(f.Number))
		case wire.MsgKill:
			s.announceEnd(engine.Why(f.Body))
			s.killTasks(f.Number != 0)
		case wire.MsgPMI:
			s.answerPMI(f)
		case wire.MsgPMIx:
			s.takePMIx(f)
		}
	}
}

// openBarrier opens the barrier of every task, unless the step is already ending.
func (s *nodeStep) openBarrier() {
	s.mu.Lock()
	if !s.held || s.opened || s.ending {
		s.mu.Unlock()
		return
	}
	s.opened = true
	for _, t := range s.tasks {
		t.openBarrier()
	}
	s.mu.Unlock()
	for _, t := range s.tasks {
		s.node.reportTask(t)
	}
}

// signalTasks sends a signal to the process group of every task that has begun. Tasks
// at their barrier are not signalled: they would end without a word.
func (s *nodeStep) signalTasks(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened {
		return
	}
	for _, t := range s.tasks {
		t.signalGroup(sig)
	}
}

// killTasks begins to end every task: at once, or by SIGTERM and, after the grace,
// SIGKILL. Tasks at their barrier end without running anything; one that hangs before it
// is killed after the grace too. It does not wait.
func (s *nodeStep) killTasks(now bool) {
	s.mu.Lock()
	first := !s.ending
	s.ending = true
	for _, t := range s.tasks {
		switch {
		case !s.opened:
			t.held.Close()
		case now:
			t.signalGroup(syscall.SIGKILL)
		case first:
			t.signalGroup(syscall.SIGCONT)
			t.signalGroup(syscall.SIGTERM)
		}
	}
	held := !s.opened
	s.mu.Unlock()
	if !first || now && !held {
		return
	}
	s.node.serving.Go(func() {
		late := time.NewTimer(s.node.cfg.Grace)
		defer late.Stop()
		select {
		case <-s.over:
		case <-late.C:
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, t := range s.tasks {
				t.signalGroup(syscall.SIGKILL)
			}
		}
	})
}

// announceEnd has srun say that the step is ended from outside, once: the first node of the
// step does. It does not wait for an srun that does not read.
func (s *nodeStep) announceEnd(why engine.Why) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := &s.prep.Info
	if s.announced || !s.opened || len(info.Parts) == 0 || info.Parts[0].Node != s.node.cfg.Node {
		return
	}
	s.announced = true
	a := s.node.cfg.Alloc
	line := step.EndNotice(a.Job, info.Step, a.Nodes[s.node.cfg.Node].Name, time.Now(), why)
	s.notices.Go(func() { _ = s.link.Send(wire.Frame{Kind: wire.MsgNotice, Body: []byte(line)}) })
}

// awaitTasks waits for the end of every task, ends what they left behind, and says that
// the step is over, if it was ever said to be held.
func (s *nodeStep) awaitTasks(held bool) {
	var all sync.WaitGroup
	for _, t := range s.tasks {
		all.Go(func() { s.awaitTask(t) })
	}
	all.Wait()
	if s.pmix != nil {
		s.pmix.close()
	}
	s.killLeftovers()
	if s.place != nil && s.place.Release != nil {
		s.place.Release()
	}
	for _, t := range s.tasks {
		t.awaitOutput(drainAtEnd)
		t.close()
	}
	for _, f := range s.files {
		_ = f.Close()
	}
	s.sayKills()
	s.notices.Wait()
	if held {
		_ = s.link.Send(wire.Frame{Kind: wire.MsgOver})
	}
	n := s.node
	n.mu.Lock()
	delete(n.steps, s.prep.Info.Step)
	n.mu.Unlock()
	close(s.over)
}

// sayKills has srun say how many tasks of this node the kernel ended at the memory limit.
func (s *nodeStep) sayKills() {
	kills := 0
	for _, t := range s.tasks {
		if t.state.OOM {
			kills++
		}
	}
	if kills > 0 {
		line := step.OOMNotice(s.node.cfg.Alloc.Job, s.prep.Info.Step, kills)
		s.notices.Go(func() { _ = s.link.Send(wire.Frame{Kind: wire.MsgNotice, Body: []byte(line)}) })
	}
}

// awaitTask waits for one task's end and reports it, after the output that it had
// written before.
func (s *nodeStep) awaitTask(t *task) {
	exit := <-t.held.Exited
	end := wire.Ending{OOM: exit.OOM, Text: t.setEnded(exit)}
	end.Exit = t.state.Exit
	t.awaitOutput(drainAtExit)
	s.node.reportTask(t)
	s.mu.Lock()
	opened := s.opened
	s.mu.Unlock()
	if opened {
		_ = s.link.Send(wire.Frame{Kind: wire.MsgExit, Rank: t.state.Rank, Body: wire.MustJSON(end)})
	}
}

// outputFile opens an output file on this node, once for all tasks that write to it.
func (s *nodeStep) outputFile(name string, keep bool) (*os.File, error) {
	if f := s.files[name]; f != nil {
		return f, nil
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !keep {
		flags |= os.O_TRUNC
	}
	f, err := s.node.cfg.Open(name, flags, 0o666&^os.FileMode(max(s.prep.Umask, 0)))
	if err == nil {
		s.files[name] = f
	}
	return f, err
}

// killLeftovers ends the processes that the step's tasks left behind.
func (s *nodeStep) killLeftovers() {
	if e, ok := s.node.cfg.Spawner.(barrier.StepEnder); ok {
		if e.EndStep(s.prep.Info.Step) == nil {
			return
		}
	}
	sessions := make(map[int]bool)
	for _, t := range s.tasks {
		sessions[t.held.PID] = true
	}
	killSessions(sessions)
}
