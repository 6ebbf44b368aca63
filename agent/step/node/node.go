package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/place"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/auth/peer"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// defaultGrace is Config.Grace where none is said.
const defaultGrace = 2 * time.Second

// closeLimit is how long, beyond the grace, Close waits for steps before it ends the
// connections of their sruns.
const closeLimit = 3 * time.Second

// retryAccept is how long to wait when there are no descriptors left.
const retryAccept = 50 * time.Millisecond

// Config says what a Node works with.
type Config struct {
	Alloc    *step.Alloc
	Node     int             // index into Alloc.Nodes; 0 is also the allocator of steps
	Spawner  barrier.Spawner // owns every process
	TaskInit []string        // command that calls barrier.Main: {"/path/cox", "task-init"}
	Report   func(TaskState) // called on every change of a task, one call at a time, not for long; may be nil
	LogDir   string          // rank logs are written here as <step>.<rank>.log; empty: none
	Grace    time.Duration   // between SIGTERM and SIGKILL when a step is ended; 0: 2 s

	// Container says where the tasks of a step run, which may ask for a container of its own: nil
	// is on the node itself. It may take long, and has what the user should know said meanwhile.
	// A nil function has no containers.
	Container func(ask *wire.Container, step int, say func(line string)) (*Place, error)

	// Env is the submitted environment, for commands beside the tasks (see Exec), to which Secrets adds
	// the job's secrets; nil: it has none.
	Env     []string
	Secrets func(env []string) ([]string, error)
	// Own are variables that say what this node has, where it is a container: tasks have
	// them as they are here, and not as they are where srun runs. nil: it is none.
	Own []string
	// Owner is the user that tasks run as, whom rank logs are given to; nil: this
	// process's. Open opens the files that a step names, as that user; nil: os.OpenFile.
	Owner *barrier.Identity
	Open  func(name string, flags int, mode os.FileMode) (*os.File, error)
}

// Place is where processes run: in a container.
type Place struct {
	Spawner barrier.Spawner
	Dir     string                                     // of its processes
	HasDir  func(dir string) bool                      // whether srun's working directory is one of the place too; nil: it is not
	Env     func([]string) []string                    // an environment as processes inside have it
	Args    func(args, env []string) ([]string, error) // the command of a task by its words and environment; nil: its words
	Release func()                                     // is called when the step is over; nil: nothing has to be done
}

// dirOf is the directory in which the tasks of a program start: the one that srun was told; that of
// srun, if it is inside too; else that of the place.
func (p *Place) dirOf(prog *wire.Program) string {
	if prog.Chdir || p.HasDir != nil && p.HasDir(prog.Dir) {
		return prog.Dir
	}
	return p.Dir
}

// placeOf is where the processes of a step run; nil: on the node itself.
func (n *Node) placeOf(ask *wire.Container, step int, say func(string)) (*Place, error) {
	if n.cfg.Container != nil {
		return n.cfg.Container(ask, step, say)
	}
	if ask != nil {
		return nil, errors.New("steps have no containers of their own in this pool; leave the options of containers out, or let the job name the image")
	}
	return nil, nil
}

// TaskState is what a Node knows of one task.
type TaskState struct {
	Step    int          `json:"step"`
	Name    string       `json:"name,omitempty"` // of the step
	Rank    int          `json:"rank"`
	PID     int          `json:"pid"`
	Running bool         `json:"running,omitempty"` // its barrier was opened and it has not ended
	Started time.Time    `json:"started,omitzero"`  // when its barrier was opened
	Ended   time.Time    `json:"ended,omitzero"`
	Exit    job.ExitCode `json:"exit"`
	OOM     bool         `json:"oom,omitempty"`
	Log     string       `json:"log,omitempty"`
	Used    rusage.Use   `json:"used,omitzero"` // once it has ended; see barrier.Exit
}

// Node is the node side of steps: it serves srun, holds, starts, signals and
// watches the tasks of steps on one node. It is safe for concurrent use.
type Node struct {
	cfg       Config
	allocator *place.Allocator // on the first node only

	reporting sync.Mutex // one Report call at a time, in the order of the changes

	mu       sync.Mutex // guards what follows
	closed   bool
	listener []net.Listener
	links    map[*wire.Link]bool
	steps    map[int]*nodeStep // those of which something may live
	tasks    map[taskKey]TaskState
	serving  sync.WaitGroup
	execs    int                // commands so far
	watched  map[int]*stepWatch // by step, of those that were allocated here

	budget wire.Budget // what messages of srun may take
}

// taskKey names a task of the allocation.
type taskKey struct{ step, rank int }

