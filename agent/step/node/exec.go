package node

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rlimit"
)

// serveExec runs a command beside the tasks, until it ends or who asked for it goes.
func (n *Node) serveExec(l *wire.Link, f wire.Frame) {
	refuse := func(err error) { _ = l.Send(wire.Frame{Kind: wire.MsgRefused, Body: []byte(err.Error())}) }
	var e wire.Execution
	if err := f.Decode(&e); err != nil {
		refuse(err)
		return
	}
	h, place, err := n.planExec(&e)
	if err != nil {
		refuse(err)
		return
	}
	if err := l.Send(wire.Frame{Kind: wire.MsgHeld}); err != nil {
		return
	}
	files, err := l.ReceiveFiles(len(h.Files))
	if err != nil {
		refuse(err)
		return
	}
	copy(h.Files[:], files)
	spawner := n.cfg.Spawner
	if place != nil {
		spawner = place.Spawner
	}
	held, err := h.Start(spawner, n.cfg.TaskInit)
	for _, f := range files {
		_ = f.Close()
	}
	if err == nil {
		err = held.Ready()
	}
	if err == nil {
		err = held.Go()
	}
	if err != nil {
		if held != nil {
			held.Close()
			<-held.Exited
		}
		refuse(barrier.ExplainLaunch(n.cfg.Spawner, err))
		return
	}
	why := make(chan error, 1)
	go func() { why <- held.Executed() }()
	end := wire.Ending{}
	x := n.awaitExec(l, held)
	end.Exit = job.ExitCode{Status: x.Status, Signal: x.Signal}
	if err := <-why; err != nil {
		end.Text = strings.TrimPrefix(err.Error(), "execve(): ")
	}
	n.sweepExec(h.Step, held.PID)
	_ = l.Send(wire.Frame{Kind: wire.MsgExit, Body: wire.MustJSON(end)})
}

// planExec describes the process of a command, and where it runs: where the task does, or the
// batch script.
func (n *Node) planExec(e *wire.Execution) (*barrier.Hold, *Place, error) {
	if len(e.Args) == 0 {
		return nil, nil, errors.New("no command is given")
	}
	a := n.cfg.Alloc
	h := &barrier.Hold{Args: e.Args, Umask: -1, Dir: a.WorkDir, Terminal: e.Terminal, Limits: barrier.Rlimits(rlimit.OfEnvironment(n.cfg.Env))}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, nil, errEnding
	}
	n.execs++
	h.Step = step.BatchStep - n.execs // a control group of its own
	var place *Place
	var err error
	if e.Rank == nil {
		h.Env = env.Batch(a, n.cfg.Env, n.cfg.Node)
		if n.cfg.Secrets != nil {
			h.Env, err = n.cfg.Secrets(h.Env)
		}
		if err == nil {
			place, err = n.placeOf(nil, h.Step, nil)
		}
	} else {
		place, err = n.taskPlace(e, h)
	}
	if err != nil {
		return nil, nil, err
	}
	if place != nil {
		h.Env, h.Dir = place.Env(h.Env), place.Dir
	}
	h.Env = env.Override(h.Env, e.Env)
	return h, place, nil
}

// taskPlace is the environment and the directory of a task that runs here, in the last step that
// has it, and where that runs. The caller holds n.mu.
func (n *Node) taskPlace(e *wire.Execution, h *barrier.Hold) (*Place, error) {
	var found *nodeStep
	part, local := 0, 0
	for id, s := range n.steps {
		if e.Step != nil && id != *e.Step || found != nil && id < found.prep.Info.Step {
			continue
		}
		for i, p := range s.prep.Info.Parts {
			for k, rank := range p.Ranks {
				if p.Node == n.cfg.Node && rank == *e.Rank {
					found, part, local = s, i, k
				}
			}
		}
	}
	if found == nil {
		return nil, fmt.Errorf("task %d does not run here", *e.Rank)
	}
	p := found.prep.Info.Parts[part]
	h.Env, h.Dir = env.Task(n.cfg.Alloc, &found.prep, part, local, n.cfg.Own), found.prep.Programs[p.Component].Dir
	found.mu.Lock()
	defer found.mu.Unlock()
	return found.place, nil
}

// awaitExec waits for the end of a command. When who asked for it goes, it is told
// as by a terminal that hangs up, and killed after the grace.
func (n *Node) awaitExec(l *wire.Link, held *barrier.Held) barrier.Exit {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, err := l.Receive(); err != nil {
				return
			}
		}
	}()
	select {
	case x := <-held.Exited:
		return x
	case <-gone:
	}
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGCONT} {
		_ = syscall.Kill(-held.PID, sig) // it may have ended meanwhile
	}
	late := time.NewTimer(n.cfg.Grace)
	defer late.Stop()
	select {
	case x := <-held.Exited:
		return x
	case <-late.C:
		_ = syscall.Kill(-held.PID, syscall.SIGKILL)
		return <-held.Exited
	}
}

// sweepExec ends what a command left behind.
func (n *Node) sweepExec(step, leader int) {
	if e, ok := n.cfg.Spawner.(barrier.StepEnder); ok && e.EndStep(step) == nil {
		return
	}
	killSessions(map[int]bool{leader: true})
}
