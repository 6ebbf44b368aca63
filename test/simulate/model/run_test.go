package model_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// run is a sequence of facts about a cluster of three nodes with two devices each.
type run struct {
	*testing.T
	m     *model.Model
	seq   uint64
	epoch uint64
	asked int
}

func newRun(t *testing.T) *run {
	r := &run{T: t, m: model.New()}
	for _, name := range []string{"n1", "n2", "n3"} {
		r.fine(model.Machine{Node: machine(name)})
	}
	r.lead()
	return r
}

func machine(name string) fleet.Node {
	n := fleet.Node{Name: name, State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(4), Memory: 8 * resource.GiB}}
	for i := range 2 {
		n.Devices = append(n.Devices, fleet.Device{Index: i, Kind: "gpu"})
	}
	return n
}

// fine tells facts that break nothing.
func (r *run) fine(facts ...model.Fact) {
	r.Helper()
	for _, f := range facts {
		if v := r.m.Tell(f); len(v) > 0 {
			r.Fatalf("%s: %v", f, v)
		}
	}
}

// breaks tells a fact that breaks one promise, and nothing else.
func (r *run) breaks(p model.Promise, rule, words string, f model.Fact) {
	r.Helper()
	v := r.m.Tell(f)
	if len(v) != 1 || v[0].Promise != p || v[0].Rule != rule || !strings.Contains(v[0].Text, words) {
		r.Fatalf("%s: %v, want %s, %s: …%s…", f, v, p, rule, words)
	}
}

// lead lets a new leader open.
func (r *run) lead() {
	r.Helper()
	r.epoch++
	r.fine(model.Led{Epoch: r.epoch, Who: "server"}, model.Opened{Epoch: r.epoch})
}

// record makes the next record of the journal.
func (r *run) record(kind string, id job.ID, payload map[string]any) model.Durable {
	r.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		r.Fatal(err)
	}
	r.seq++
	return model.Durable{Epoch: r.epoch, Records: []store.Record{{Seq: r.seq, Epoch: r.epoch, Kind: kind, Job: uint64(id), Data: data}}}
}

// write makes a record durable and lets its leader know.
func (r *run) write(kind string, id job.ID, payload map[string]any) {
	r.Helper()
	r.fine(r.record(kind, id, payload), model.Appended{Epoch: r.epoch, Last: r.seq})
}

// task is a specification of n tasks on n nodes, one CPU each.
func task(name string, n int) *job.Spec {
	return &job.Spec{Name: name, Requeue: true, Groups: []job.TaskGroup{{
		Nodes: job.Range{Min: n, Max: n}, Tasks: job.Count{Want: n},
		PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.OneCPU}},
	}}}
}

// ask asks for something and returns its number.
func (r *run) ask(q model.Request) int {
	r.Helper()
	r.asked++
	q.Epoch = r.epoch
	r.fine(model.Asked{N: r.asked, Request: q})
	return r.asked
}

// submission is the record of a job, or of an array of n tasks.
func (r *run) submission(id job.ID, spec *job.Spec) model.Durable {
	r.Helper()
	own := map[string]any{"name": spec.Name, "held": spec.Held}
	if spec.Array != nil {
		own["array"] = spec.Array
	}
	return r.record("submitted", id, map[string]any{"first": id, "own": own, "spec": spec})
}

// submit lets a job be accepted.
func (r *run) submit(id job.ID, spec *job.Spec) {
	r.Helper()
	n := r.ask(model.Request{Verb: model.Submit, Spec: spec})
	r.fine(r.submission(id, spec), model.Appended{Epoch: r.epoch, Last: r.seq}, model.Answered{N: n, First: id})
}

// on are claims of one CPU and one device on each node.
func on(nodes ...string) []fleet.Claim {
	var out []fleet.Claim
	for _, n := range nodes {
		out = append(out, fleet.Claim{
			Node: n, Tasks: 1, Take: resource.Vector{CPU: resource.OneCPU},
			Devices: []fleet.DeviceClaim{{Index: 0, Share: resource.WholeDevice}},
		})
	}
	return out
}

func ref(allocation uint64, attempt uint32) engine.Ref {
	return engine.Ref{Allocation: allocation, Attempt: attempt}
}

// granting is the record of an allocation.
func (r *run) granting(id job.ID, a engine.Ref, claims []fleet.Claim) model.Durable {
	r.Helper()
	return r.record("allocation-held", id, map[string]any{"allocation": map[string]any{
		"id": a.Allocation, "job": id, "attempt": a.Attempt, "epoch": r.epoch, "claims": claims,
	}})
}

