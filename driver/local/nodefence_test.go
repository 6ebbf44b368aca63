package local_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
)

// A process that an attempt left behind, which the engine knows no more, keeps its node from being empty. Seen
// to fail without the look at processes.
func TestEmptySeesProcessesLeftBehind(t *testing.T) {
	e := newEngine(t, local.Config{})
	drawn, err := attempt.ReadIdentity(e.Root())
	if err != nil {
		t.Fatal(err)
	}
	node, other := e.Room()[0].Name, e.Room()[1].Name
	left := exec.Command("sleep", "600")
	left.Env = append(os.Environ(), (&attempt.Launch{Root: e.Root(), Drawn: drawn, Ref: engine.Ref{Allocation: 9, Attempt: 1}}).Mark(node))
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := e.Empty(t.Context(), node)
	if err != nil || len(c.Work) != 1 || c.Work[0].Kind != "process" || !strings.Contains(c.Work[0].Name, "sleep") {
		t.Errorf("with a process left behind: %+v, %v", c, err)
	}
	if c, err := e.Empty(t.Context(), other); err != nil || len(c.Work) != 0 {
		t.Errorf("the node beside it: %+v, %v", c, err)
	}
	_ = left.Process.Kill()
	_ = left.Wait()
	if c, err := e.Empty(t.Context(), node); err != nil || len(c.Work) != 0 {
		t.Errorf("it has ended: %+v, %v", c, err)
	}
}
