package supervise

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/step"
)

// steps is the node's side of srun: a step.Node on a socket. The socket is there
// before the barrier, the Node serves it from then on.
type steps struct {
	listener net.Listener
	alloc    *step.Alloc // nil: the barrier was not opened
	node     *step.Node  // nil: as well
	closing  bool
	closed   bool // the Node has ended

	mu      sync.Mutex
	reports []step.TaskState // not yet seen by the loop
	news    chan struct{}    // there are reports; holds one at most
}

// listenSteps opens the socket: from now on srun on another node does not fail,
// but waits.
func (s *supervisor) listenSteps() error {
	name := s.launch.StepSocket(s.index)
	_ = os.Remove(name) // of a supervisor that died before the start
	l, err := net.Listen("unix", name)
	if err != nil {
		return err
	}
	s.steps = &steps{listener: l, news: make(chan struct{}, 1)}
	return nil
}

// openSteps begins to serve srun.
func (s *supervisor) openSteps() error {
	a, err := step.Load(s.dir.Alloc())
	if err != nil {
		return err
	}
	st := s.steps
	st.alloc = a
	st.node, err = step.NewNode(step.NodeConfig{
		Alloc: a, Node: s.index, Spawner: s.spawner,
		TaskInit: []string{filepath.Join(binDir(s.launch.Root), "cox"), "task-init"},
		Report:   st.report, LogDir: s.dir.Ranks(), Grace: s.launch.Grace,
	})
	if err != nil {
		return err
	}
	go func() {
		if err := st.node.Serve(st.listener); err != nil && !errors.Is(err, net.ErrClosed) {
			s.log.Warn("serve srun", "err", err)
		}
	}()
	return nil
}

// report keeps a change of a task for the loop. The Node must never wait for the
// loop, which may be waiting for it.
func (st *steps) report(t step.TaskState) {
	st.mu.Lock()
	st.reports = append(st.reports, t)
	st.mu.Unlock()
	select {
	case st.news <- struct{}{}:
	default:
	}
}

func (st *steps) take() []step.TaskState {
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
	for _, t := range s.steps.take() {
		if t.Started.IsZero() && t.Ended.IsZero() {
			continue // held
		}
		r := attempt.Record{Kind: attempt.KindTask, Task: &engine.TaskReport{
			Step: t.Step, Rank: t.Rank, Node: s.node.Name, Running: t.Running, PID: t.PID,
			Started: t.Started.Round(0), Ended: t.Ended.Round(0), Exit: t.Exit, Log: t.Log,
		}}
		switch {
		case t.OOM:
			r.Task.Cause, r.Text = engine.OutOfMemory, s.oomText(s.spawner.oomKills())
		case !t.Running:
			r.Task.Cause = engine.Exited
		}
		s.fact(r)
	}
}

// closeSteps refuses new connections of srun. The tasks that run are ended like
// everything else.
func (s *supervisor) closeSteps() {
	if s.steps != nil {
		_ = s.steps.listener.Close()
	}
}

// stepsClosed reports whether the Node has ended, and lets it end: everything
// that it started has.
func (s *supervisor) stepsClosed() bool {
	st := s.steps
	if st == nil || st.node == nil || st.closed {
		return true
	}
	if !st.closing {
		st.closing = true
		go func() {
			err := st.node.Close()
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

// signalSteps sends a signal to the tasks of every step.
func (s *supervisor) signalSteps(sig unix.Signal) {
	if s.steps == nil || s.steps.node == nil {
		return
	}
	if err := s.steps.node.Signal(int(sig), -1); err != nil {
		s.log.Warn("signal the steps", "signal", sig, "err", err)
	}
}

// batchEnv is the environment of the batch script.
func (s *supervisor) batchEnv(base []string) ([]string, error) {
	if s.steps.alloc == nil {
		return nil, fmt.Errorf("what the job holds is not known")
	}
	return step.BatchEnv(s.steps.alloc, base, s.index), nil
}
