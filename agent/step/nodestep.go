package step

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// nodeStep is one step on one node, from its preparation until nothing of it lives.
type nodeStep struct {
	node  *Node
	link  *link
	prep  preparation
	tasks []*task             // grows under mu while they are started, then no more
	files map[string]*os.File // output files that tasks of this node share, by name

	over chan struct{} // closed when nothing of it lives and all output was sent

	mu     sync.Mutex
	opened bool // the barrier
	queued int  // input that no task has taken yet
	ending bool // a kill is on its way
}

// serveStep holds the tasks of a step, and then does what srun says until the
// connection ends. A broken connection ends the step.
func (n *Node) serveStep(l *link, f frame) {
	s := &nodeStep{node: n, link: l, files: make(map[string]*os.File), over: make(chan struct{})}
	err := f.decode(&s.prep)
	if err == nil {
		err = s.prep.check(n.cfg.Alloc)
	}
	if err == nil {
		err = n.enter(s)
	}
	if err != nil {
		_ = l.send(frame{kind: mRefused, body: []byte(err.Error())})
		return
	}
	pids, err := s.hold()
	if err == nil && s.isEnding() {
		err = errEnding
	}
	n.serving.Go(func() { s.watch(err == nil) })
	if err != nil {
		s.kill(true)
		<-s.over
		_ = l.send(frame{kind: mRefused, body: []byte(err.Error())})
		return
	}
	if l.sendJSON(mHeld, pids) == nil {
		s.obey()
	}
	s.kill(false)
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

// enter adds the step to those that live here.
func (n *Node) enter(s *nodeStep) error {
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

// hold starts every task of this node and waits until all are at their barrier.
// After an error the tasks that were started are still there.
func (s *nodeStep) hold() (pids map[int]int, err error) {
	info := &s.prep.Info
	for index, part := range info.Parts {
		if part.Node != s.node.cfg.Node {
			continue
		}
		if part.Component >= len(s.prep.Programs) {
			return nil, fmt.Errorf("step %d has no program for component %d", info.Step, part.Component)
		}
		for local := range part.Ranks {
			t, err := s.start(index, local)
			if t != nil {
				s.mu.Lock()
				s.tasks = append(s.tasks, t)
				s.mu.Unlock()
			}
			if err != nil {
				return nil, err
			}
		}
	}
	pids = make(map[int]int)
	for _, t := range s.tasks {
		if err := t.held.Ready(); err != nil {
			return nil, fmt.Errorf("task %d: %w", t.state.Rank, err)
		}
		pids[t.state.Rank] = t.held.PID
	}
	return pids, nil
}

// obey does what srun says until the connection ends.
func (s *nodeStep) obey() {
	for {
		f, err := s.link.receive()
		if err != nil {
			return
		}
		switch f.kind {
		case mGo:
			s.open()
		case mStdin:
			if !s.input(f) {
				return
			}
		case mSignal:
			s.signal(syscall.Signal(f.number))
		case mKill:
			s.kill(f.number != 0)
		case mPMI:
			s.answerPMI(f)
		}
	}
}

// open opens the barrier of every task, unless the step is already ending.
func (s *nodeStep) open() {
	s.mu.Lock()
	if s.opened || s.ending {
		s.mu.Unlock()
		return
	}
	s.opened = true
	for _, t := range s.tasks {
		t.open()
	}
	s.mu.Unlock()
	for _, t := range s.tasks {
		s.node.report(t)
	}
}

// signal sends a signal to the process group of every task that has begun. Tasks
// at their barrier are not signalled: they would end without a word.
func (s *nodeStep) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened {
		return
	}
	for _, t := range s.tasks {
		t.signal(sig)
	}
}

// kill begins to end every task: at once, or by SIGTERM and, after the grace,
// SIGKILL. Tasks at their barrier end without running anything. It does not wait.
func (s *nodeStep) kill(now bool) {
	s.mu.Lock()
	first := !s.ending
	s.ending = true
	for _, t := range s.tasks {
		switch {
		case !s.opened:
			t.held.Close()
		case now:
			t.signal(syscall.SIGKILL)
		case first:
			t.signal(syscall.SIGCONT)
			t.signal(syscall.SIGTERM)
		}
	}
	s.mu.Unlock()
	if !first || now {
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
				t.signal(syscall.SIGKILL)
			}
		}
	})
}

// watch waits for the end of every task, ends what they left behind, and says that
// the step is over, if it was ever said to be held.
func (s *nodeStep) watch(held bool) {
	var all sync.WaitGroup
	for _, t := range s.tasks {
		all.Go(func() { s.follow(t) })
	}
	all.Wait()
	s.sweep()
	for _, t := range s.tasks {
		t.drain(drainAtEnd)
		t.close()
	}
	for _, f := range s.files {
		_ = f.Close()
	}
	if held {
		_ = s.link.send(frame{kind: mOver})
	}
	n := s.node
	n.mu.Lock()
	delete(n.steps, s.prep.Info.Step)
	n.mu.Unlock()
	close(s.over)
}

// follow waits for one task's end and reports it, after the output that it had
// written before.
func (s *nodeStep) follow(t *task) {
	exit := <-t.held.Exited
	end := ending{OOM: exit.OOM, Text: t.ended(exit)}
	end.Exit = t.state.Exit
	t.drain(drainAtExit)
	s.node.report(t)
	s.mu.Lock()
	opened := s.opened
	s.mu.Unlock()
	if opened {
		_ = s.link.send(frame{kind: mExit, rank: t.state.Rank, body: mustJSON(end)})
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

// sweep ends the processes that the step's tasks left behind.
func (s *nodeStep) sweep() {
	if e, ok := s.node.cfg.Spawner.(StepEnder); ok {
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
