package node

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/agent/step/pmix"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// pmixServer is the PMIx server of a step on this node: a socket from the start, and behind
// it the helper (pmix.HelperName) from the first program that connects.
type pmixServer struct {
	step   *nodeStep
	orders pmix.Orders
	socket *os.File // listens; programs are told of it
	port   int

	starting sync.Once
	gone     chan struct{} // closed when the helper has ended, or none will be started
	ready    chan struct{} // closed when the helper serves, or never will
	failure  string        // why it does not; set before ready is closed

	mu     sync.Mutex
	some   *sync.Cond
	closed bool          // no helper is wanted any more
	held   *barrier.Held // the helper; nil: none yet
	queue  []wire.Frame  // of srun, for the helper; each is paid for while it is here
	queued int           // what is paid
	full   bool          // a frame was refused: the step is ended
}

// pmixQueueMax bounds what may wait for a helper that does not read, in bytes.
const pmixQueueMax = 64 << 20

// pmixCost is what a queued frame takes beside its bytes.
const pmixCost = 128

// pmixFull is why a step ends whose helper is sent more than it reads.
const pmixFull = "the PMIx server of the step (libpmix) does not read what it is sent, and too much waits for it; start fewer tasks on the node"

// openPMIx offers PMIx to the tasks of the step. What srun says is needed is started at once.
func (s *nodeStep) openPMIx() error {
	if s.prep.PMIx == wire.PMIxNone || s.prep.PMIx == wire.PMIxOffered && s.prep.Info.Tasks == 1 {
		return nil // a task alone is a world of one: it needs no server, and libpmix may be missing
	}
	p := &pmixServer{step: s, ready: make(chan struct{}), gone: make(chan struct{})}
	p.some = sync.NewCond(&p.mu)
	a := s.node.cfg.Alloc
	p.orders.Layout = pmix.NewLayout(a, &s.prep.Info)
	p.orders.Self = p.orders.NodeOf(s.node.cfg.Node)
	if p.orders.Self < 0 {
		return nil
	}
	p.orders.Space, p.orders.Server = pmix.Names(a, &s.prep.Info)
	p.orders.Version = s.prep.PMIxVersion
	p.orders.InImage = s.node.cfg.Own != nil
	p.orders.TempDir = pmixDir(p.orders.Space, p.orders.Self)
	var err error
	listen := func() (err error) {
		p.socket, p.port, err = listenLocally()
		return err
	}
	if n, ok := s.node.cfg.Spawner.(barrier.NodeNetwork); ok { // programs know no other 127.0.0.1
		err = n.InNetwork(listen)
	} else {
		err = listen()
	}
	if err != nil {
		return fmt.Errorf("a socket for PMIx programs: %w", err)
	}
	s.mu.Lock()
	s.pmix = p
	s.mu.Unlock()
	s.node.serving.Go(p.awaitProgram)
	if s.prep.PMIx != wire.PMIxNeeded {
		return nil
	}
	p.start()
	<-p.ready
	if p.failure != "" {
		return errors.New(p.failure)
	}
	return nil
}

// takePMIx takes a frame of srun for the step's PMIx server here.
func (s *nodeStep) takePMIx(f wire.Frame) {
	s.mu.Lock()
	p := s.pmix
	s.mu.Unlock()
	if p != nil {
		p.take(f)
	}
}

// listenLocally opens a socket of this machine at a port of the kernel's choice. It is no
// net.Listener: this process never accepts from it, and only waits until there is somebody.
func listenLocally() (*os.File, int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	var at unix.Sockaddr
	if err == nil {
		at, err = unix.Getsockname(fd)
	}
	in4, ok := at.(*unix.SockaddrInet4)
	if err != nil || !ok {
		_ = unix.Close(fd)
		return nil, 0, errors.Join(err, os.NewSyscallError("listen", nil))
	}
	return os.NewFile(uintptr(fd), "programs"), in4.Port, nil
}

// awaitProgram starts the helper when a program connects.
func (p *pmixServer) awaitProgram() {
	raw, err := p.socket.SyscallConn()
	if err != nil {
		return
	}
	came := false
	err = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		came = err == nil && n > 0
		return came
	})
	if err == nil && came {
		p.start()
	}
}

// pmixDir names a directory for the files of the server and of its programs. Nobody can
// guess it, and it is in memory where the machine has such a place: ranks may share it.
func pmixDir(space string, self int) string {
	base := "/dev/shm"
	if unix.Access(base, unix.W_OK) != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, fmt.Sprintf(pmix.DirPrefix+"%s.%d.%s", space, self, rand.Text()[:10]))
}

