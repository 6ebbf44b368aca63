package sched_test

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/schedtest"
)

// TestLikeSlurm lets the core decide as slurmctld would. What it starts is whole, as
// the specification says, and never more than there is; what waits has a reason; the
// core's invariants hold; the same events decide alike. That it is like Slurm is
// compared in test/slurm/compat.
func TestLikeSlurm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := &account.Policy{
			Compat:     rapid.SampledFrom([]string{"slurm", "slurm-backfill"}).Draw(t, "compat"),
			Partitions: []account.Partition{{Name: "a", Tier: 2}, {Name: "b", Tier: 1}},
		}
		events := []sched.Event{sched.PolicySet{Policy: policy}}
		book := schedtest.NewBook()
		book.ByNode = true
		for _, n := range schedtest.Nodes(t) {
			book.Nodes[n.Name] = n
			events = append(events, sched.NodeSet{Node: n})
		}
		core, again := sched.New(sched.Config{}), sched.New(sched.Config{})
		waiting := map[job.ID]sched.Submitted{}
		now, next := sched.Instant(time.Hour), job.ID(0)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if id, ok := some(t, book.Held, "ends"); ok && rapid.Bool().Draw(t, "a job ends") {
				delete(book.Held, id)
				events = append(events, sched.Released{Job: id})
			}
			for range rapid.IntRange(0, 3).Draw(t, "jobs") {
				next++
				s := sched.Submitted{Job: next, Spec: schedtest.Spec(t), At: now, Priority: int64(rapid.IntRange(0, 3).Draw(t, "priority"))}
				waiting[next] = s
				events = append(events, s)
			}
			out := core.Step(now, events...)
			if other := again.Step(now, events...); !bytes.Equal(encode(out), encode(other)) {
				t.Fatalf("the same events decide\n%s\nand\n%s", encode(out), encode(other))
			}
			for _, d := range out {
				if d, ok := d.(sched.Start); ok {
					if err := book.Start(d, waiting[d.Job].Spec); err != nil {
						t.Fatal(err)
					}
					delete(waiting, d.Job)
				}
			}
			if err := core.Check(); err != nil {
				t.Fatal(err)
			}
			for id := range waiting {
				if why := core.Reasons(now, id); len(why) == 0 || why[0].Code == reason.None {
					t.Fatalf("job %d waits without a reason", id)
				}
			}
			events, now = nil, now+sched.Instant(time.Second)
		}
	})
}

// TestLikeSlurmPlansForTheHead has a job of lower priority kept off the nodes that
// the head is planned on, and let on them if it ends before.
func TestLikeSlurmPlansForTheHead(t *testing.T) {
	core := sched.New(sched.Config{})
	events := []sched.Event{sched.PolicySet{Policy: &account.Policy{Compat: "slurm"}}}
	for _, name := range []string{"n1", "n2"} {
		events = append(events, sched.NodeSet{Node: fleet.Node{Name: name, State: fleet.Up, Capacity: gpuNode(0).Capacity, Devices: gpuNode(0).Devices}})
	}
	core.Step(0, append(events, sched.Submitted{Job: 1, Spec: gang(1, 1, 8, time.Hour)})...)
	out := core.Step(
		1,
		sched.Submitted{Job: 2, Spec: gang(2, 1, 8, time.Hour), Priority: 3},
		sched.Submitted{Job: 3, Spec: gang(1, 1, 8, 2*time.Hour), Priority: 2},
		sched.Submitted{Job: 4, Spec: gang(1, 1, 8, 30*time.Minute), Priority: 1},
	)
	for _, d := range out {
		if d, ok := d.(sched.Start); ok && d.Job != 4 {
			t.Errorf("job %d starts, which would delay job 2", d.Job)
		}
	}
	if core.Reasons(1, 4) != nil {
		t.Error("job 4 ends before job 2 is to start, and waits")
	}
}
