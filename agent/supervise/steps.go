package supervise

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/agent/step/node"
	"github.com/coxswain-sched/coxswain/engine"
)

// steps is the node's side of srun: a step.Node behind the slot's listener, from the
// barrier on. There is none before somebody knocks.
type steps struct {
	alloc   *step.Alloc // nil: the barrier was not opened
	closing bool
	closed  bool // the Node has ended

	mu      sync.Mutex
	node    *node.Node       // nil: nobody came yet
	reports []node.TaskState // not yet seen by the loop
	news    chan struct{}    // there are reports; holds one at most
}

// openSteps begins to serve srun.
func (s *supervisor) openSteps(text []byte) error {
	a, err := step.Parse(text)
	if err != nil {
		return err
	}
	s.steps.alloc = a
	if s.isHead() || s.launch.Apart {
		if err := s.overwriteFile(&s.kept.alloc, a.File(), 0o600, text); err != nil {
			return fmt.Errorf("say what the job holds: %w", err)
		}
	}
	s.stepListener.admitCallers(s.letIn)
	return nil
}

// letIn serves a connection. It is called by the listener.
func (s *supervisor) letIn(c net.Conn) {
	st := s.steps
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.node == nil {
		node, err := s.newNode()
		if err != nil {
			s.log.Error("serve srun", "err", err)
			_ = c.Close()
			return
		}
		st.node = node
	}
	st.node.Answer(c)
}

func (s *supervisor) newNode() (*node.Node, error) {
	ranks := s.launch.Ranks()
	if err := os.MkdirAll(ranks, 0o711); err != nil {
		return nil, err
	}
	return node.New(node.Config{
		Alloc: s.steps.alloc, Node: s.index, Spawner: s.spawner,
		TaskInit: s.taskInit(),
		Report:   s.steps.queueTaskState, LogDir: ranks, Grace: s.launch.Grace,
		Env: s.launch.Env, Secrets: s.withSecrets, Own: s.launch.Own, Container: s.containers.placeStep, Owner: s.launch.User, Open: s.user.openAsUser,
	})
}

// taskInit is the command that calls barrier.Main.
func (s *supervisor) taskInit() []string {
	return []string{filepath.Join(binDir(s.launch.Root), "cox"), "task-init"}
}

// theNode is the Node if there is one.
func (st *steps) theNode() *node.Node {
	if st == nil {
		return nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.node
}

// queueTaskState keeps a change of a task for the loop. The Node must never wait for the
// loop, which may be waiting for it.
func (st *steps) queueTaskState(t node.TaskState) {
	st.mu.Lock()
	st.reports = append(st.reports, t)
	st.mu.Unlock()
	select {
	case st.news <- struct{}{}:
	default:
	}
}

func (st *steps) takeTaskStates() []node.TaskState {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.reports
	st.reports = nil
	return r
}

// stepNews is when there are reports of tasks.
func (s *supervisor) stepNews() <-chan struct{} {
	if s.steps == nil {
		return nil
	}
	return s.steps.news
}

// takeTasks makes facts of what the Node reported.
func (s *supervisor) takeTasks() {
	if s.steps == nil {
		return
	}
	for _, t := range s.steps.takeTaskStates() {
		if t.Started.IsZero() && t.Ended.IsZero() {
			continue // held
		}
		r := attempt.Record{Kind: attempt.KindTask, Task: &engine.TaskReport{
			Step: t.Step, Rank: t.Rank, Node: s.node.Name, Running: t.Running, PID: t.PID,
			Started: t.Started.Round(0), Ended: t.Ended.Round(0), Exit: t.Exit, Log: t.Log, Name: t.Name,
		}}
		if t.Running {
			s.meter.begin(t.Step, t.Rank, t.PID)
		} else {
			s.meter.end(t.Step, t.Rank, s.node.Name, t.Used, proc.PeakMemory())
		}
		switch {
		case t.OOM:
			s.stepKills++
			r.Task.Cause, r.Text = engine.OutOfMemory, s.oomText(s.spawner.oomSince())
		case !t.Running:
			r.Task.Cause = engine.Exited
		}
		s.recordFact(r)
	}
}

// closeSteps refuses new connections of srun. The tasks that run are ended like
// everything else.
func (s *supervisor) closeSteps() { s.stepListener.close() }

// stepsClosed reports whether the Node has ended, and lets it end: everything
// that it started has.
func (s *supervisor) stepsClosed() bool {
	st := s.steps
	s.closeSteps() // no Node comes any more
	node := st.theNode()
	if node == nil || st.closed {
		return true
	}
	if !st.closing {
		st.closing = true
		s.due.steps = time.Now().Add(s.launch.Grace + stepsLimit)
		go func() {
			err := node.Close()
			s.events <- func() {
				st.closed = true
				if err != nil {
					s.log.Warn("end the steps", "err", err)
				}
			}
		}()
	}
	return false
}

// stepsLimit is how long, beyond the grace, the Node of steps may take to end once nothing of
// the attempt lives.
const stepsLimit = 15 * time.Second

// abandonSteps gives up waiting for the Node of steps: nothing of the attempt lives, and its
// end must not depend on more. The process takes no other attempt.
func (s *supervisor) abandonSteps() {
	if s.steps == nil || s.steps.closed {
		return
	}
	s.steps.closed, s.unfit = true, true
	s.log.Error("the steps did not end after their processes; this supervisor takes no other attempt")
}

// signalSteps sends a signal to the tasks of every step.
func (s *supervisor) signalSteps(sig unix.Signal) {
	node := s.steps.theNode()
	if node == nil {
		return
	}
	if err := node.Signal(int(sig), -1); err != nil {
		s.log.Warn("signal the steps", "signal", sig, "err", err)
	}
}

// batchEnv is the environment of the batch script.
func (s *supervisor) batchEnv(base []string) ([]string, error) {
	if s.steps == nil || s.steps.alloc == nil {
		return nil, fmt.Errorf("what the job holds is not known")
	}
	return s.withSecrets(env.Batch(s.steps.alloc, base, s.index))
}
