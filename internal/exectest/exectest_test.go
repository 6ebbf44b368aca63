package exectest

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// record is a test that only notes its errors.
type record struct {
	testing.TB
	mu     sync.Mutex
	errors []string
}

func (r *record) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// output is a buffer for several goroutines.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// TestCommandThatHangs: it and its children are killed, and the test fails with the output so far.
func TestCommandThatHangs(t *testing.T) {
	for limit := time.Second; ; limit *= 5 {
		r := &record{TB: t}
		said := &output{}
		cmd := command(r, limit, said, "/bin/sh", "-c", "echo begun; sleep 1000 & sleep 1000")
		cmd.Stdout, cmd.Stderr = said, said
		err := cmd.Run() // ErrWaitDelay: a child lives on and holds the output
		if said.String() == "" && limit < time.Minute {
			continue // it had not begun: the machine is under load
		}
		if err == nil || errors.Is(err, exec.ErrWaitDelay) {
			t.Errorf("it ended with %v", err)
		}
		if len(r.errors) != 1 || !strings.Contains(r.errors[0], "did not end within "+limit.String()) || !strings.HasSuffix(r.errors[0], "its output:\nbegun\n") {
			t.Errorf("the test says %q", r.errors)
		}
		return
	}
}

// TestCommandThatEnds: nothing is said of it.
func TestCommandThatEnds(t *testing.T) {
	r := &record{TB: t}
	if out, err := command(r, time.Minute, nil, "/bin/echo", "done").Output(); err != nil || string(out) != "done\n" || len(r.errors) > 0 {
		t.Errorf("%q, %v, said %q", out, err, r.errors)
	}
}
