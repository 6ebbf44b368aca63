package model_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// Promise 4: the same state and the same events give the same.

func TestARestartThatKnowsOtherwise(t *testing.T) {
	running := runs(1, ref(1, 1))
	for words, change := range map[string]func(*model.Job){
		"shows job 1 as PENDING, the journal says RUNNING":             func(j *model.Job) { *j = waits(1, reason.Resources) },
		"at attempt 2, the journal says 1":                             func(j *model.Job) { j.Attempt = 2 },
		"holds attempt 2.1, the journal says 1.1":                      func(j *model.Job) { j.Ref = ref(2, 1) },
		"shows job 1 as not started, the journal says nothing special": func(j *model.Job) { j.Flags = job.Configuring },
		"shows that job 1 holds n2, the journal says n1":               func(j *model.Job) { j.Claims = on("n2") },
	} {
		r := newRun(t)
		r.begin(1, ref(1, 1), "n1")
		r.fine(model.Closed{Epoch: 1})
		r.lead()
		j := running
		change(&j)
		r.breaks(model.Replay, "restart", words, r.seen(j))
	}
}

func TestALimitThatARestartForgets(t *testing.T) {
	r := newRun(t)
	spec := task("array", 1)
	spec.Array = &job.ArraySpec{Indices: []uint32{0}, MaxRunning: 1}
	r.submit(1, spec)
	r.ask(model.Request{Verb: model.SetLimit, Jobs: []job.ID{1}, Limit: 5})
	r.write("job-updated", 1, map[string]any{"own": map[string]any{}, "spec": spec, "max_running": 5})
	r.fine(model.Closed{Epoch: 1})
	r.lead()
	j := waits(1, reason.Resources)
	j.Array, j.Limit = 1, 1
	r.breaks(model.Replay, "restart", "1 tasks of array 1 may run at once, the journal says 5", r.seen(j))
}

// A leader that lives knows what it was told is durable, and nothing else.
func TestALeaderThatKnowsMoreThanTheJournal(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("one", 1))
	r.fine(r.seen(waits(1, reason.Resources)))
	r.breaks(model.Replay, "journal", "shows job 1 as RUNNING, the journal says PENDING", r.seen(runs(1, ref(1, 1))))
}

// What is durable and not yet answered is not shown.
func TestAWriteOnItsWay(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("one", 1))
	r.fine(r.granting(1, ref(1, 1), on("n1")), r.seen(waits(1, reason.Resources)))
	s := r.seen(model.Job{ID: 1, State: job.Running, Flags: job.Configuring, Attempt: 1, Ref: ref(1, 1)})
	s.Nodes = []model.Node{{Name: "n1", State: fleet.Up, Used: on("n1")[0].Take, Held: map[int][]job.ID{0: {1}}}}
	r.fine(model.Appended{Epoch: 1, Last: 2}, s)
}

func TestTwiceIsNotTheSame(t *testing.T) {
	r := newRun(t)
	r.fine(model.Twice{What: "seed 4", A: []string{"a", "b"}, B: []string{"a", "b"}})
	r.breaks(model.Replay, "decisions", `seed 4: the same was given twice, and line 2 differs: first "b", then "c"`, model.Twice{What: "seed 4", A: []string{"a", "b"}, B: []string{"a", "c"}})
	r.breaks(model.Replay, "decisions", `then "(only 1 lines)"`, model.Twice{What: "seed 4", A: []string{"a", "b"}, B: []string{"a"}})
}
