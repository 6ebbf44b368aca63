package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// openShell gives the terminal to a shell in a job until it ends.
func (m *model) openShell(target string) tea.Cmd {
	if j := m.liveJob(target); j != nil && j.State == "PENDING" {
		m.message = "job " + target + " waits and has no processes yet; w says why it waits"
		return nil
	}
	return m.src.openShell(target)
}

// openShell runs cox shell in the terminal.
func (r *remote) openShell(target string) tea.Cmd {
	cox, err := findCox()
	if err != nil {
		return func() tea.Msg { return doneMsg{errorText(err)} }
	}
	cmd := exec.Command(cox, "shell", target)
	cmd.Env = os.Environ()
	if r.server != "" {
		cmd.Env = append(cmd.Env, "COX_SERVER="+r.server)
	}
	s := &shellProcess{Cmd: cmd, target: target}
	return tea.Exec(s, s.endMessage)
}

// shellProcess is a process that has the terminal. What it says on standard error, which is
// of cox alone, is kept for the message after it.
type shellProcess struct {
	*exec.Cmd
	target string
	said   bytes.Buffer
}

func (s *shellProcess) SetStdin(io.Reader)  { s.Stdin = os.Stdin }
func (s *shellProcess) SetStdout(io.Writer) { s.Stdout = os.Stdout }
func (s *shellProcess) SetStderr(io.Writer) { s.Stderr = io.MultiWriter(os.Stderr, &s.said) }

func (s *shellProcess) Run() error {
	fmt.Printf("a shell in job %s; exit or Ctrl-D comes back to cox top\n", s.target)
	return s.Cmd.Run()
}

// endMessage says how the shell ended.
func (s *shellProcess) endMessage(err error) tea.Msg {
	var ended *exec.ExitError
	said := strings.Join(strings.Fields(strings.TrimPrefix(s.said.String(), "cox: ")), " ")
	switch {
	case said != "":
		return doneMsg{said}
	case errors.As(err, &ended):
		return doneMsg{fmt.Sprintf("the shell in job %s ended with exit %d", s.target, ended.ExitCode())}
	case err != nil:
		return doneMsg{err.Error()}
	}
	return doneMsg{"the shell in job " + s.target + " has ended"}
}

// findCox finds cox: beside this program, else on PATH.
func findCox() (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "cox")
		if st, err := os.Stat(beside); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return beside, nil
		}
	}
	found, err := exec.LookPath("cox")
	if err != nil {
		return "", fault.New(fault.Unsupported, "cox is neither beside cox-top nor on PATH, and it opens the shell").Advise("put cox beside cox-top")
	}
	return found, nil
}

// errorText is an error with what to do about it, in one line.
func errorText(err error) string {
	if r := fault.Remedy(err); r != "" {
		return err.Error() + ": " + r
	}
	return err.Error()
}
