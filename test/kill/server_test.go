package killtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/api/client"
)

// patience bounds every wait: it ends a test that hangs, and says nothing of speed.
const patience = 5 * time.Minute

// pollEvery is the pause between two looks at what has no event to wait for.
const pollEvery = 20 * time.Millisecond

// server is a real server with its state directory, in as many lives as it takes.
type server struct {
	t     testing.TB
	cox   string
	state string
	log   string // what all its lives said
	args  []string
	c     *client.Client

	mu     sync.Mutex
	cmd    *exec.Cmd
	ended  chan struct{} // closed when cmd has
	killed bool          // the present life is ended here
}

// newServer starts a server. What it leaves is killed with the test.
func newServer(t testing.TB, state string, args ...string) *server {
	t.Helper()
	return newServerOf(t, filepath.Join(bin, "cox"), state, args...)
}

// newServerOf starts a server of a binary.
func newServerOf(t testing.TB, cox, state string, args ...string) *server {
	t.Helper()
	s := &server{t: t, cox: cox, state: state, log: filepath.Join(t.TempDir(), "server.log"), args: args}
	var err error
	s.c, err = client.New(client.Options{Socket: filepath.Join(state, "cox.sock"), Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		s.c.Close()
		sweep(state)
		if t.Failed() {
			if b, err := os.ReadFile(s.log); err == nil {
				t.Logf("the end of the server's log:\n%s", tail(string(b), 60))
			}
		}
	})
	s.start()
	s.ready()
	return s
}

// tail is the last of what a server said, but for what it says at its start.
func tail(s string, n int) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(s), "\n"), func(l string) bool {
		return !strings.HasPrefix(l, "time=") && !strings.HasPrefix(l, "cluster")
	})
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// start begins a life, without waiting for it.
func (s *server) start() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	log, err := os.OpenFile(s.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(s.cox, append([]string{"up", "--config", s.config(), "--state-dir", s.state, "--tcp", "none"}, s.args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	s.cmd, s.ended, s.killed = cmd, ended, false
	go func() { _ = cmd.Wait(); close(ended) }()
}

// config writes a configuration, so that one of the machine does not count.
func (s *server) config() string {
	name := s.log + ".yaml"
	if err := os.WriteFile(name, []byte("name: kill\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// ready waits until the server answers.
func (s *server) ready() {
	s.t.Helper()
	if err := s.answers(); err != nil {
		s.t.Fatal(err)
	}
}

// answers waits until the server answers, in this life or the next one.
func (s *server) answers() error {
	for end := time.Now().Add(patience); ; time.Sleep(pollEvery) {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		_, err := s.c.Info(ctx)
		stop()
		if err == nil {
			return nil
		}
		s.mu.Lock()
		killed, ended := s.killed, s.ended
		s.mu.Unlock()
		select {
		case <-ended:
			if !killed {
				b, _ := os.ReadFile(s.log)
				return fmt.Errorf("the server has ended by itself:\n%s", b[max(0, len(b)-1000):])
			}
		default:
		}
		if time.Now().After(end) {
			return fmt.Errorf("the server does not answer: %w", err)
		}
	}
}

// gone is closed when the present life has ended.
func (s *server) gone() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func (s *server) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Pid
}

func (s *server) signal(sig unix.Signal) {
	if err := unix.Kill(s.pid(), sig); err != nil && !errors.Is(err, unix.ESRCH) {
		s.t.Errorf("signal %s to the server: %v", sig, err)
	}
}

// kill ends the present life at once.
func (s *server) kill() {
	s.mu.Lock()
	s.killed = true
	s.mu.Unlock()
	s.signal(unix.SIGKILL)
	<-s.gone()
}

// close ends the server as its user would, and with it the supervisors that have
// nothing to do. Those that stay are named.
func (s *server) close() error {
	s.signal(unix.SIGTERM)
	select {
	case <-s.gone():
	case <-time.After(patience):
		return errors.New("the server does not end")
	}
	for end := time.Now().Add(patience); ; time.Sleep(pollEvery) {
		left := supervisors(s.state)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("supervisors are left: %v", left)
		}
	}
}

// descriptors is how many the server has open.
func (s *server) descriptors() int {
	d, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.pid()))
	return len(d)
}
