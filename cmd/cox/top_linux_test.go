package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// liveSite is a server in a process of its own, with cox and cox-top beside each other.
type liveSite struct {
	t   *testing.T
	dir string
	env []string
}

func newLiveSite(t *testing.T, args ...string) *liveSite {
	t.Helper()
	s := &liveSite{t: t, dir: t.TempDir()}
	bin := filepath.Join(s.dir, "bin")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", bin+"/cox-top", "../cox-top").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self) // a copy: a server starts itself by the name of its file
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "cox"), b, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	state := filepath.Join(s.dir, "state")
	s.env = append(os.Environ(), "HOME="+s.dir, "XDG_CONFIG_HOME="+s.dir, "XDG_RUNTIME_DIR="+s.dir, "TMPDIR="+s.dir, "PATH="+bin+":"+os.Getenv("PATH"), "TERM=xterm-256color", "COX_SERVER=unix://"+state+"/cox.sock")
	t.Cleanup(func() { endServers(s.dir) })
	s.cox(append([]string{"up", "-d", "--state-dir", state, "--tcp", "none"}, args...)...)
	return s
}

// cox runs a command that has to succeed, and returns what it printed.
func (s *liveSite) cox(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(s.dir, "bin", "cox"), args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("cox %s: %v\n%s%s", strings.Join(args, " "), err, out, said.String())
	}
	return string(out)
}

// console opens a program of the site on a terminal.
func (s *liveSite) console(size *pty.Winsize, args ...string) *console {
	s.t.Helper()
	c := &console{t: s.t, cmd: exec.Command(filepath.Join(s.dir, "bin", args[0]), args[1:]...), more: make(chan struct{}, 1)}
	c.cmd.Dir, c.cmd.Env = s.dir, s.env
	var err error
	if c.tty, err = pty.StartWithSize(c.cmd, size); err != nil {
		s.t.Fatal(err)
	}
	go c.read()
	s.t.Cleanup(func() { c.tty.Close(); _ = c.cmd.Process.Kill() })
	return c
}

// TestTopWorksOnJobs: a real cox top on a real server follows the output of a job, opens a shell in it
// and comes back, says why another waits, and cancels.
func TestTopWorksOnJobs(t *testing.T) {
	s := newLiveSite(t, "--nodes", "1", "--gpus-per-node", "2")
	fifo := filepath.Join(s.dir, "more")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s.cox("submit", "--gpus", "2", "-J", "train", "--wrap", "echo epoch-one; cat "+fifo+"; exec sleep 1000")
	s.cox("submit", "--gpus", "2", "-J", "later", "--", "true")
	why, _, _ := strings.Cut(s.cox("why", "2"), " for ") // before the seconds

	c := s.console(&pty.Winsize{Rows: 30, Cols: 120}, "cox", "top", "--view", "jobs", "--no-color")
	c.until("train")
	c.press("l")
	c.until("output of 1 train: RUNNING, followed")
	c.until("epoch-one")
	if err := os.WriteFile(fifo, []byte("written-later\n"), 0); err != nil {
		t.Fatal(err)
	}
	c.until("written-later")

	c.press(":shell\r")
	c.until("a shell in job 1; exit or Ctrl-D comes back to cox top")
	c.press("echo $((40+2))-in-$SLURM_JOB_NAME; stty size; exit 3\r")
	c.until("42-in-train")
	c.until("30 120")
	c.until("ended with exit 3")
	c.press("\x1b")
	c.until("SPREAD")

	c.press(":queue\r")
	c.until("later")
	c.press("w")
	c.until(why)
	c.press("\x1b")
	c.until("PRIORITY")
	c.press(":pools\r")
	c.until("GANGS")
	c.press("2\x04")
	c.until("cancel 1 train of")
	c.press("y")
	c.until("nothing runs")
	s.cox("wait", "2")
	c.press(":q\r")
	if code := c.wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if got := s.cox("history", "--no-headers"); !strings.Contains(got, "CANCELLED") {
		t.Errorf("job 1 was not cancelled:\n%s", got)
	}
}
