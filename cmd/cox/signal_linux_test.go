package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/coxswain-sched/coxswain/internal/exectest"
)

// cox is a running cox under test, with what it printed so far.
type cox struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	err   bytes.Buffer
	home  string
}

// startCox starts the test binary under the name of cox.
func startCox(t *testing.T, args ...string) *cox {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &cox{t: t, home: t.TempDir()}
	name := filepath.Join(c.home, "cox")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	c.cmd = exectest.Command(t, nil, name, args...)
	c.cmd.Dir = c.home
	c.cmd.Env = append(os.Environ(), "HOME="+c.home, "TMPDIR="+c.home, "COX_SERVER=unix://"+c.home+"/none.sock") // no server of this machine has a part in it
	c.cmd.Stderr = &c.err
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

// until reads lines of the job until one has the text.
func (c *cox) until(text string) {
	c.t.Helper()
	for c.lines.Scan() {
		if strings.Contains(c.lines.Text(), text) {
			return
		}
	}
	c.t.Fatalf("%q was never printed; standard error:\n%s", text, c.err.String())
}

func (c *cox) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// wait returns the exit code; -1 after a signal.
func (c *cox) wait() int {
	c.t.Helper()
	for c.lines.Scan() { // to its end, or Wait may lose lines
	}
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return c.cmd.ProcessState.ExitCode()
}

// left lists the processes that live and were started by this cox.
func (c *cox) left() (cmds []string) {
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, p := range procs {
		env, err := os.ReadFile(p)
		if err == nil && bytes.Contains(env, []byte("HOME="+c.home+"\x00")) {
			cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline"))
			cmds = append(cmds, string(cmd))
		}
	}
	return cmds
}

func TestCtrlCCancelsCleanly(t *testing.T) {
	c := startCox(t, "run", "--nodes", "2", "--", "sh", "-c", `trap 'echo cleaned up; exit 0' TERM; echo up; while :; do sleep 0.05; done`)
	c.until("up")
	c.signal(syscall.SIGINT)
	c.until("cleaned up")
	if code := c.wait(); code != 130 {
		t.Errorf("exit %d\n%s", code, c.err.String())
	}
	if !strings.Contains(c.err.String(), "CANCELLED") || !strings.Contains(c.err.String(), "once more kills") {
		t.Errorf("standard error:\n%s", c.err.String())
	}
	if left := c.left(); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
}

func TestASecondCtrlCKills(t *testing.T) {
	c := startCox(t, "run", "--", "sh", "-c", `trap 'echo not yet' TERM; echo up; while :; do sleep 0.05; done`)
	c.until("up")
	c.signal(syscall.SIGINT)
	c.until("not yet")
	began := time.Now()
	c.signal(syscall.SIGINT)
	if code := c.wait(); code != 130 {
		t.Errorf("exit %d\n%s", code, c.err.String())
	}
	if took := time.Since(began); took > 20*time.Second { // the grace is 30 s
		t.Errorf("killing took %s", took)
	}
	if left := c.left(); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
}

func TestAKilledRunIsTakenUpFromItsStateDirectory(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	c := startCox(t, "run", "--state-dir", state, "--nodes", "2", "--", "sh", "-c", `echo up; while [ ! -e go ]; do sleep 0.05; done; echo went on; exit 5`)
	c.until("up")
	c.signal(syscall.SIGKILL)
	if code := c.wait(); code != -1 {
		t.Fatalf("exit %d", code)
	}
	if len(c.left()) == 0 {
		t.Fatal("the job did not outlive cox")
	}
	again := startCox(t, "run", "--state-dir", state)
	again.until("up")
	if err := os.WriteFile(filepath.Join(c.home, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again.until("went on")
	if code := again.wait(); code != 5 {
		t.Errorf("exit %d\n%s", code, again.err.String())
	}
	if left := c.left(); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
}

func TestWorkOfAKilledRunEndsWhereNobodyCanTakeItUp(t *testing.T) {
	c := startCox(t, "run", "--nodes", "2", "--", "sh", "-c", `trap 'echo ended > ended.$SLURM_PROCID; exit 0' TERM; echo up; while :; do sleep 0.05; done`)
	c.until("up")
	c.signal(syscall.SIGKILL)
	if code := c.wait(); code != -1 {
		t.Fatalf("exit %d", code)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for len(c.left()) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("left running: %q", c.left())
		}
		time.Sleep(20 * time.Millisecond) // processes that are not our children: there is no event to wait for
	}
	for _, f := range []string{"ended.0", "ended.1"} {
		if _, err := os.Stat(filepath.Join(c.home, f)); err != nil {
			t.Errorf("a rank was not asked to end: %v", err)
		}
	}
}

func TestTheLiveViewShowsTheGangOnATerminal(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	name := filepath.Join(home, "cox")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, "run", "--nodes", "2", "--", "sh", "-c", `echo up; while [ ! -e go ]; do sleep 0.05; done`)
	cmd.Dir, cmd.Env = home, append(os.Environ(), "HOME="+home, "TMPDIR="+home, "COX_SERVER=unix://"+home+"/none.sock")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	var seen bytes.Buffer
	buf := make([]byte, 4096)
	for !strings.Contains(seen.String(), "2 ranks running") {
		n, err := tty.Read(buf)
		if err != nil {
			t.Fatalf("the live view never showed two running ranks: %v\n%s", err, seen.String())
		}
		seen.Write(buf[:n])
	}
	if err := os.WriteFile(filepath.Join(home, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(tty) // a terminal whose last process ended reads as an error
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, rest)
	}
	if !strings.Contains(seen.String(), "v2") || !strings.Contains(string(rest), "\x1b[J") || !strings.Contains(string(rest), "COMPLETED") {
		t.Errorf("the view is not drawn and removed as it should be:\n%q\n%q", seen.String(), rest)
	}
}

func TestAHangupThatIsIgnoredCancelsNothing(t *testing.T) {
	signal.Ignore(syscall.SIGHUP) // what cox is started with, as by nohup
	c := startCox(t, "run", "--", "sh", "-c", `echo up; while [ ! -e go ]; do sleep 0.05; done; echo went on`)
	signal.Reset(syscall.SIGHUP)
	c.until("up")
	c.signal(syscall.SIGHUP)
	if err := os.WriteFile(filepath.Join(c.home, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.until("went on")
	if code := c.wait(); code != 0 {
		t.Errorf("exit %d\n%s", code, c.err.String())
	}
}
