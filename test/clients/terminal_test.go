package clientstest

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// escapes are what a terminal obeys and does not show.
var escapes = regexp.MustCompile(`\x1b\[[0-9;:?<>=]*[ -/]*[@-~]|\x1b[()][0-9A-Z]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[=>78]`)

// TestTerminalTools: programs with a screen of their own show a job that runs, and end by their key.
//
// Seen to fail with: squeue -O that refuses a width without a number, which turm asks for;
// nodes as JSON without their TRES, which slurm-viewer lists.
func TestTerminalTools(t *testing.T) {
	t.Parallel()
	s := openSite(t, "terminal-tools")
	s.env = append(s.env, "TERM=xterm-256color", "COLUMNS=160", "LINES=40")
	id := strings.TrimSpace(s.run("sbatch", "--parsable", "--job-name=long-runner", "--gpus=1", "--nodes=1", "--wrap", "sleep 300"))
	s.run("scontrol", "wait_job", id)
	for _, c := range []struct {
		program string
		shows   []string
	}{
		{"turm", []string{"long-runner", "RUNNING", "gres/gpu=1", "slurm-" + id + ".out"}},
		{"stui", []string{"Cluster: clients", "long-runner", "Running"}},
		{"slurm-viewer", []string{"4 nodes", "v1", "mixed", "v4", "idle"}},
		{"slurmtop", []string{"long-runner", "RUNNING", "25.0%"}},
	} {
		s.expectScreen(c.program, c.shows...)
	}
	out := s.run("reportseff", "--no-color", "--format", "JobID,State", id)
	if got := strings.Join(strings.Fields(out), " "); got != "JobID State "+id+" RUNNING" {
		t.Errorf("reportseff printed %q", got)
	}
	// What an ended job used: 1.2 s of CPU time (reportseff reads whole seconds), 80 MiB of 512.
	id = strings.TrimSpace(s.run("sbatch", "--parsable", "--wait", "--mem=512M", "--wrap", `python3 -c 'import time
x = bytearray(80 << 20)
while time.process_time() < 1.2: pass
time.sleep(0.5)'`))
	out = s.run("reportseff", "--no-color", "--format", "JobID,CPUEff,MemEff", id)
	if !regexp.MustCompile(`(?m)^ *` + id + ` +[1-9][0-9.]*% +1[5-9]\.\d%`).MatchString(out) {
		t.Errorf("reportseff printed %q", out)
	}
}

// expectScreen starts a program in a terminal, waits until it has shown some texts, and ends it by q.
func (s *site) expectScreen(program string, texts ...string) {
	s.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	c := s.shell(ctx, program)
	c.SysProcAttr, c.Cancel = nil, func() error { return c.Process.Kill() } // the terminal makes a session
	terminal, err := pty.StartWithSize(c, &pty.Winsize{Rows: 40, Cols: 160})
	if err != nil {
		s.t.Fatalf("%s: %v", program, err)
	}
	defer terminal.Close()
	var raw []byte
	left := texts
	for buf, asked := make([]byte, 1<<16), false; ; {
		n, err := terminal.Read(buf)
		raw = append(raw, buf[:n]...)
		if err != nil {
			break
		}
		shown := escapes.ReplaceAllString(string(raw), "")
		for len(left) > 0 && strings.Contains(shown, left[0]) {
			left = left[1:]
		}
		if len(left) == 0 && !asked {
			asked = true
			if _, err := terminal.WriteString("q"); err != nil {
				s.t.Errorf("%s: %v", program, err)
			}
		}
	}
	if err := c.Wait(); err != nil || len(left) > 0 {
		shown := escapes.ReplaceAllString(string(raw), "")
		s.t.Errorf("%s ended with %v and has not shown %q; it wrote\n%s", program, err, left, shown[max(0, len(shown)-4000):])
	}
}
