package model_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// Promise 2: one ledger, fenced by attempt, freed on proof; nothing runs twice.

func TestADeviceIsGrantedTwice(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	r.submit(2, task("second", 1))
	r.breaks(model.Ledger, "capacity", "attempt 2.1 of job 2 claims node n1, with which device 0 is taken 2000 thousandths", r.granting(2, ref(2, 1), on("n1")))
}

func TestMoreIsGrantedThanThereIs(t *testing.T) {
	for name, take := range map[string]resource.Vector{
		"5000 thousandths of a CPU": {CPU: resource.CPUs(5)},
		"bytes of memory":           {Memory: 9 * resource.GiB},
		"bytes of disk":             {Disk: 1},
		"of licence":                {Named: []resource.Named{{Name: "licence", Amount: 1}}},
	} {
		r := newRun(t)
		r.submit(1, task("large", 1))
		r.breaks(model.Ledger, "capacity", name, r.granting(1, ref(1, 1), []fleet.Claim{{Node: "n1", Tasks: 1, Take: take}}))
	}
}

func TestADeviceThatIsNotThere(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("odd", 1))
	claims := on("n1")
	claims[0].Devices[0].Index = 7
	r.breaks(model.Ledger, "capacity", "device 7 is taken, which it does not have", r.granting(1, ref(1, 1), claims))
}

func TestANodeThatIsNotThere(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("odd", 1))
	r.breaks(model.Ledger, "capacity", "node n9, which does not exist", r.granting(1, ref(1, 1), on("n9")))
}

func TestAWholeNodeIsShared(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	r.submit(2, task("exclusive", 1))
	r.breaks(model.Ledger, "capacity", "taken whole, and by 2 attempts", r.granting(2, ref(2, 1), []fleet.Claim{{Node: "n1", Tasks: 1, Whole: true}}))
}

func TestALaunchBeforeTheJournal(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("early", 1))
	r.breaks(model.Ledger, "journal-first", "attempt 1.1 of job 1 is launched on n1, and the journal grants no such attempt", model.Launched{Ref: ref(1, 1), Job: 1, Claims: on("n1")})
}

func TestALaunchOnOtherClaims(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("moved", 1))
	r.grant(1, ref(1, 1), on("n1"))
	r.breaks(model.Ledger, "books", "launched on n2 with other claims than the journal grants on n1", model.Launched{Ref: ref(1, 1), Job: 1, Claims: on("n2")})
}

func TestAnAttemptIsLaunchedTwice(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	r.breaks(model.Ledger, "twice", "attempt 1.1 of job 1 is launched a second time", model.Launched{Ref: ref(1, 1), Job: 1, Claims: on("n1")})
}

func TestCommandsBeginTwice(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	r.breaks(model.Ledger, "twice", "begins on n1 a second time", model.Began{Ref: ref(1, 1), Node: "n1"})
}

func TestTwoAttemptsAreGranted(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	d := r.granting(1, ref(2, 2), on("n2"))
	v := r.m.Tell(d)
	if len(v) == 0 || v[0].Promise != model.Ledger || v[0].Rule != "twice" {
		t.Errorf("%v", v)
	}
}

func TestAnEndedJobRunsAgain(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	r.finish(1, ref(1, 1))
	v := r.m.Tell(r.granting(1, ref(2, 2), on("n2")))
	if len(v) == 0 || v[0].Promise != model.Ledger || v[0].Rule != "twice" {
		t.Errorf("%v", v)
	}
}

func TestALateLaunch(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("late", 1))
	r.grant(1, ref(1, 1), on("n1"))
	r.fine(model.Heard{Epoch: 1, Ref: ref(1, 1)})
	r.fine(r.ending(1, over(ref(1, 1), engine.LaunchFailed, 1), job.Pending, job.ByEngine))
	r.breaks(model.Ledger, "stale", "launched after the journal said that it had ended", model.Launched{Ref: ref(1, 1), Job: 1, Claims: on("n1")})
}

