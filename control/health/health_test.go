package health

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
)

func TestLook(t *testing.T) {
	ref := engine.Ref{Allocation: 1, Attempt: 1}
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var w Watch
	since := func() int64 {
		for _, i := range w.Of(ref, at(1000), 0) {
			return i.Since.Unix()
		}
		return 0
	}
	for _, step := range []struct {
		at    int
		procs int
		cpu   time.Duration
		want  int64 // idle since; 0: it is not
	}{
		{10, 1, 0, 0},                       // seen first: nothing is known
		{20, 1, 5 * time.Second, 0},         // it computes
		{30, 1, 5*time.Second + 50e6, 20},   // half a hundredth of a CPU
		{40, 1, 5*time.Second + 60e6, 20},   // still
		{50, 1, 6 * time.Second, 0},         // it computes again
		{60, 0, 0, 0},                       // and ended: that was something
		{70, 0, 0, 60},                      // no process since
		{80, 2, 0, 60},                      // two that do nothing
		{90, 2, 400 * time.Millisecond, 0},  // and something
		{95, 2, 400 * time.Millisecond, 90}, // and nothing
	} {
		w.Look(at(step.at), map[engine.Ref][]engine.NodeUse{ref: {{Node: "n", Processes: step.procs, CPU: step.cpu}}})
		if got := since(); got != step.want {
			t.Errorf("at %d with %d processes it is idle since %d, not %d", step.at, step.procs, got, step.want)
		}
	}
	if idle := w.Of(ref, at(99), 10*time.Second); len(idle) != 0 {
		t.Errorf("it has been idle for nine seconds only: %+v", idle)
	}
	w.Look(at(100), nil)
	if idle := w.Of(ref, at(1000), 0); len(idle) != 0 {
		t.Errorf("it has ended: %+v", idle)
	}
}
