package model_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// Promise 3: one leader writes, and a node that is drained or down gets no new work.

func TestALeaderWritesThatWasFollowed(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("one", 1))
	r.lead()
	d := r.submission(2, task("two", 1))
	d.Epoch = 1
	r.breaks(model.Owner, "fenced", "leader 1 wrote record 2 (submitted of job 2) after leader 2 had taken the lead", d)
}

func TestAnEpochIsGivenTwice(t *testing.T) {
	r := newRun(t)
	r.breaks(model.Owner, "fenced", "epoch 1 was given before", model.Led{Epoch: 1, Who: "other"})
}

func TestALeaderEndsTheWorkOfAnother(t *testing.T) {
	r := newRun(t)
	r.lead()
	r.begin(1, ref(1, 1), "n1")
	r.breaks(model.Owner, "fenced", "leader 1, which leader 2 has followed, ends attempt 1.1 of job 1", model.Called{Epoch: 1, Verb: "stop", Ref: ref(1, 1)})
}

func TestADrainedNodeGetsWork(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("one", 1))
	n := r.ask(model.Request{Verb: model.Drain, Nodes: []string{"n1"}})
	r.write("nodes-set", 0, map[string]any{"nodes": []string{"n1"}, "drain": true})
	r.fine(model.Answered{N: n})
	r.breaks(model.Owner, "drained", "attempt 1.1 of job 1 gets node n1, which record 2 drained", r.granting(1, ref(1, 1), on("n1")))
}

func TestANodeThatIsNoLongerDrained(t *testing.T) {
	r := newRun(t)
	r.submit(1, task("one", 1))
	r.write("nodes-set", 0, map[string]any{"nodes": []string{"n1"}, "drain": true})
	r.write("nodes-set", 0, map[string]any{"nodes": []string{"n1"}})
	r.grant(1, ref(1, 1), on("n1"))
}

// A node that was down when its leader decided and is still down when it looks again
// gets no work; one that came up in between may.
func TestADownNodeGetsWork(t *testing.T) {
	for _, after := range []fleet.NodeState{fleet.Down, fleet.Up} {
		r := newRun(t)
		r.submit(1, task("one", 1))
		look := func(state fleet.NodeState, j model.Job) model.Sight {
			s := r.seen(j)
			s.Idle = false
			s.Nodes = []model.Node{{Name: "n1", State: state}}
			return s
		}
		r.fine(look(fleet.Down, waits(1, "node-down")))
		d := r.granting(1, ref(1, 1), on("n1"))
		asked := store.Record{Kind: "allocation-held", Job: 1, Data: d.Records[0].Data}
		r.fine(model.Appending{Epoch: 1, Records: []store.Record{asked}}, d)
		s := look(after, model.Job{ID: 1, State: job.Running, Attempt: 1, Ref: ref(1, 1)})
		if after == fleet.Up {
			r.fine(s)
		} else {
			r.breaks(model.Owner, "drained", "job 1 gets node n1 as attempt 1.1, and leader 1 knows that the node is down", s)
		}
	}
}
