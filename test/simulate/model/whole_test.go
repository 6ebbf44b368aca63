package model_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// Promise 1: whole or not at all.

func TestAGrantOfPartOfAGang(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("gang", 3))
	r.breaks(model.Whole, "gang", "job 1 is to start as attempt 1.1 with 2 of 3 tasks", r.granting(1, ref(1, 1), on("n1", "n2")))
}

func TestAGrantOnFewerNodes(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("gang", 2))
	claims := on("n1")
	claims[0].Tasks = 2
	r.breaks(model.Whole, "gang", "with 1 of 2 nodes", r.granting(1, ref(1, 1), claims))
}

func TestALaunchOfPartOfAGang(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("gang", 2))
	r.grant(1, ref(1, 1), on("n1", "n2"))
	r.breaks(model.Whole, "gang", "attempt 1.1 of job 1 is launched with 1 of 2 tasks", model.Launched{Ref: ref(1, 1), Job: 1, Claims: on("n1")})
}

func TestABarrierThatOpensForSome(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("gang", 2))
	r.grant(1, ref(1, 1), on("n1", "n2"))
	r.fine(model.Launched{Ref: ref(1, 1), Job: 1, Claims: on("n1", "n2")}, model.Began{Ref: ref(1, 1), Node: "n1"})
	r.breaks(model.Whole, "gang", "runs on n1 and not on n2", model.Barrier{Ref: ref(1, 1)})
}

func TestTheRestBeginsAfterAFailure(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("gang", 2))
	r.grant(1, ref(1, 1), on("n1", "n2"))
	r.fine(model.Launched{Ref: ref(1, 1), Job: 1, Claims: on("n1", "n2")}, model.Failed{Ref: ref(1, 1), Node: "n2"})
	r.breaks(model.Whole, "undone", "begins on n1 after its launch had failed", model.Began{Ref: ref(1, 1), Node: "n1"})
}

func TestAFailedLaunchIsNotUndone(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("gang", 2))
	r.grant(1, ref(1, 1), on("n1", "n2"))
	r.fine(
		model.Launched{Ref: ref(1, 1), Job: 1, Claims: on("n1", "n2")},
		model.Failed{Ref: ref(1, 1), Node: "n2"}, model.Vanished{Ref: ref(1, 1), Node: "n2"},
	)
	r.breaks(model.Whole, "undone", "what was set up of it is still there on n1",
		r.ending(1, over(ref(1, 1), engine.LaunchFailed, 1), job.Pending, job.ByEngine))
}

func TestALaunchIsGivenUpThatWasTaken(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("gang", 2))
	r.grant(1, ref(1, 1), on("n1", "n2"))
	r.fine(model.Launched{Ref: ref(1, 1), Job: 1, Claims: on("n1", "n2")})
	r.breaks(model.Whole, "undone", "given up before it began", r.ending(1, over(ref(1, 1), engine.LaunchFailed, 1), job.Pending, job.ByEngine))
}

func TestAFailedLaunchLeavesAPartForEver(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("gang", 2))
	r.grant(1, ref(1, 1), on("n1", "n2"))
	r.fine(
		model.Launched{Ref: ref(1, 1), Job: 1, Claims: on("n1", "n2")}, model.Failed{Ref: ref(1, 1), Node: "n2"},
	)
	sight := r.seen(model.Job{ID: 1, State: job.Running, Flags: job.Configuring, Attempt: 1, Ref: ref(1, 1)})
	r.breaks(model.Whole, "undone", "still there on n1, n2", model.Settled{Sight: sight})
}
