package container

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step/barrier"
)

// Box is a container that runs: the supervisor's end of its init. It is safe for concurrent use.
type Box struct {
	PID int      // of the init, here
	Env []string // what the image and the runtime set
	Dir string   // where the image starts programs

	conn *net.UnixConn

	sending sync.Mutex

	mu       sync.Mutex
	last     int
	pending  map[int]chan began
	children map[int]chan barrier.Exit
	closed   bool
}

// began is how the start of a process went.
type began struct {
	pid int
	err error
}

// ErrEnded is the error of a container that has ended.
var ErrEnded = errors.New("the container has ended")

// unknownPID is the number of a process that ended before it was known. The kernel gives it to
// none.
const unknownPID = 1 << 30

// Accept makes a box of the connection of an init.
func Accept(c *net.UnixConn) (*Box, error) {
	pid, err := peerPID(c)
	if err != nil {
		return nil, err
	}
	var a answer
	files, err := receiveFrame(c, &a)
	closeFiles(files)
	switch {
	case err != nil:
		return nil, err
	case a.Hello == nil || a.Hello.Version != protocol:
		return nil, errors.New("the container's init is of another version of cox")
	}
	b := &Box{
		PID: pid, Env: toTexts(a.Hello.Env), Dir: string(a.Hello.Dir), conn: c,
		pending: map[int]chan began{}, children: map[int]chan barrier.Exit{},
	}
	go b.receiveAnswers()
	return b, nil
}

// peerPID is the process at the other end, by its number here.
func peerPID(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return 0, e
	}
	if err != nil {
		return 0, err
	}
	if cred.Pid <= 1 {
		return 0, errors.New("the init of the container cannot be seen from here")
	}
	return int(cred.Pid), nil
}

// Spawn implements barrier.Spawner: the process is one of the container.
func (b *Box) Spawn(c *barrier.Cmd) (int, <-chan barrier.Exit, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return 0, nil, ErrEnded
	}
	b.last++
	id := b.last
	start, exited := make(chan began, 1), make(chan barrier.Exit, 1)
	b.pending[id], b.children[id] = start, exited
	b.mu.Unlock()

	r := request{ID: id, Path: []byte(c.Path), Args: toBytes(c.Args), Env: toBytes(c.Env), Dir: []byte(c.Dir), Terminal: c.Terminal, Files: len(c.Files)}
	b.sending.Lock()
	err := sendFrame(b.conn, &r, c.Files)
	b.sending.Unlock()
	if err != nil {
		b.mu.Lock()
		delete(b.pending, id)
		delete(b.children, id)
		b.mu.Unlock()
		return 0, nil, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	got := <-start
	if got.err != nil {
		return 0, nil, got.err
	}
	return got.pid, exited, nil
}

// receiveAnswers hears the init until the connection ends. Processes of which no end was heard
// were killed with the container.
func (b *Box) receiveAnswers() {
	for {
		var a answer
		files, err := receiveFrame(b.conn, &a)
		if err != nil {
			break
		}
		b.takeAnswer(&a, files)
		closeFiles(files)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for id, start := range b.pending {
		start <- began{err: ErrEnded}
		delete(b.pending, id)
		delete(b.children, id)
	}
	for id, exited := range b.children {
		exited <- barrier.Exit{Signal: int(unix.SIGKILL)}
		delete(b.children, id)
	}
	_ = b.conn.Close()
}

func (b *Box) takeAnswer(a *answer, files []*os.File) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.Ended {
		if exited := b.children[a.ID]; exited != nil {
			delete(b.children, a.ID)
			e := barrier.Exit{Status: a.Status, Signal: a.Signal}
			if a.Used != nil {
				e.Used = barrier.UseOf(a.Used)
			}
			exited <- e
		}
		return
	}
	start := b.pending[a.ID]
	if start == nil {
		return
	}
	delete(b.pending, a.ID)
	if a.Text != "" {
		delete(b.children, a.ID)
		var err error = errors.New(a.Text)
		if a.Errno != 0 {
			err = syscall.Errno(a.Errno)
		}
		start <- began{err: err}
		return
	}
	pid := unknownPID
	if len(files) == 1 {
		pid = processOf(files[0])
	}
	start <- began{pid: pid}
}

// processOf is the number here of the process of a pidfd.
func processOf(f *os.File) int {
	info, err := os.Open("/proc/self/fdinfo/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return unknownPID
	}
	defer info.Close()
	for lines := bufio.NewScanner(info); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "Pid:"); ok {
			if pid, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && pid > 1 {
				return pid
			}
		}
	}
	return unknownPID
}

// Close has the init end, and with it the container. It does not wait.
func (b *Box) Close() { _ = b.conn.CloseWrite() }

// Ended reports whether the container has ended.
func (b *Box) Ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Idle reports whether no process that was started in it lives.
func (b *Box) Idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.children) == 0
}
