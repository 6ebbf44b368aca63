package control_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// runsOn is the node of attempt n of a job, which has been launched.
func (b *bench) runsOn(id job.ID, n uint32) (state.View, string) {
	b.t.Helper()
	v := b.until(id, "launched again", func(v state.View) bool {
		return v.Job.Attempt == n && v.Job.State.Holds() && v.Report.Phase == engine.Accepted
	})
	b.hand.start(v)
	return v, v.Claims[0].Node
}

// requeued is a job of one node that runs again, as it says.
func requeued(rerun job.Rerun, gpus int) *job.Spec {
	s := gang(1, gpus)
	s.Requeue, s.Rerun = true, rerun
	s.Retries = &job.Retries{Count: 5}
	return s
}

// TestAJobKeepsOffANodeThatFailedIt for ten minutes, also over a restart of the server, and no longer;
// the end is kept as the node's. Where no other node could run it, it starts there at once; and the
// job's own failure keeps it off none.
//
// Seen to fail with: KeepsOff always 0; FitsUp always true; a job's failure that counts as a node's.
func TestAJobKeepsOffANodeThatFailedIt(t *testing.T) {
	c := newClock()
	b := openWith(t, newHand(2, 8), control.Config{Clock: c})
	id := b.submit(requeued(job.RerunAnywhere, 8))
	v, first := b.runsOn(id, 1)
	ends := func(v state.View, cause engine.Cause) {
		b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Ended, Gone: true, Cause: cause, Exit: job.ExitCode{Status: 1}, Started: c.Now(), Ended: c.Now()})
	}
	other := b.submit(gang(1, 8)) // has the other node
	b.launched(other)
	ends(v, engine.NodeLost)
	b.waits(id, reason.Resources)
	explained := func(want string) {
		t.Helper()
		all, err := b.ctl.Reasons(t.Context(), id)
		text := ""
		for _, r := range all {
			text += r.String() + "\n"
		}
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v: %s\nwant %s", err, text, want)
		}
	}
	explained("waits for other nodes than " + first + " (attempt 1 failed there) until ")
	b.reopen()
	b.waits(id, reason.Resources)
	explained("waits for other nodes than " + first + " (attempt 1 failed there) until ")
	if p := b.until(id, "waiting", func(v state.View) bool { return v.Job.State == job.Pending }).Past[0]; p.Failure != engine.NodeFailure || p.FailedOn != first || p.KeepOff != state.DefaultKeepOff {
		t.Errorf("kept as %+v", p)
	}
	b.pass(c, state.DefaultKeepOff)
	v, again := b.runsOn(id, 2)
	if again != first {
		t.Errorf("after ten minutes it runs on %s, not on %s", again, first)
	}
	ends(v, engine.Exited)
	if v, again = b.runsOn(id, 3); again != first {
		t.Errorf("after a failure of its own it runs on %s, not on %s", again, first)
	}

	b.hand.report(engine.Report{ // its program says that a device broke
		Ref: v.Ref, Phase: engine.Ended, Gone: true, Cause: engine.Exited, Exit: job.ExitCode{Status: 1}, Started: c.Now(), Ended: c.Now(), DeviceError: "GPU is lost",
	})
	b.fail(other, engine.Exited, 0)
	if v, again = b.runsOn(id, 4); again == first || v.Retried != 1 || v.Past[2].Failure != engine.NodeFailure || v.Past[2].KeepOff == 0 {
		t.Errorf("after a device broke on %s it runs on %s, retry %d, %+v", first, again, v.Retried, v.Past)
	}

	alone := openWith(t, newHand(1, 8), control.Config{Clock: c})
	id = alone.submit(requeued(job.RerunAnywhere, 8))
	v, first = alone.runsOn(id, 1)
	alone.hand.end(v, engine.NodeLost, 1)
	if v, again = alone.runsOn(id, 2); again != first || v.Past[0].KeepOff != 0 {
		t.Errorf("%s, %+v", again, v.Past)
	}
}