// NewNode checks the configuration. Nothing runs before Serve.
func New(cfg Config) (*Node, error) {
	if cfg.Alloc == nil || cfg.Node < 0 || cfg.Node >= len(cfg.Alloc.Nodes) || cfg.Spawner == nil || len(cfg.TaskInit) == 0 {
		return nil, errors.New("step node: allocation, node, spawner and task-init command are needed")
	}
	if err := cfg.Alloc.Check(); err != nil {
		return nil, err
	}
	if cfg.Grace == 0 {
		cfg.Grace = defaultGrace
	}
	if cfg.Open == nil {
		cfg.Open = os.OpenFile
	}
	n := &Node{cfg: cfg, links: make(map[*wire.Link]bool), steps: make(map[int]*nodeStep), tasks: make(map[taskKey]TaskState), watched: make(map[int]*stepWatch)}
	if cfg.Node == 0 {
		n.allocator = place.NewAllocator(cfg.Alloc)
	}
	return n, nil
}

// Serve accepts srun's connections until the listener is closed or Close is
// called; it returns nil after Close.
func (n *Node) Serve(l net.Listener) error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return l.Close()
	}
	n.listener = append(n.listener, l)
	n.mu.Unlock()
	for {
		c, err := l.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			time.Sleep(retryAccept) // descriptors come back when tasks end
			continue
		}
		if err != nil {
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.closed {
				return nil
			}
			return fmt.Errorf("accept srun: %w", err)
		}
		n.Answer(c)
	}
}

// Answer serves a connection that was accepted elsewhere. It does not wait.
func (n *Node) Answer(c net.Conn) {
	if err := n.checkPeer(c); err != nil {
		_ = wire.NewLink(c).Send(wire.Frame{Kind: wire.MsgRefused, Body: []byte(err.Error())})
		_ = c.Close()
		return
	}
	k := wire.NewServerLink(c, &n.budget)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || len(n.links) >= wire.MaxLinks {
		k.Close()
		return
	}
	n.links[k] = true
	n.serving.Go(func() { n.serveLink(k) })
}

// checkPeer reports whether the process at the other end may use the allocation: it
// belongs to the job's owner, to this process's user, or to root.
func (n *Node) checkPeer(c net.Conn) error {
	cred, err := peer.Of(c)
	switch {
	case fault.KindOf(err) == fault.Unsupported:
		return errors.New("only processes of this machine are served")
	case err != nil:
		return fmt.Errorf("who asks: %w", err)
	}
	if cred.UID == 0 || cred.UID == n.cfg.Alloc.Owner.UID || int(cred.UID) == os.Geteuid() {
		return nil
	}
	return fmt.Errorf("user %d does not own job %s", cred.UID, n.cfg.Alloc.Job)
}

// serveLink answers one connection until it ends.
func (n *Node) serveLink(l *wire.Link) {
	defer n.dropLink(l)
	f, err := l.Receive()
	if err != nil || f.Kind != wire.MsgHello {
		return
	}
	var h wire.Hello
	if f.Decode(&h) != nil || h.Version != wire.Protocol {
		_ = l.Send(wire.Frame{Kind: wire.MsgRefused, Body: []byte("srun and the supervisor of the job are of different versions of cox")})
		return
	}
	if a := n.cfg.Alloc; h.Job != a.Job || h.Attempt != a.Attempt {
		_ = l.Send(wire.Frame{Kind: wire.MsgRefused, Body: fmt.Appendf(nil, "job %s has ended", h.Job)})
		return
	}
	if f, err = l.Receive(); err != nil {
		if errors.Is(err, wire.ErrCrowded) {
			_ = l.Send(wire.Frame{Kind: wire.MsgRefused, Body: []byte(err.Error())})
		}
		return
	}
	switch f.Kind {
	case wire.MsgCreate:
		n.serveCreate(l, f)
	case wire.MsgPrepare:
		n.serveStep(l, f)
	case wire.MsgExec:
		n.serveExec(l, f)
	case wire.MsgAttach:
		n.serveAttach(l, f.Number)
	case wire.MsgWaitGone:
		<-n.goneChannel(f.Number)
		_ = l.Send(wire.Frame{Kind: wire.MsgGone, Number: f.Number})
	}
}

// serveCreate lets the allocator make a step.
func (n *Node) serveCreate(l *wire.Link, f wire.Frame) {
	var r wire.Request
	err := f.Decode(&r)
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		_ = l.Send(wire.Frame{Kind: wire.MsgRefused, Body: []byte(err.Error())})
		return
	}
	if n.allocator == nil {
		_ = l.Send(wire.Frame{Kind: wire.MsgRefused, Body: []byte("this is not the first node of the job")})
		return
	}
	n.allocateStep(l, r)
}

