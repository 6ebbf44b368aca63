package model_test

import (
	"errors"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// Promise 5: nothing is lost, and every wait has its reason.

func TestAWaitWithoutAReason(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("one", 1))
	r.breaks(model.Account, "reason", "job 1 waits and nobody says why", r.seen(waits(1, reason.None)))
}

func TestAReasonThatIsNotSo(t *testing.T) {
	for code, words := range map[reason.Code]string{
		reason.HeldUser:   "and it is not held",
		reason.ArrayLimit: "there is no such limit",
	} {
		r := newRun(t)
		r.submit(1, task("one", 1))
		r.breaks(model.Account, "reason", words, r.seen(waits(1, code)))
	}
	r := newRun(t)
	spec := task("held", 1)
	spec.Held = true
	r.submit(1, spec)
	j := waits(1, reason.Resources)
	j.Flags = job.Held
	r.breaks(model.Account, "reason", "job 1 is held, and it is said to wait because", r.seen(j))
}

func TestAHeldJobStarts(t *testing.T) {
	r := newRun(t)
	spec := task("held", 1)
	spec.Held = true
	r.submit(1, spec)
	r.breaks(model.Account, "quota", "job 1 is held and is granted attempt 1.1", r.granting(1, ref(1, 1), on("n1")))
}

func TestAnArrayRunsMoreThanItMay(t *testing.T) {
	r := newRun(t)
	spec := task("array", 1)
	spec.Array = &job.ArraySpec{Indices: []uint32{0, 1}, MaxRunning: 1}
	r.submit(1, spec)
	r.grant(1, ref(1, 1), on("n1"))
	r.breaks(model.Account, "quota", "job 2 is task of array 1, of which 1 may run at once: it is number 2", r.granting(2, ref(2, 1), on("n2")))
}

func TestANumberBeforeItIsDurable(t *testing.T) {
	r := newRun(t)
	n := r.ask(model.Request{Verb: model.Submit, Spec: task("one", 1)})
	r.breaks(model.Account, "durable", "request 1 was answered with job 1, and the journal does not have it", model.Answered{N: n, First: 1})
}

func TestTheNumberOfAnother(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("one", 1))
	n := r.ask(model.Request{Verb: model.Submit, Spec: task("two", 1)})
	r.breaks(model.Account, "durable", `request 2 ("two") was answered with job 1, which is "one"`, model.Answered{N: n, First: 1})
}

func TestASubmissionIsAcceptedTwice(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("one", 1))
	r.breaks(model.Account, "durable", `"one" was asked for once and accepted twice, as job 1 and as job 2`, r.submission(2, task("one", 1)))
}

func TestARefusedSubmissionIsThere(t *testing.T) {
	r := newRun(t)
	n := r.ask(model.Request{Verb: model.Submit, Spec: task("one", 1)})
	r.fine(r.submission(1, task("one", 1)))
	r.breaks(model.Account, "durable", `request 1 ("one") was refused (the disk is full), and the journal has it as job 1`, model.Answered{N: n, Err: fault.New(fault.Exhausted, "the disk is full")})
}

// Without a certain answer either may be.
func TestNoAnswerIsNone(t *testing.T) {
	r := newRun(t)
	for _, err := range []error{fault.New(fault.Unavailable, "no answer"), errors.New("the disk is broken")} {
		n := r.ask(model.Request{Verb: model.Submit, Spec: task(err.Error(), 1)})
		r.fine(r.submission(job.ID(n), task(err.Error(), 1)), model.Answered{N: n, Err: err})
		n = r.ask(model.Request{Verb: model.Cancel, Jobs: []job.ID{1}})
		r.fine(model.Answered{N: n, Err: err})
	}
	r.write("cancel-asked", 1, nil) // it was only late
}

func TestAnAnswerIsForgotten(t *testing.T) {
	for _, verb := range []model.Verb{model.Cancel, model.Hold, model.Release, model.Suspend, model.SetLimit} {
		r := newRun(t)
		r.begin(1, ref(1, 1), "n1")
		n := r.ask(model.Request{Verb: verb, Jobs: []job.ID{1}})
		r.breaks(model.Account, "durable", "was answered, and the journal knows nothing of it (the job is RUNNING)", model.Answered{N: n})
	}
	r := newRun(t)
	n := r.ask(model.Request{Verb: model.Drain, Nodes: []string{"n1"}})
	r.breaks(model.Account, "durable", "request 1 to drain node n1 was answered", model.Answered{N: n})
}

