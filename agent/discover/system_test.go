package discover

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestReadSystem compares with what uname says of the same kernel.
func TestReadSystem(t *testing.T) {
	s := ReadSystem()
	for flag, have := range map[string]string{"-m": s.Arch, "-srv": s.OS} {
		out, err := exec.Command("uname", flag).Output()
		if err != nil {
			t.Skip("no uname")
		}
		if want := strings.TrimSpace(string(out)); have != want {
			t.Errorf("%q, uname %s says %q", have, flag, want)
		}
	}
	if s.Booted.IsZero() || s.Booted.After(time.Now()) || s.Load < 0 {
		t.Errorf("%+v", s)
	}
	if got := bootTime("cpu 1 2\nbtime 1700000000\nprocesses 5\n"); got.Unix() != 1700000000 {
		t.Errorf("booted at %v", got)
	}
	if got := bootTime("btime soon\n"); !got.IsZero() {
		t.Errorf("booted at %v", got)
	}
}
