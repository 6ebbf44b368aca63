package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
)

// A gang that is asked to end was stopped, also when its head hears of that after its
// script has failed for it.
func TestStopThatTheHeadHearsLast(t *testing.T) {
	e := newEngine(t, local.Config{})
	gone1 := filepath.Join(t.TempDir(), "gone")
	l := plan(t, e, 2, "while ! test -e "+gone1+"; do sleep 0.01; done; exit 1")
	launch(t, e, l)
	r := until(t, e, l.Ref, running)
	head := r.Nodes[0].PID
	if err := unix.Kill(head, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the head's supervisor has stopped", func() bool {
		st, err := proc.Read(head)
		return err == nil && st.State == 'T'
	})
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: patience}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gone1, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the script has ended", func() bool {
		st, err := proc.Read(r.Tasks[0].PID)
		return err != nil || st.Dead()
	})
	if err := unix.Kill(head, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if r = until(t, e, l.Ref, gone); r.Cause != engine.Stopped {
		t.Errorf("%s, %s: %q", r.Cause, r.Exit, r.Message)
	}
}
