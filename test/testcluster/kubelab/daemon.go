package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// daemon is a process of a lab that a test may kill and start again.
type daemon struct {
	name  string
	words []string
	node  *node                      // nil: it is on none
	up    func(context.Context) bool // nil: nothing to wait for

	cmd  *exec.Cmd
	pid  int
	over chan struct{} // closed when it has ended
}

// startDaemon starts a daemon and waits until it answers.
func (l *Lab) startDaemon(ctx context.Context, d *daemon) error {
	if err := l.runDaemon(d); err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	l.mu.Lock()
	l.daemons[d.name] = d
	l.mu.Unlock()
	return l.awaitAnswer(ctx, d)
}

// awaitAnswer waits until a daemon does.
func (l *Lab) awaitAnswer(ctx context.Context, d *daemon) error {
	if d.up == nil {
		return nil
	}
	ended := false
	err := testcluster.Await(ctx, d.name, func() bool {
		select {
		case <-d.over:
			ended = true
			return true
		default:
			return d.up(ctx)
		}
	})
	if ended {
		return fmt.Errorf("%s ended at once: %s", d.name, d.cmd.ProcessState)
	}
	return err
}

// runDaemon begins a daemon's process: in the lab's network, or on its node.
func (l *Lab) runDaemon(d *daemon) error {
	words := append(l.wire.nsenterArgs(), d.words...)
	if d.node != nil {
		words = append(d.node.nsenterArgs(), d.words...)
	}
	var err error
	if d.cmd, d.over, err = l.spawnProcess(d.name, words); err != nil {
		return err
	}
	d.pid = d.cmd.Process.Pid
	if d.node != nil {
		d.pid, err = onlyChild(d.pid, d.over)
	}
	return err
}

// spawnProcess begins a process that dies with the test and has the lab's network as its file 3.
// The channel is closed when it has ended.
func (l *Lab) spawnProcess(name string, words []string) (*exec.Cmd, chan struct{}, error) {
	out, err := os.OpenFile(filepath.Join(l.Dir, "log", name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, err
	}
	defer out.Close()
	c := exec.Command(words[0], words[1:]...)
	// A larger heap takes a sixth off the processor time of a cluster, for some 100 MB.
	c.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "GOGC=300")
	c.Dir = "/"
	c.Stdout, c.Stderr = out, out
	c.ExtraFiles = []*os.File{l.wire.space}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := testcluster.Start(c); err != nil {
		return nil, nil, err
	}
	over := make(chan struct{})
	go func() { _ = c.Wait(); close(over) }()
	return c, over, nil
}

// onlyChild is the process that a process has begun, of which there is one.
func onlyChild(parent int, over <-chan struct{}) (int, error) {
	for deadline := time.Now().Add(testcluster.Patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", parent))
		if f := strings.Fields(string(b)); len(f) > 0 {
			return strconv.Atoi(f[0])
		}
		select {
		case <-over:
			return 0, errors.New("it ended at once")
		default:
		}
	}
	return 0, fmt.Errorf("it began nothing within %s", testcluster.Patience)
}

// Kill ends a daemon with no chance to act: "etcd", "etcd.2", "apiserver", "controller-manager",
// "scheduler", "dns", "kubelet.NODE", "containerd.NODE". Pods go on without their kubelet
// and containerd. Restart starts it again.
func (l *Lab) Kill(t testing.TB, name string) {
	t.Helper()
	l.daemonByName(t, name).killDaemon()
}

// killDaemon ends a daemon and waits for its end.
func (d *daemon) killDaemon() {
	if d.over == nil {
		return
	}
	_ = syscall.Kill(d.pid, syscall.SIGKILL)
	for { // nsenter, its parent, stops itself with a child that is stopped
		_ = d.cmd.Process.Signal(syscall.SIGCONT)
		select {
		case <-d.over:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Restart starts a daemon again, which it kills before if it lives, and waits until it
// answers.
func (l *Lab) Restart(t testing.TB, name string) {
	t.Helper()
	d := l.daemonByName(t, name)
	d.killDaemon()
	if err := l.runDaemon(d); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := l.awaitAnswer(t.Context(), d); err != nil {
		t.Fatalf("%v\n%s", err, l.Logs())
	}
}

// Freeze stops a daemon from answering, while its connections stay, and Thaw lets it go on.
func (l *Lab) Freeze(t testing.TB, name string) { l.signalDaemon(t, name, syscall.SIGSTOP) }

// Thaw is Freeze's opposite.
func (l *Lab) Thaw(t testing.TB, name string) { l.signalDaemon(t, name, syscall.SIGCONT) }

func (l *Lab) signalDaemon(t testing.TB, name string, s syscall.Signal) {
	t.Helper()
	d := l.daemonByName(t, name)
	if err := syscall.Kill(d.pid, s); err != nil {
		t.Fatal(err)
	}
	if s == syscall.SIGCONT { // nsenter stops with its child, and would not hear of its end
		if err := d.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
}

// CPU is how much processor time a daemon has used.
func (l *Lab) CPU(t testing.TB, name string) time.Duration {
	t.Helper()
	return testcluster.CPU(t, l.daemonByName(t, name).pid)
}

func (l *Lab) daemonByName(t testing.TB, name string) *daemon {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.daemons[name]
	if d == nil {
		t.Fatalf("the cluster has no %s", name)
	}
	return d
}