// addTo adds to a task's environment what it finds the server by.
func (p *pmixServer) addTo(vars []string, rank int) []string {
	if host, err := os.Hostname(); err == nil && host != p.orders.Nodes[p.orders.Self].Name {
		for _, v := range pmix.SharedHost(&p.orders) {
			vars = appendMissing(vars, v)
		}
	}
	if p.sharesNetwork() && !slices.ContainsFunc(vars, func(v string) bool { return strings.HasPrefix(v, "OMPI_MCA_btl_tcp_if_exclude=") }) {
		vars = appendMissing(vars, pmix.LoopbackOnly)
	}
	vars = append(vars, pmix.Environment(&p.orders, p.port, rank)...)
	if p.step.prep.PMI {
		vars = appendMissing(vars, pmix.PreferPMI)
	}
	return vars
}

// sharesNetwork reports whether all nodes of the step have addresses of this machine alone.
func (p *pmixServer) sharesNetwork() bool {
	a := p.step.node.cfg.Alloc
	return !slices.ContainsFunc(p.step.prep.Info.Parts, func(v step.StepPart) bool { return !strings.HasPrefix(a.Nodes[v.Node].Address, "127.") })
}

// appendMissing adds a variable unless the environment has it.
func appendMissing(vars []string, v string) []string {
	name, _, _ := strings.Cut(v, "=")
	if slices.ContainsFunc(vars, func(have string) bool { return strings.HasPrefix(have, name+"=") }) {
		return vars
	}
	return append(vars, v)
}

// start starts the helper, once, and does not wait for it.
func (p *pmixServer) start() {
	p.starting.Do(func() {
		p.step.node.serving.Go(func() {
			defer close(p.gone)
			if err := p.runHelper(); err != nil {
				p.fail(err.Error())
			}
		})
	})
}

// fail says why the helper does not serve: to who waits for it, or to srun, which ends the
// step.
func (p *pmixServer) fail(why string) {
	select {
	case <-p.ready:
	default:
		p.failure = why
		close(p.ready)
		if p.step.prep.PMIx == wire.PMIxNeeded {
			return // the step is refused before it begins
		}
	}
	p.abortStep(why)
}

// abortStep has srun end the step.
func (p *pmixServer) abortStep(why string) {
	m := pmix.Message{Op: pmix.OpAbort, Rank: -1, Status: 1, Text: why}
	_ = p.step.link.Send(wire.Frame{Kind: wire.MsgPMIx, Rank: -1, Body: m.Encode()})
}

// runHelper runs the helper to its end. An error is why it cannot serve, or no longer does.
func (p *pmixServer) runHelper() error {
	helper, err := p.findHelper()
	if err != nil {
		return err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("connect the PMIx server: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "pmix"), os.NewFile(uintptr(fds[1]), "pmix of the helper")
	conn, err := net.FileConn(ours)
	_ = ours.Close()
	defer theirs.Close()
	if err != nil {
		return fmt.Errorf("connect the PMIx server: %w", err)
	}
	link := wire.NewServerLink(conn, &p.step.node.budget)
	defer link.Close()
	errorsOut, errorsIn, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("connect the PMIx server: %w", err)
	}
	defer errorsOut.Close()
	held, err := p.spawnHelper(helper, theirs, errorsIn)
	_ = theirs.Close()
	_ = errorsIn.Close()
	if err != nil {
		return err
	}
	var saying sync.WaitGroup
	complaint := ""
	saying.Go(func() { complaint = p.passComplaints(errorsOut) })
	saying.Go(func() { p.sendQueue(link) })
	refused := p.listenToHelper(link)
	late := time.AfterFunc(pmixGrace, func() { _ = syscall.Kill(-held.PID, syscall.SIGKILL) })
	exit := <-held.Exited
	late.Stop()
	wanted := p.stopQueue()
	saying.Wait()
	p.removeLeftovers(helper)
	switch {
	case refused != "":
		return errors.New(refused)
	case !wanted:
		return nil
	case exit.Signal != 0:
		return fmt.Errorf("the PMIx server of the step (libpmix) was ended by signal %d (%s)", exit.Signal, syscall.Signal(exit.Signal))
	}
	if exit.Status == cannotStart && complaint != "" {
		return fmt.Errorf("the PMIx server of the step cannot be started: %s", complaint)
	}
	return fmt.Errorf("the PMIx server of the step (libpmix) ended with exit code %d", exit.Status)
}

// spawnHelper starts the helper as the tasks of the step are started: as the job's user, in
// the control group of the step.
func (p *pmixServer) spawnHelper(helper string, control, stderr *os.File) (*barrier.Held, error) {
	s := p.step
	part := slices.IndexFunc(s.prep.Info.Parts, func(v step.StepPart) bool { return v.Node == s.node.cfg.Node && len(v.Ranks) > 0 })
	vars := pmix.ServerEnvironment(env.Task(s.node.cfg.Alloc, &s.prep, part, 0, s.node.cfg.Own))
	program := s.prep.Programs[s.prep.Info.Parts[part].Component]
	p.orders.Program, p.orders.Dir = program.Args[0], program.Dir
	h := &barrier.Hold{
		Args: []string{helper}, Env: vars, Umask: 0o077, Dir: "/",
		Files: [3]*os.File{control, p.socket, stderr}, Step: s.prep.Info.Step, Rank: -1, Local: -1,
	}
	held, err := h.Start(s.node.cfg.Spawner, s.node.cfg.TaskInit)
	if held == nil {
		return nil, err
	}
	p.mu.Lock()
	p.held = held
	closed := p.closed
	if !closed {
		orders := wire.Frame{Kind: wire.MsgPMIx, Body: wire.MustJSON(p.orders)}
		p.payFrame(orders)
		p.queue = slices.Insert(p.queue, 0, orders)
	}
	p.mu.Unlock()
	if err == nil && !closed {
		err = held.Ready()
	}
	if err == nil && !closed {
		err = held.Go()
	}
	if err == nil && !closed {
		err = held.Executed()
	}
	if err != nil || closed {
		held.Close()
		<-held.Exited
		if err == nil {
			err = errEnding
		}
		return nil, fmt.Errorf("start the PMIx server: %w", barrier.ExplainLaunch(s.node.cfg.Spawner, err))
	}
	return held, nil
}

// listenToHelper passes the helper's messages on to srun until its connection ends. The text
// is why it refuses to serve.
func (p *pmixServer) listenToHelper(link *wire.Link) (refused string) {
	for {
		f, err := link.Receive()
		if err != nil {
			return ""
		}
		switch f.Kind {
		case wire.MsgHeld:
			select {
			case <-p.ready:
			default:
				close(p.ready)
			}
		case wire.MsgRefused:
			return string(f.Body)
		case wire.MsgPMIx:
			f.Rank = 0
			_ = p.step.link.Send(f)
		}
	}
}

// cannotStart is the exit code of a program that the loader cannot start, for want of a library.
const cannotStart = 127

// passComplaints has srun print what the helper writes to standard error, and returns the last of it.
func (p *pmixServer) passComplaints(r *os.File) (last string) {
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		if text := bytes.TrimSpace(buf[:n]); len(text) > 0 {
			last = string(text)
			_ = p.step.link.Send(wire.Frame{Kind: wire.MsgTrouble, Body: slices.Clone(text)})
		}
		if err != nil {
			return last
		}
	}
}