func TestFreedWhileItLives(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1", "n2")
	r.fine(model.Vanished{Ref: ref(1, 1), Node: "n1"})
	r.breaks(model.Ledger, "unproved", "is said to have ended (record 4) and lives on n2", r.ending(1, over(ref(1, 1), engine.NodeLost, 1), job.Pending, job.ByEngine))
}

func TestFreedWithoutAProof(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	r.fine(model.Vanished{Ref: ref(1, 1)})
	r.breaks(model.Ledger, "unproved", "leader 1 has no proof of its end", r.ending(1, over(ref(1, 1), engine.Exited, 0), job.Completed, job.ByEngine))
}

// The proof that an earlier leader heard died with it.
func TestFreedOnTheProofOfAnother(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	r.gone(ref(1, 1), over(ref(1, 1), engine.Exited, 0))
	r.fine(model.Closed{Epoch: 1})
	r.lead()
	r.breaks(model.Ledger, "unproved", "leader 2 has no proof", r.ending(1, over(ref(1, 1), engine.Exited, 0), job.Completed, job.ByEngine))
}

func TestAReportOfAnOlderAttempt(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	lost := over(ref(1, 1), engine.NodeLost, 1)
	r.gone(ref(1, 1), lost)
	r.fine(r.ending(1, lost, job.Pending, job.ByEngine))
	r.grant(1, ref(2, 2), on("n2"))
	r.breaks(model.Ledger, "stale", "is about attempt 1.1, and job 1 holds attempt 2.2", r.ending(1, lost, job.Pending, job.ByEngine))
}

func TestAnEndOfAnotherAttempt(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	r.gone(ref(1, 1), over(ref(1, 1), engine.Exited, 0))
	r.breaks(model.Ledger, "stale", "ended (exited, exit 0), and record 4 says otherwise (exited, exit 3)", r.ending(1, over(ref(1, 1), engine.Exited, 3), job.Failed, job.ByEngine))
}

func TestAStartThatWasNone(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("late", 1))
	r.grant(1, ref(1, 1), on("n1"))
	r.breaks(model.Ledger, "stale", "the journal says that attempt 1.1 of job 1 has started, and it has not", r.record("attempt-started", 1, map[string]any{"ref": ref(1, 1)}))
}

func TestAStopThatNobodyAskedFor(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("one", 1))
	r.grant(1, ref(1, 1), on("n1"))
	r.fine(model.Called{Epoch: 1, Verb: "stop", Ref: ref(1, 1)}) // it is not there: barred, it can be freed
	r.start(1, ref(1, 1), on("n1"))
	r.breaks(model.Ledger, "stale", "leader 1 ends attempt 1.1 of job 1, which nobody asked for", model.Called{Epoch: 1, Verb: "stop", Ref: ref(1, 1)})
	r.ask(model.Request{Verb: model.Cancel, Jobs: []job.ID{1}})
	r.write("cancel-asked", 1, nil)
	r.fine(model.Called{Epoch: 1, Verb: "stop", Ref: ref(1, 1)})
}

func TestARequeueThatNobodyAllowed(t *testing.T) {
	r := newRun(t)
	spec := task("once", 1)
	spec.Requeue = false
	r.submit(1, spec)
	r.grant(1, ref(1, 1), on("n1"))
	r.start(1, ref(1, 1), on("n1"))
	lost := over(ref(1, 1), engine.NodeLost, 1)
	r.gone(ref(1, 1), lost)
	r.breaks(model.Ledger, "twice", "neither does it allow that nor did anybody ask", r.ending(1, lost, job.Pending, job.ByEngine))
}

