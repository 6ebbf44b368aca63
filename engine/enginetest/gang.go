package enginetest

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

func testGang(t *testing.T, h Harness) {
	h.run(t, "Whole", func(t *testing.T) {
		b := startBench(t, h)
		ref := b.launchProgram(4, Program{Run: Forever})
		b.awaitReport(ref, "running on each of 4 nodes", func(r engine.Report) bool {
			runs := 0
			for _, n := range r.Nodes {
				if n.Phase == engine.Running {
					runs++
				}
			}
			return r.Phase == engine.Running && runs == 4
		})
	})
	t.Run("PartialFailure", func(t *testing.T) {
		if h.Break == nil {
			t.Skip("nodes of this driver cannot be broken")
		}
		b := startBench(t, h)
		l := b.planLaunch(1, 4, Program{Run: Forever})
		nodes, err := b.e.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		broken := nodes[2].Name
		b.Break(t, b.e, broken)
		b.mustLaunch(l)
		r := b.awaitGone(l.Ref)
		if r.Cause != engine.LaunchFailed || r.Exit.OK() || !r.Started.IsZero() || len(r.Tasks) != 0 {
			t.Errorf("%s, tasks %+v", describeReport(r), r.Tasks)
		}
		if !strings.Contains(r.Message, broken) {
			t.Errorf("the message %q does not name %s", r.Message, broken)
		}
		// The nodes that were ready serve the next gang.
		if h.Delegated {
			b.Avoid(t, b.e, broken)
		}
		l = b.planLaunch(2, 2, Program{})
		b.mustLaunch(l)
		checkEnded(t, b.awaitGone(l.Ref), engine.Exited, job.ExitCode{})
	})
	h.run(t, "StopBeforeStart", func(t *testing.T) {
		b := startBench(t, h)
		ref := b.launchProgram(4, Program{Run: Forever})
		b.mustStop(ref, engine.Stop{Reason: "changed our mind"})
		r := b.awaitGone(ref)
		if r.Cause != engine.Stopped || r.Exit.OK() {
			t.Errorf("%s", describeReport(r))
		}
	})
}
