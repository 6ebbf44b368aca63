package sshserver

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gliderlabs/ssh"
)

// quietSession is a client that types nothing.
type quietSession struct {
	ssh.Session
	out bytes.Buffer
}

func (s *quietSession) Read([]byte) (int, error)    { select {} }
func (s *quietSession) Write(b []byte) (int, error) { return s.out.Write(b) }

// TestTerminalEndsWithItsCommand: also where a process of the background keeps the terminal; what the
// command wrote comes whole.
func TestTerminalEndsWithItsCommand(t *testing.T) {
	s := &quietSession{}
	begun := time.Now()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "(trap '' HUP; exec sleep 20) & seq 20000; exit 3")
	err := runOnTerminal(s, cmd, ssh.Pty{}, nil)
	if err == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("%v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if text := s.out.String(); !strings.HasSuffix(text, "20000\r\n") {
		t.Errorf("the output ends with %q", text[max(0, len(text)-30):])
	}
}