// TestAFenceMakesItTheNodesFailure: a job that fails on a device of which a check has failed meanwhile is
// requeued, and runs elsewhere; one beside it, on other devices of the node, has failed by itself.
//
// Seen to fail with: fences of all devices counted.
func TestAFenceMakesItTheNodesFailure(t *testing.T) {
	b := open(t, newHand(2, 4))
	ill, well := requeued(job.RerunAnywhere, 1), gang(1, 1)
	ill.Retries = nil
	hit, node := b.runsOn(b.submit(ill), 1)
	well.Groups[0].NodeList = []string{node}
	beside, _ := b.runsOn(b.submit(well), 1)
	h := fenced(1, hit.Claims[0].Devices[0].Index)
	h.Node = node
	if err := b.ctl.SetNodeHealth(t.Context(), job.Actor{Name: "health"}, h); err != nil {
		t.Fatal(err)
	}
	b.hand.end(beside, engine.Exited, 1)
	if v := b.state(beside.Job.ID, job.Failed); v.Report.Failure != engine.JobFailure {
		t.Errorf("the job beside it: failure of the %s", v.Report.Failure)
	}
	b.hand.end(hit, engine.Exited, 1)
	if v, again := b.runsOn(hit.Job.ID, 2); again == node || v.Past[0].Failure != engine.NodeFailure || v.Past[0].FailedOn != node {
		t.Errorf("it runs on %s after %s, %+v", again, node, v.Past)
	}
}

// TestExcludeFailed: a job that asked for it runs on no node on which it failed, also by its own
// failure, and waits if there is no other; why says so.
//
// Seen to fail with: only failures of nodes counted.
func TestExcludeFailed(t *testing.T) {
	b := open(t, newHand(3, 8))
	id := b.submit(requeued(job.RerunExcludeFailed, 1))
	seen := map[string]bool{}
	for n, cause := range []engine.Cause{engine.Exited, engine.NodeLost, engine.Exited} {
		v, node := b.runsOn(id, uint32(n+1))
		if seen[node] {
			t.Errorf("attempt %d runs on %s again", n+1, node)
		}
		seen[node] = true
		b.hand.end(v, cause, 1)
	}
	b.until(id, "waiting", func(v state.View) bool {
		return v.Job.State == job.Pending && v.Job.Attempt == 3 && v.Why.Code != reason.None
	})
	all, err := b.ctl.Reasons(t.Context(), id)
	if err != nil || len(all) == 0 || all[len(all)-1].Code != reason.FailedNodes || strings.Count(all[len(all)-1].String(), "failed there") != 3 {
		t.Errorf("%v: %+v", err, all)
	}
	b.reopen()
	b.until(id, "waiting still", func(v state.View) bool { return v.Job.State == job.Pending && v.Why.Code != reason.None })
}

// TestSameNodes: a job that asked for it runs again where it ran, though another node is free and this
// one is taken first; an attempt that never began binds it to nothing.
//
// Seen to fail with: a stay after a launch that failed.
func TestSameNodes(t *testing.T) {
	b := open(t, newHand(2, 8))
	id := b.submit(requeued(job.RerunSameNodes, 8))
	v, first := b.runsOn(id, 1)
	b.hand.end(v, engine.NodeLost, 1)
	v, again := b.runsOn(id, 2)
	if again != first {
		t.Errorf("it runs on %s, it ran on %s", again, first)
	}
	urgent := gang(1, 8)
	urgent.Groups[0].NodeList = []string{first}
	urgent.Priority = 1000
	taker := b.submit(urgent)
	b.hand.end(v, engine.Exited, 1)
	b.launched(taker)
	b.waits(id, reason.Resources)
	all, err := b.ctl.Reasons(t.Context(), id)
	if err != nil || all[len(all)-1].Code != reason.SameNodes || !strings.Contains(all[len(all)-1].String(), "stays on "+first+" (attempt 2 ran there)") {
		t.Errorf("%v: %+v", err, all)
	}
	b.fail(taker, engine.Exited, 0)
	if _, again = b.runsOn(id, 3); again != first {
		t.Errorf("it runs on %s, it ran on %s", again, first)
	}
}

