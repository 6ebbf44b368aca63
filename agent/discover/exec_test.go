package discover

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestExecOutput(t *testing.T) {
	out, err := Exec(t.Context(), "/bin/sh", "-c", "echo $LC_ALL; echo reason >&2; exit 9")
	if string(out) != "C\n" || err == nil || err.Error() != "exit status 9: reason" {
		t.Errorf("%q, %v", out, err)
	}
	if got := failureText(out, err); got != "C (exit status 9: reason)" {
		t.Errorf("why = %q", got)
	}
}

func TestExecMissing(t *testing.T) {
	for _, name := range []string{"cox-no-such-program", "/no/such/program"} {
		_, err := Exec(t.Context(), name)
		if !isNotInstalled(err) || failureText(nil, err) != "not in PATH" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExecTooMuchOutput(t *testing.T) {
	out, err := Exec(t.Context(), "/bin/sh", "-c", "head -c 6000000 /dev/zero")
	if err != nil || len(out) != maxOutput {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

// A tool that hangs, and one whose child keeps the output open, end with the
// deadline; nothing stays behind.
func TestExecHanging(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, script := range []string{"exec tail -f /dev/null", "tail -f /dev/null & wait"} {
		s := &search{ctx: t.Context(), Options: Options{Run: Exec, Timeout: 50 * time.Millisecond}}
		_, err := s.runTool("/bin/sh", "-c", script)
		if !errors.Is(err, errSilent) || !strings.Contains(err.Error(), "waited 50ms") {
			t.Errorf("%s: %v", script, err)
		}
	}
}

func TestExecCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &search{ctx: ctx, Options: Options{Run: Exec, Timeout: time.Minute}}
	if _, err := s.runTool("/bin/sh", "-c", "exec tail -f /dev/null"); err == nil || errors.Is(err, errSilent) {
		t.Errorf("error %v", err)
	}
}
