package podagent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/proc"
)

// podInit is the work of a pod's first process: it waits for every process that ends and has
// no other parent, its one child, the supervisor, among them.
type podInit struct {
	mu    sync.Mutex // held from before the fork until pid is known
	pid   int        // of the supervisor; 0: none
	ended chan syscall.WaitStatus
	chld  chan os.Signal
}

func newInitial() (*podInit, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the reaper of descendants: %w", err)
	}
	in := &podInit{ended: make(chan syscall.WaitStatus, 1), chld: make(chan os.Signal, 1)}
	signal.Notify(in.chld, unix.SIGCHLD)
	go func() { // as long as the process
		for range in.chld {
			in.reapChildren()
		}
	}()
	return in, nil
}

func (in *podInit) reapChildren() {
	for {
		var ws syscall.WaitStatus
		in.mu.Lock()
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if pid > 0 && pid == in.pid {
			in.pid = 0
			in.ended <- ws
		}
		in.mu.Unlock()
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// startSupervisor starts the supervisor on a slot, and returns the connection to it. The kernel ends
// it when this process ends.
func (in *podInit) startSupervisor(at Place, seat attempt.Slot, name string) (net.Conn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	defer ours.Close()
	defer theirs.Close()
	words, err := os.OpenFile(seat.Words(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer words.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	binary := filepath.Join(at.linksDir(), "cox")
	attr := &syscall.ProcAttr{
		Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1"},
		Files: []uintptr{null.Fd(), os.Stdout.Fd(), words.Fd(), theirs.Fd()},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel's word comes when this thread ends: it never does
		in.mu.Lock()
		in.pid, err = syscall.ForkExec(binary, []string{"cox", "supervise", seat.Dir, seat.Sockets, name}, attr)
		in.mu.Unlock()
		failed <- err
		select {}
	}()
	if err := <-failed; err != nil {
		return nil, fmt.Errorf("start the supervisor %s: %w", binary, err)
	}
	return net.FileConn(ours)
}

// killSupervisor ends the supervisor, if it is there.
func (in *podInit) killSupervisor() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.pid != 0 {
		_ = syscall.Kill(in.pid, syscall.SIGKILL)
	}
}

// killChildren ends every process below this one, until none is left.
func (in *podInit) killChildren() {
	for {
		tree, err := proc.Descendants(os.Getpid())
		if err != nil || len(tree) == 0 {
			return
		}
		for _, p := range tree {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// lastWords is the end of what the supervisor said.
func lastWords(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 1 << 10
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-most), io.SeekStart)
	}
	b, _ := io.ReadAll(io.LimitReader(f, most))
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(b), "?")), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}
