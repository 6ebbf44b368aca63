package slurm

import (
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/watchcache"
)

// TestAStopStays: a report that was begun before a stop was noted does not take back what the
// stop says.
func TestAStopStays(t *testing.T) {
	e := &Engine{cache: watchcache.New(1)}
	a := &attempt{id: 7, stop: &stopping{Cause: engine.Stopped, Reason: "enough"}, report: engine.Report{Phase: engine.Ending, Cause: engine.Stopped, Message: "enough"}}
	for _, tt := range []struct{ stale, want engine.Report }{
		{engine.Report{Phase: engine.Running}, engine.Report{Phase: engine.Ending, Cause: engine.Stopped, Message: "enough"}},
		{engine.Report{Phase: engine.Running, Uncertain: true, Message: "nobody knows"}, engine.Report{Phase: engine.Ending, Uncertain: true, Cause: engine.Stopped, Message: "nobody knows"}},
		{engine.Report{Phase: engine.Ended, Gone: true, Cause: engine.TimedOut}, engine.Report{Phase: engine.Ended, Gone: true, Cause: engine.TimedOut}}, // it had ended before
	} {
		e.publishReport(a, tt.stale)
		r := a.report
		if r.Phase != tt.want.Phase || r.Cause != tt.want.Cause || r.Message != tt.want.Message || r.Uncertain != tt.want.Uncertain {
			t.Errorf("%+v, want %+v", r, tt.want)
		}
	}
}