// TestExcludeFailedForgetsNothing: a node on which an attempt failed longer ago than attempts are
// kept is kept, also over a restart, and so is one that failed an attempt before it began.
//
// Seen to fail with: nodes taken from the attempts that are kept; from those that began alone.
func TestExcludeFailedForgetsNothing(t *testing.T) {
	b := open(t, newHand(26, 8))
	s := requeued(job.RerunExcludeFailed, 8)
	s.Retries.Count = 40
	id := b.submit(s)
	seen := map[string]uint32{}
	for n := uint32(1); n <= 24; n++ {
		v := b.until(id, "launched", func(v state.View) bool {
			return v.Job.Attempt == n && v.Job.State.Holds() && v.Report.Phase == engine.Accepted
		})
		node := v.Claims[0].Node
		if was := seen[node]; was != 0 {
			t.Fatalf("attempt %d runs on %s, which failed attempt %d", n, node, was)
		}
		seen[node] = n
		if n == 1 { // never began
			b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Ended, Gone: true, Cause: engine.NodeLost, Exit: job.ExitCode{Status: 1}, Ended: time.Now()})
			continue
		}
		b.hand.start(v)
		b.hand.end(v, engine.Exited, 1)
		if n == 22 {
			b.until(id, "again", func(v state.View) bool { return v.Job.Attempt == 23 && v.Report.Phase == engine.Accepted })
			b.reopen()
		}
	}
}

// TestAJobKeepsOffANodeThatFailedItBeforeItBegan: for ten minutes, as one on which it ran.
//
// Seen to fail with: nodes taken from the attempts that began alone.
func TestAJobKeepsOffANodeThatFailedItBeforeItBegan(t *testing.T) {
	b := open(t, newHand(2, 8))
	id := b.submit(requeued(job.RerunAnywhere, 8))
	v := b.until(id, "launched", func(v state.View) bool { return v.Job.Attempt == 1 && v.Report.Phase == engine.Accepted })
	first := v.Claims[0].Node
	b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Ended, Gone: true, Cause: engine.NodeLost, Exit: job.ExitCode{Status: 1}, Ended: time.Now()})
	if v, again := b.runsOn(id, 2); again == first || len(v.Past) != 0 {
		t.Errorf("it runs on %s again; kept %+v", again, v.Past)
	}
}

// TestElasticJobsGrowAgain after a node failed them: one that asked for the same nodes on all others,
// the others not on that node, for ten minutes or, if they asked for it, never.
//
// Seen to fail with: additions that must have the nodes of the minimum; that know of no nodes to keep
// off; without a look when the time is over.
func TestElasticJobsGrowAgain(t *testing.T) {
	for rerun, want := range map[job.Rerun][2]int{job.RerunAnywhere: {2, 3}, job.RerunSameNodes: {3, 3}, job.RerunExcludeFailed: {2, 2}} {
		t.Run(cmp.Or(string(rerun), "anywhere"), func(t *testing.T) {
			c := newClock()
			s := begin(t, control.Config{Clock: c}, 3, 3, nil, func(x *job.Spec) { x.Rerun = rerun })
			first, refs := s.own.Claims[0].Node, s.refs()
			s.hand.report(engine.Report{
				Ref: s.own.Ref, Phase: engine.Ended, Gone: true, Cause: engine.NodeLost, Exit: job.ExitCode{Status: 1}, Started: c.Now(), Ended: c.Now(),
				Nodes: []engine.NodeReport{{Node: first, Lost: true}},
			})
			for _, r := range refs {
				s.gone(r, engine.Stopped)
			}
			s.own, _ = s.runsOn(s.id, 2)
			has := func(n int) {
				t.Helper()
				s.has(n)
				v, err := s.ctl.Job(t.Context(), s.id)
				if on := slices.ContainsFunc(v.Claims, func(c fleet.Claim) bool { return c.Node == first }); err != nil || len(v.Claims) != n || on != (n == 3) {
					t.Errorf("%v: with %d nodes it has %v, attempt 1 failed on %s", err, n, v.Claims, first)
				}
			}
			has(want[0])
			for _, ref := range s.refs() {
				s.runs(ref)
			}
			s.pass(c, state.DefaultKeepOff)
			has(want[1])
		})
	}
}
