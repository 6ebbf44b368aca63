package supervise

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/rusage"
)

// TestStepsThatAreLeftOut: what they used is kept, and one that went does not come back.
//
// Seen to fail with: the CPU time of steps that are left out given to the batch script.
func TestStepsThatAreLeftOut(t *testing.T) {
	var m usageMeter
	used := rusage.Use{Known: rusage.CPU, User: time.Second}
	for step := range rusage.MaxSteps + 10 {
		m.end(step, 0, "n1", used, 0)
	}
	m.end(rusage.MaxSteps/2, 1, "n1", used, 0)
	if len(m.steps) != rusage.MaxSteps || m.left.count != 10 || m.left.sum.User != 11*time.Second {
		t.Errorf("%d steps, left %+v", len(m.steps), m.left)
	}
}