func TestAnAnswerThatNeedsNoRecord(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	r.finish(1, ref(1, 1))
	n := r.ask(model.Request{Verb: model.Cancel, Jobs: []job.ID{1, 9}})
	r.fine(model.Answered{N: n, Errs: []error{nil, fault.New(fault.NotFound, "there is no job 9")}})
	r.submit(2, task("waits", 1))
	n = r.ask(model.Request{Verb: model.Requeue, Jobs: []job.ID{2}})
	r.fine(model.Answered{N: n})
}

func TestAnAcceptedJobIsForgotten(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("one", 1))
	r.fine(model.Closed{Epoch: 1})
	r.lead()
	r.breaks(model.Account, "durable", "job 1 is PENDING in the journal, and leader 2 does not know it", r.seen())
}

func TestAJobOutOfNowhere(t *testing.T) {
	r := newRun(t)
	r.breaks(model.Account, "durable", "leader 1 shows job 1, which the journal does not have", r.seen(waits(1, reason.Resources)))
}

func TestARecordIsMissing(t *testing.T) {
	r := newRun(t)
	r.seq++
	r.breaks(model.Account, "durable", "the journal goes from record 0 to record 2", r.submission(1, task("one", 1)))
}

func TestATransitionThatIsNone(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	r.gone(ref(1, 1), over(ref(1, 1), engine.Exited, 0))
	r.breaks(model.Account, "transition", "job 1 goes from RUNNING to COMPLETED by user", r.ending(1, over(ref(1, 1), engine.Exited, 0), job.Completed, job.ByUser))
}

func TestAnEndThatNobodyAskedFor(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	stopped := over(ref(1, 1), engine.Stopped, 1)
	r.gone(ref(1, 1), stopped)
	r.breaks(model.Account, "final", "job 1 ends as CANCELLED, and nobody asked for that", r.ending(1, stopped, job.Cancelled, job.ByUser))
}

func TestASuccessThatWasNone(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1")
	failed := over(ref(1, 1), engine.Exited, 3)
	r.gone(ref(1, 1), failed)
	r.breaks(model.Account, "final", "ends as COMPLETED though its attempt 1.1 ended otherwise (exited, exit 3)", r.ending(1, failed, job.Completed, job.ByEngine))
}

func TestACancelThatNobodyAskedFor(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("one", 1))
	r.breaks(model.Account, "final", "job 1 is cancelled (record 2), and nobody asked for that", r.record("cancel-asked", 1, nil))
}

func TestAWaitThatNeverEnds(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("one", 1))
	r.breaks(model.Account, "final", "job 1 waits at the end of all because", model.Settled{Sight: r.seen(waits(1, reason.Resources))})
	r = newRun(t)
	spec := task("held", 1)
	spec.Held = true
	r.submit(1, spec)
	j := waits(1, reason.HeldUser)
	j.Flags = job.Held
	r.fine(model.Settled{Sight: r.seen(j)})
}

// A job of two groups that cannot share a node waits for ever where there are too few; where
// they can share one it does not.
func TestTooFewNodes(t *testing.T) {
	for _, c := range []struct {
		cpus int
		ok   bool
	}{{1, false}, {3, true}} {
		r := newRun(t)
		spec := task("two", 3)
		spec.Groups = append(spec.Groups, spec.Groups[0])
		spec.Groups[1].Nodes, spec.Groups[1].Tasks.Want = job.Range{}, 1
		for i := range spec.Groups {
			spec.Groups[i].PerTask.CPU = resource.CPUs(c.cpus)
		}
		r.submit(1, spec)
		end := model.Settled{Sight: r.seen(waits(1, reason.NodeCount))}
		if c.ok {
			r.fine(end)
			continue
		}
		r.breaks(model.Account, "final", "job 1 waits at the end of all because", end)
	}
}
