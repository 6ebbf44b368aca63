package container

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step/socket"
)

// Command is the hidden command of the binary whose body Main is.
const InitCommand = "container-init"

// initProcess is the first process of a container.
type initProcess struct {
	conn *net.UnixConn
	work chan func() // for the thread that forks

	mu       sync.Mutex
	children map[int]int // number of the request, by process
}

// Main is the body of a container's init: `cox container-init SOCKET`. It starts processes for the
// supervisor that listens there, until the connection ends. The result is an exit code.
func Main(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "cox "+InitCommand+": it is started by cox itself, inside of a container")
		return 2
	}
	if err := runInit(args[0]); err != nil {
		fmt.Fprintf(os.Stderr, "cox %s: %v\n", InitCommand, err)
		return 70
	}
	return 0
}

func runInit(name string) error {
	// What ends a job is sent to its processes one by one, and perhaps to this one with them. They
	// are caught, not ignored: what is started here would ignore them too.
	unheard := make(chan os.Signal, 1)
	signal.Notify(unheard, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of descendants: %w", err)
	}
	conn, err := socket.Dial(name, 0)
	if err != nil {
		return err
	}
	c := conn.(*net.UnixConn)
	p := &initProcess{conn: c, work: make(chan func()), children: map[int]int{}}
	go p.forkThread()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() {
		for range ended {
			p.reapChildren()
		}
	}()
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	if err := p.say(&answer{Hello: &hello{Version: protocol, Env: toBytes(os.Environ()), Dir: []byte(dir)}}, nil); err != nil {
		return err
	}
	for {
		var r request
		files, err := receiveFrame(c, &r)
		if err != nil {
			return nil // the supervisor has closed it, or is gone
		}
		p.serveRequest(&r, files)
	}
}

// forkThread forks on one thread that lives as long as the process: children are killed when it
// dies.
func (p *initProcess) forkThread() {
	runtime.LockOSThread()
	for f := range p.work {
		f()
	}
}

// say sends an answer. The caller of forked processes holds the lock.
func (p *initProcess) say(a *answer, files []*os.File) error {
	a.Files = len(files)
	return sendFrame(p.conn, a, files)
}

// serveRequest starts a process and says so before it can be said to have ended.
func (p *initProcess) serveRequest(r *request, files []*os.File) {
	defer closeFiles(files)
	p.mu.Lock()
	defer p.mu.Unlock()
	a := &answer{ID: r.ID}
	if len(files) != r.Files {
		a.Errno, a.Text = int(unix.EBADF), fmt.Sprintf("%d files came, not %d", len(files), r.Files)
		_ = p.say(a, nil)
		return
	}
	pidfd := -1
	attr := &syscall.ProcAttr{
		Env: toTexts(r.Env), Dir: string(r.Dir),
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: r.Terminal, Pdeathsig: unix.SIGKILL, PidFD: &pidfd},
	}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	done := make(chan error, 1)
	pid := 0
	p.work <- func() {
		var err error
		pid, err = syscall.ForkExec(string(r.Path), toTexts(r.Args), attr)
		done <- err
	}
	if err := <-done; err != nil {
		a.Text = err.Error()
		var errno syscall.Errno
		if errors.As(err, &errno) {
			a.Errno = int(errno)
		}
		_ = p.say(a, nil)
		return
	}
	p.children[pid] = r.ID
	if pidfd < 0 {
		_ = p.say(a, nil)
		return
	}
	handle := os.NewFile(uintptr(pidfd), "process")
	_ = p.say(a, []*os.File{handle})
	_ = handle.Close()
}

// reapChildren waits for every process that has ended, also for those that were left behind.
func (p *initProcess) reapChildren() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var ws unix.WaitStatus
		var ru unix.Rusage
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, &ru)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if pid <= 0 {
			return
		}
		id, ok := p.children[pid]
		if !ok {
			continue
		}
		delete(p.children, pid)
		a := &answer{ID: id, Ended: true, Status: ws.ExitStatus(), Used: &ru}
		if ws.Signaled() {
			a.Status, a.Signal = 0, int(ws.Signal())
		}
		_ = p.say(a, nil) // nobody listens any more: the loop of requests ends too
	}
}
