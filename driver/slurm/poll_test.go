package slurm

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
)

// The shell of a script creates the file of its end, and writes the exit status into it a
// moment later: what is read between is no end.
func TestHalfWritten(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		mark lockdir.Mark
		want bool
	}{
		{lockdir.Mark{Name: "1.1-x.0.done", Time: now}, true},
		{lockdir.Mark{Name: "1.1-x.0.done", Time: now, Text: "3"}, false},
		{lockdir.Mark{Name: "1.1-x.0.done", Time: now.Add(-2 * skew)}, false}, // it was killed just then
		{lockdir.Mark{Name: "1.1-x.0.begun", Time: now}, false},
	} {
		if got := halfWritten(&c.mark); got != c.want {
			t.Errorf("%+v: %t", c.mark, got)
		}
	}
}