// allocateStep makes a step for srun, and keeps its resources for it until srun says that
// it is over everywhere, or until srun is gone and so are the step's processes.
func (n *Node) allocateStep(l *wire.Link, r wire.Request) {
	refuse := func(err error) { _ = l.Send(wire.Frame{Kind: wire.MsgRefused, Body: []byte(err.Error())}) }
	info, wait, err := n.allocator.Create(r)
	if wait == nil && err != nil {
		refuse(err)
		return
	}
	done := make(chan bool, 1)
	watch := newStepWatch(l, &n.budget)
	go func() {
		done <- watch.relayFrames() // ends with the connection, which the caller closes
	}()
	if wait != nil {
		_ = l.Send(wire.Frame{Kind: wire.MsgBusy, Body: []byte(err.Error())})
		select {
		case info = <-wait.Made:
		case <-done:
			if info = n.allocator.Forget(wait); info != nil {
				n.allocator.Release(info)
			}
			return
		}
	}
	isOver := n.watchStep(info, watch) == nil && <-done
	n.unwatchStep(info, watch)
	if isOver {
		n.allocator.Release(info)
		return
	}
	n.goneEverywhere(info)
	n.allocator.Release(info)
}

// goneChannel returns a channel that is closed once nothing of the step lives here.
func (n *Node) goneChannel(step int) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.steps[step]; s != nil {
		return s.over
	}
	done := make(chan struct{})
	close(done)
	return done
}

// goneEverywhere waits until nothing of a step lives on any of its nodes, or until
// this node is closed. A node that does not answer has no supervisor any more: its
// processes are the engine's to end.
func (n *Node) goneEverywhere(i *step.Info) {
	for _, p := range i.Parts {
		if p.Node == n.cfg.Node {
			<-n.goneChannel(i.Step)
			continue
		}
		l, err := wire.Dial(n.cfg.Alloc, p.Node)
		if err != nil {
			continue
		}
		if n.keepLink(l) && l.Send(wire.Frame{Kind: wire.MsgWaitGone, Number: i.Step}) == nil {
			_, _ = l.Receive()
		}
		n.dropLink(l)
	}
}

// keepLink notes a connection, so that Close closes it; false if Close was called.
func (n *Node) keepLink(l *wire.Link) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.links[l] = true
	return true
}

// dropLink closes a connection and forgets it.
func (n *Node) dropLink(l *wire.Link) {
	n.mu.Lock()
	delete(n.links, l)
	n.mu.Unlock()
	l.Close()
	l.Refund()
}

// Tasks lists every task that the node has had, by step and rank.
func (n *Node) Tasks() []TaskState {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]TaskState, 0, len(n.tasks))
	for _, t := range n.tasks {
		all = append(all, t)
	}
	slices.SortFunc(all, func(x, y TaskState) int {
		if x.Step != y.Step {
			return x.Step - y.Step
		}
		return x.Rank - y.Rank
	})
	return all
}

// reportTask records a task's present state and passes it on.
func (n *Node) reportTask(t *task) {
	n.reporting.Lock()
	defer n.reporting.Unlock()
	t.mu.Lock()
	state := t.state
	t.mu.Unlock()
	n.mu.Lock()
	n.tasks[taskKey{state.Step, state.Rank}] = state
	n.mu.Unlock()
	if n.cfg.Report != nil {
		n.cfg.Report(state)
	}
}

// livingSteps lists the steps of which something may live; all if step is negative.
func (n *Node) livingSteps(step int) []*nodeStep {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []*nodeStep
	for id, s := range n.steps {
		if step < 0 || id == step {
			out = append(out, s)
		}
	}
	return out
}

// Signal sends a signal to the process group of every running task of a step, or
// of every step if step is negative.
func (n *Node) Signal(signal, step int) error {
	for _, s := range n.livingSteps(step) {
		s.signalTasks(syscall.Signal(signal))
	}
	return nil
}

// Ending says that the caller itself is telling every process to end, the tasks too:
// an srun that hears it and asks for the end of its step does not tell them a second time.
func (n *Node) Ending() {
	for _, s := range n.livingSteps(-1) {
		s.mu.Lock()
		s.ending = s.ending || s.opened // a task at its barrier has to be let go, by kill
		s.mu.Unlock()
	}
}

// Announce has the sruns of steps that run say that their steps are ended, and why.
func (n *Node) Announce(why engine.Why) {
	for _, s := range n.livingSteps(-1) {
		s.announceEnd(why)
	}
}

// Close ends the tasks that are left (SIGTERM, grace, SIGKILL), refuses new steps,
// closes the listener and returns when everything that Node started has ended.
func (n *Node) Close() error {
	n.mu.Lock()
	n.closed = true
	for _, l := range n.listener {
		_ = l.Close()
	}
	n.mu.Unlock()
	for _, s := range n.livingSteps(-1) {
		s.killTasks(false)
	}
	n.awaitSteps()
	n.mu.Lock()
	for l := range n.links {
		l.Close()
	}
	n.mu.Unlock()
	n.serving.Wait()
	return nil
}

// awaitSteps waits for the end of every step, but not for an srun that does not read: its
// connection would keep the output, and so the step, from ending.
func (n *Node) awaitSteps() {
	late := time.NewTimer(n.cfg.Grace + closeLimit)
	defer late.Stop()
	for _, s := range n.livingSteps(-1) {
		select {
		case <-s.over:
		case <-late.C:
			return
		}
	}
}