// What the engine had no room for may wait again without --requeue; what began may not,
// unless the engine forgot it with all it knew, so that nobody could know: the journal
// does not have its start either.
func TestNoRoomIsNoRequeue(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(r *run)
		ok     bool
	}{
		{"nothing of it began", func(*run) {}, true},
		{"it began", func(r *run) {
			r.start(1, ref(1, 1), on("n1"))
			r.fine(model.Vanished{Ref: ref(1, 1)})
		}, false},
		{"it began, and the engine forgot it", func(r *run) {
			r.start(1, ref(1, 1), on("n1"))
			r.fine(model.Vanished{Ref: ref(1, 1)}, model.Amnesia{})
		}, false},
		{"it began, which nobody heard of, and the engine forgot it", func(r *run) {
			r.opens(1, ref(1, 1), on("n1"))
			r.fine(model.Vanished{Ref: ref(1, 1)}, model.Amnesia{})
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(t)
			spec := task("once", 1)
			spec.Requeue = false
			r.submit(1, spec)
			r.grant(1, ref(1, 1), on("n1"))
			c.before(r)
			r.fine(model.Heard{Epoch: r.epoch, Ref: ref(1, 1)})
			full := r.ending(1, over(ref(1, 1), engine.Unready, 1), job.Pending, job.ByEngine)
			if c.ok {
				r.fine(full)
				return
			}
			r.breaks(model.Ledger, "twice", "neither does it allow that nor did anybody ask", full)
		})
	}
}

func TestBooksThatDoNotAddUp(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	look := func(used resource.Vector, held map[int][]job.ID) model.Sight {
		s := r.seen(runs(1, ref(1, 1)))
		s.Nodes = []model.Node{{Name: "n1", State: fleet.Up, Used: used, Held: held}}
		return s
	}
	one := resource.Vector{CPU: resource.OneCPU}
	r.fine(look(one, map[int][]job.ID{0: {1}}))
	r.breaks(model.Ledger, "books", "node n1: 0 thousandths of a CPU are shown as used, its attempts claim 1000", look(resource.Vector{}, map[int][]job.ID{0: {1}}))
	r.breaks(model.Ledger, "books", "device 0 is shown as free", look(one, nil))
	r.breaks(model.Ledger, "books", "device 1 is shown as held by job 1, no attempt claims it", look(one, map[int][]job.ID{0: {1}, 1: {1}}))
}

func TestHeldThoughProved(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	r.gone(ref(1, 1), over(ref(1, 1), engine.Exited, 0))
	r.breaks(model.Ledger, "books", "has ended, leader 1 has the proof and nothing to do, and it is still held", r.seen(runs(1, ref(1, 1))))
}

func TestHeldForEver(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	r.fine(model.Vanished{Ref: ref(1, 1)})
	r.breaks(model.Ledger, "books", "holds n1 at the end of all, and nothing of it lives", model.Settled{Sight: r.seen(runs(1, ref(1, 1)))})
}

// A word of a leader that was followed may have undone what the present one knows, until
// that one says again what is to be.
func TestWhatAFollowedLeaderSaidLastIsNotKnown(t *testing.T) {
	for _, again := range []bool{false, true} {
		r := newRun(t)
		r.write("policy-set", 0, map[string]any{"rules": account.Policy{
			QOS: []account.QOS{{Name: "high", Preempts: []string{"low"}}, {Name: "low"}}, Preemption: account.Preemption{By: []string{"qos"}, Mode: account.PreemptSuspend},
		}})
		low, high := task("one", 1), task("two", 1)
		low.QOS, high.QOS = "low", "high"
		r.submit(1, low)
		r.grant(1, ref(1, 1), on("n1"))
		r.start(1, ref(1, 1), on("n1"))
		r.submit(2, high)
		r.write("preempt-asked", 1, map[string]any{"for": 2, "mode": "suspend", "state": "RUNNING"})
		r.lead()
		r.fine(model.Called{Epoch: 1, Verb: "resume", Ref: ref(1, 1)})
		park := r.record("suspend-set", 1, map[string]any{"on": true, "parked": true})
		if !again {
			r.fine(park)
			continue
		}
		r.fine(model.Called{Epoch: 2, Verb: "suspend", Ref: ref(1, 1)})
		r.breaks(model.Ledger, "unproved", "lends what it has", park)
	}
}
