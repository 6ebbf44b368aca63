package supervise

import (
	"os/exec"
	"testing"
)

// TestLeftByRemoval: what the removal of a container leaves is killed, or the job would never end.
func TestLeftByRemoval(t *testing.T) {
	left := exec.Command("/bin/sleep", "60")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = left.Process.Kill()
		_ = left.Wait()
	}()
	s := &supervisor{supervisorSlot: &supervisorSlot{spawner: &spawner{reaped: make(chan struct{}, 1)}}}
	c := &containers{s: s, removing: true}
	c.endRemoval()
	if c.removing || !c.removed || s.due.kill.IsZero() {
		t.Errorf("removing %v, removed %v, kill at %v", c.removing, c.removed, s.due.kill)
	}
}