// take takes a frame of srun for the helper, which it starts if need be: another node asks
// for what a rank here publishes. It does not wait.
func (p *pmixServer) take(f wire.Frame) {
	p.start()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	if p.payFrame(f) && p.queued <= pmixQueueMax {
		p.queue = append(p.queue, f)
		p.some.Signal()
		p.mu.Unlock()
		return
	}
	p.refundFrame(f)
	first := !p.full
	p.full = true
	p.mu.Unlock()
	if first {
		p.step.node.serving.Go(func() { p.abortStep(pmixFull) })
	}
}

// payFrame counts a frame that is queued; false: the node has no room for it. p.mu is held.
func (p *pmixServer) payFrame(f wire.Frame) bool {
	p.queued += len(f.Body) + pmixCost
	return p.step.node.budget.Spend(len(f.Body) + pmixCost)
}

// refundFrame takes that back. p.mu is held.
func (p *pmixServer) refundFrame(f wire.Frame) {
	p.queued -= len(f.Body) + pmixCost
	p.step.node.budget.Spend(-len(f.Body) - pmixCost)
}

// sendQueue sends what srun says to the helper, until no helper is wanted any more. Then it
// closes the connection, and the helper ends.
func (p *pmixServer) sendQueue(link *wire.Link) {
	defer link.Close()
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && !p.closed {
			p.some.Wait()
		}
		if p.closed {
			p.mu.Unlock()
			return
		}
		f := p.queue[0]
		p.queue = p.queue[1:]
		p.mu.Unlock()
		_ = link.Send(f) // an end is met by listenToHelper
		p.mu.Lock()
		p.refundFrame(f)
		p.mu.Unlock()
	}
}

// stopQueue says that no helper is wanted any more, and reports whether one was until now.
func (p *pmixServer) stopQueue() (wanted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted = !p.closed
	p.closed = true
	for _, f := range p.queue {
		p.refundFrame(f)
	}
	p.queue = nil
	p.some.Broadcast()
	return wanted
}

// close ends the helper and returns when it has ended: it sees the end of its connection, and
// removes its files. One that does not end in time is killed.
func (p *pmixServer) close() {
	p.stopQueue()
	_ = p.socket.Close()
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	if held != nil {
		held.Close()
		late := time.AfterFunc(pmixGrace, func() { _ = syscall.Kill(-held.PID, syscall.SIGKILL) })
		defer late.Stop()
	}
	p.starting.Do(func() { close(p.gone) })
	<-p.gone
}

// pmixGrace is how long a helper may take to end.
const pmixGrace = 2 * time.Second
