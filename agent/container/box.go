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
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
)

// Box is a container that runs: the supervisor's end of its init. It is safe for concurrent use.
type Box struct {
	PID int      // of the init, here
	Env []string // what the image and the runtime set
	Dir string   // where the image starts programs

	conn  *net.UnixConn
	holds func(pid int) bool // whether a process is one of the job
	limit time.Duration      // for an answer of the init

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

// answerLimit is how long an init may take to answer.
const answerLimit = 30 * time.Second

// Accept makes a box of the connection of an init, which is a process of the user uid. Any process
// of that user can connect in its place: nothing that it says is believed of processes for which
// holds, which may be called at any time, is false.
func Accept(c *net.UnixConn, uid uint32, holds func(pid int) bool) (*Box, error) {
	cred, err := peerCredentials(c)
	switch {
	case err != nil:
		return nil, err
	case cred.Uid != uid:
		return nil, fmt.Errorf("the container's init is a process of user %d, not of the job's user %d", cred.Uid, uid)
	}
	var a answer
	_ = c.SetReadDeadline(time.Now().Add(answerLimit))
	files, err := receiveFrame(c, &a)
	_ = c.SetReadDeadline(time.Time{})
	closeFiles(files)
	switch {
	case err != nil:
		return nil, err
	case a.Hello == nil || a.Hello.Version != protocol:
		return nil, errors.New("the container's init is of another version of cox")
	}
	b := &Box{
		PID: int(cred.Pid), Env: toTexts(a.Hello.Env), Dir: string(a.Hello.Dir), conn: c, holds: holds, limit: answerLimit,
		pending: map[int]chan began{}, children: map[int]chan barrier.Exit{},
	}
	go b.receiveAnswers()
	return b, nil
}

// peerCredentials are the process at the other end, by its number here, and its user.
func peerCredentials(c *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	if cred.Pid <= 1 {
		return nil, errors.New("the init of the container cannot be seen from here")
	}
	return cred, nil
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
	late := time.NewTimer(b.limit)
	defer late.Stop()
	b.sending.Lock()
	_ = b.conn.SetWriteDeadline(time.Now().Add(b.limit))
	err := sendFrame(b.conn, &r, c.Files)
	b.sending.Unlock()
	if err != nil {
		b.mu.Lock()
		delete(b.pending, id)
		delete(b.children, id)
		b.mu.Unlock()
		return 0, nil, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	var got began
	select {
	case got = <-start:
	case <-late.C:
		b.abort()
		return 0, nil, fmt.Errorf("%w: its init has not answered in %s", ErrEnded, b.limit)
	}
	if got.err != nil {
		return 0, nil, got.err
	}
	return got.pid, exited, nil
}

// abort ends the connection to an init that does not do as it should: its processes count as
// killed. The init ends with the connection, or with the job.
func (b *Box) abort() { _ = b.conn.Close() }

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
	pid := unknownPID
	if len(files) == 1 {
		pid = b.ownProcess(files[0])
	}
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
	start <- began{pid: pid}
}

// ownProcess is the number here of the process of a pidfd, if it is one of the job. An init that
// names any other is not one of ours, and the connection to it ends.
func (b *Box) ownProcess(f *os.File) int {
	pid := processOf(f)
	if pid == unknownPID || b.holds(pid) {
		return pid
	}
	if p, err := proc.Read(pid); err == nil && !p.Dead() {
		b.abort()
	}
	return unknownPID
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

// HasDir reports whether a directory of the node is one of the container too, by the same name.
func (b *Box) HasDir(name string) bool {
	st, err := os.Stat(fmt.Sprintf("/proc/%d/root%s", b.PID, name))
	return err == nil && st.IsDir()
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