func (r *run) grant(id job.ID, a engine.Ref, claims []fleet.Claim) {
	r.Helper()
	r.fine(r.granting(id, a, claims), model.Appended{Epoch: r.epoch, Last: r.seq})
}

// start lets the world begin an attempt.
func (r *run) start(id job.ID, a engine.Ref, claims []fleet.Claim) {
	r.Helper()
	r.opens(id, a, claims)
	r.write("attempt-started", id, map[string]any{"ref": a})
}

// opens lets the world start a job of which the leader has not heard that yet.
func (r *run) opens(id job.ID, a engine.Ref, claims []fleet.Claim) {
	r.Helper()
	r.fine(model.Launched{Ref: a, Job: id, Claims: claims})
	for _, c := range claims {
		r.fine(model.Began{Ref: a, Node: c.Node})
	}
	r.fine(model.Barrier{Ref: a})
}

// begin submits, grants and starts a job.
func (r *run) begin(id job.ID, a engine.Ref, nodes ...string) {
	r.Helper()
	r.submit(id, task("job"+id.String(), len(nodes)))
	r.grant(id, a, on(nodes...))
	r.start(id, a, on(nodes...))
}

// over is a report of a proved end.
func over(a engine.Ref, cause engine.Cause, status int) *engine.Report {
	return &engine.Report{Ref: a, Phase: engine.Ended, Gone: true, Cause: cause, Exit: job.ExitCode{Status: status}}
}

// gone lets the world end an attempt and the leader hear of it.
func (r *run) gone(a engine.Ref, report *engine.Report) {
	r.Helper()
	r.fine(model.Vanished{Ref: a}, model.Heard{Epoch: r.epoch, Ref: a, Report: report})
}

// ending is the record of an attempt's end.
func (r *run) ending(id job.ID, report *engine.Report, to job.State, by job.Cause) model.Durable {
	r.Helper()
	return r.record("attempt-ended", id, map[string]any{"ref": report.Ref, "state": to, "by": by, "report": report})
}

// finish lets an attempt end, and its job with it.
func (r *run) finish(id job.ID, a engine.Ref) {
	r.Helper()
	r.gone(a, over(a, engine.Exited, 0))
	r.fine(r.ending(id, over(a, engine.Exited, 0), job.Completed, job.ByEngine), model.Appended{Epoch: r.epoch, Last: r.seq})
}

// seen is what a leader shows of some jobs.
func (r *run) seen(jobs ...model.Job) model.Sight {
	return model.Sight{Epoch: r.epoch, Idle: true, Jobs: jobs}
}

func waits(id job.ID, code reason.Code) model.Job {
	return model.Job{ID: id, Why: reason.Reason{Code: code}}
}

func runs(id job.ID, a engine.Ref) model.Job {
	return model.Job{ID: id, State: job.Running, Attempt: a.Attempt, Ref: a}
}

// TestAGoodRun: a gang, an array, a job that is lost and runs again, a restart, and
// the end. Nothing is said.
func TestAGoodRun(t *testing.T) {
	r := newRun(t)
	r.begin(1, ref(1, 1), "n1", "n2")
	r.fine(r.seen(runs(1, ref(1, 1))))
	r.finish(1, ref(1, 1))
	r.fine(r.seen(model.Job{ID: 1, State: job.Completed, Attempt: 1}))

	r.begin(2, ref(2, 1), "n3")
	lost := over(ref(2, 1), engine.NodeLost, 1)
	r.gone(ref(2, 1), lost)
	r.fine(r.ending(2, lost, job.Pending, job.ByEngine), model.Appended{Epoch: 1, Last: r.seq})
	r.grant(2, ref(3, 2), on("n1"))
	r.fine(model.Closed{Epoch: 1})
	r.lead()
	r.fine(r.seen(model.Job{ID: 2, State: job.Running, Flags: job.Configuring, Attempt: 2, Ref: ref(3, 2)}))
	r.start(2, ref(3, 2), on("n1"))
	r.finish(2, ref(3, 2))

	spec := task("array", 1)
	spec.Array = &job.ArraySpec{Indices: []uint32{0, 1}, MaxRunning: 1}
	r.submit(3, spec)
	r.grant(3, ref(4, 1), on("n1"))
	r.start(3, ref(4, 1), on("n1"))
	a := waits(4, reason.ArrayLimit)
	a.Array, a.Limit = 3, 1
	r.fine(r.seen(runs(3, ref(4, 1)), a))
	r.finish(3, ref(4, 1))
	r.grant(4, ref(5, 1), on("n2"))
	r.start(4, ref(5, 1), on("n2"))
	r.finish(4, ref(5, 1))
	r.fine(model.Now{At: time.Unix(1, 0)}, model.Settled{Sight: r.seen()})
}
