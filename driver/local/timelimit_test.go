package local_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
)

// TestTimeLimitOfARunningAttempt: it can be raised, also over a restart of the engine, taken
// away and lowered below the time that has passed.
//
// Seen to fail with: a limit that the supervisor does not take, one that the engine forgets.
func TestTimeLimitOfARunningAttempt(t *testing.T) {
	const first = 2 * time.Second
	root := t.TempDir()
	e := newEngine(t, local.Config{Root: root, Overdue: time.Millisecond})
	end := filepath.Join(t.TempDir(), "end")
	var all []*engine.Launch
	for i, limit := range []time.Duration{time.Hour, 0} {
		l := plan(t, e, 1, "while ! test -e "+end+"; do sleep 0.05; done")
		l.Ref.Allocation, l.Job.Spec.TimeLimit, l.Grace = uint64(i+1), first, 0
		launch(t, e, l)
		until(t, e, l.Ref, running)
		if err := e.Relimit(t.Context(), l.Ref, limit); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	began := time.Now()
	if err := e.Close(); err != nil { // the next one reads of the limits in the journals
		t.Fatal(err)
	}
	nodes := e.Room()
	e = newEngine(t, local.Config{Root: root, Nodes: nodes, Overdue: time.Millisecond})
	eventually(t, "the first limit has passed", func() bool { return time.Since(began) > first+200*time.Millisecond })
	for _, l := range all {
		if r, err := e.Inspect(t.Context(), l.Ref); err != nil || r.Phase != engine.Running {
			t.Errorf("after its first limit: %s, %s, %v", r.Phase, r.Cause, err)
		}
	}
	if err := e.Relimit(t.Context(), all[0].Ref, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if r := until(t, e, all[0].Ref, gone); r.Cause != engine.TimedOut {
		t.Errorf("lowered: %s, %s", r.Cause, r.Exit)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	succeeded(t, until(t, e, all[1].Ref, gone))
	if err := e.Relimit(t.Context(), all[1].Ref, time.Second); err != nil {
		t.Errorf("one that has ended: %v", err)
	}
}
