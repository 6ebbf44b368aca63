package container

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step/barrier"
)

// TestMain lets the test binary stand for cox inside of a container.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == InitCommand {
		os.Exit(Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// TestBox: processes of an init are known by their own numbers and ends, and go with it.
func TestBox(t *testing.T) {
	dir, err := os.MkdirTemp("", "box")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	child := exec.Command(os.Args[0], InitCommand, name)
	child.Env, child.Dir, child.Stderr = []string{"FLAVOUR=image", "ODD=\xff"}, dir, os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Accept(conn, uint32(os.Getuid()), func(int) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	if b.PID != child.Process.Pid || b.Dir != dir || strings.Join(b.Env, " ") != "FLAVOUR=image ODD=\xff" {
		t.Errorf("%d, %s, %q", b.PID, b.Dir, b.Env)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	sh := func(script string) *barrier.Cmd {
		return &barrier.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: []string{"A=\xfe"}, Dir: "/", Files: []*os.File{r, w, w}}
	}
	pid, exited, err := b.Spawn(sh(`printf "%s $A $PWD\n" $$; exit 3`))
	if err != nil {
		t.Fatal(err)
	}
	if e := <-exited; e.Status != 3 || e.Signal != 0 || e.Used.Memory == 0 {
		t.Errorf("%+v", e)
	}
	_, ended, err := b.Spawn(sh("kill -15 $$; sleep 600"))
	if err != nil {
		t.Fatal(err)
	}
	if e := <-ended; e.Signal != int(unix.SIGTERM) {
		t.Errorf("%+v", e)
	}
	if _, _, err := b.Spawn(&barrier.Cmd{Path: "/no/such", Args: []string{"x"}}); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a program that is not there: %v", err)
	}
	_, lasting, err := b.Spawn(sh("trap '' TERM; exec sleep 600"))
	if err != nil || b.Idle() {
		t.Error(err, "or it is idle")
	}
	b.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if e := <-lasting; e.Signal != int(unix.SIGKILL) {
		t.Errorf("%+v", e)
	}
	_ = w.Close()
	out, err := io.ReadAll(r)
	if fields := strings.Fields(string(out)); err != nil || len(fields) != 3 || fields[1] != "\xfe" || fields[2] != "/" {
		t.Errorf("%q, %v (process %d)", out, err, pid)
	} else if fields[0] != strconv.Itoa(pid) && pid != unknownPID {
		t.Errorf("process %d calls itself %s", pid, fields[0])
	}
	if _, _, err := b.Spawn(sh("true")); !errors.Is(err, ErrEnded) || !b.Ended() {
		t.Errorf("after the end: %v", err)
	}
}

// fakeInit is the end of a connection of which the other is accepted as an init's.
func fakeInit(t *testing.T, uid int, holds func(int) bool) (*net.UnixConn, *Box, error) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		c, err := net.FileConn(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		ends[i] = c.(*net.UnixConn)
	}
	if err := sendFrame(ends[0], &answer{Hello: &hello{Version: protocol}}, nil); err != nil {
		t.Fatal(err)
	}
	b, err := Accept(ends[1], uint32(uid), holds)
	return ends[0], b, err
}

// TestFalseInit: a process that says it is the init can name no process that is not the job's, and
// cannot keep the supervisor waiting.
func TestFalseInit(t *testing.T) {
	if _, _, err := fakeInit(t, os.Getuid()+1, nil); err == nil {
		t.Error("an init of another user is accepted")
	}
	theirs, b, err := fakeInit(t, os.Getuid(), func(pid int) bool { return pid != os.Getppid() })
	if err != nil {
		t.Fatal(err)
	}
	pidfd, err := unix.PidfdOpen(os.Getppid(), 0)
	if err != nil {
		t.Skip(err)
	}
	go func() {
		var r request
		if _, err := receiveFrame(theirs, &r); err == nil {
			f := os.NewFile(uintptr(pidfd), "process")
			_ = sendFrame(theirs, &answer{ID: r.ID, Files: 1}, []*os.File{f})
			_ = f.Close()
		}
	}()
	pid, exited, err := b.Spawn(&barrier.Cmd{Path: "/bin/true"})
	if pid == os.Getppid() {
		t.Errorf("process %d, which is not the job's, is taken for one of it", pid)
	}
	if err == nil {
		<-exited // the connection has ended
	}
	_, b, err = fakeInit(t, os.Getuid(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b.limit = time.Millisecond
	if _, _, err := b.Spawn(&barrier.Cmd{Path: "/bin/true"}); !errors.Is(err, ErrEnded) {
		t.Errorf("an init that does not answer: %v", err)
	}
}
