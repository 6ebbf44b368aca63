package decide_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/service/handover/decide"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// input is a hand-over of machine m from pool a to pool b, of which a step is done.
func input(step fleet.HandoverStep) *decide.Input {
	o := fleet.MachineOwner{Machine: "m", Pool: "a", Next: "b", Step: step, Epoch: 7, Deadline: now.Add(time.Hour), At: now.Add(-time.Second)}
	if step == fleet.StepAdmit || step == fleet.StepCheck {
		o.Pool, o.Last = "b", "a"
	}
	in := &decide.Input{Now: now, Owner: o, Sides: []decide.Side{
		{Pool: "a", Fences: true, Nodes: []decide.Node{{Name: "a1", State: fleet.Up}}},
		{Pool: "b", Fences: true, Nodes: []decide.Node{{Name: "b1", State: fleet.Draining}}},
	}}
	if step == fleet.StepAdmit || step == fleet.StepCheck {
		looked(in, 0, engine.NodeContents{Fence: fence(7)})
	}
	return in
}

// looked gives the node of a pool the answer of an engine.
func looked(in *decide.Input, pool int, c engine.NodeContents) {
	c.At = now.Add(-time.Second)
	n := &in.Sides[pool].Nodes[0]
	n.Contents, n.Asked = &c, now.Add(-time.Second)
}

// isUp has the new pool's node opened, up, and checked.
func isUp(in *decide.Input) {
	n := &in.Sides[1].Nodes[0]
	n.Mark, n.Listed = decide.Mark{Epoch: 7, At: now}, &decide.Listed{State: fleet.Up, At: now}
	n.Checked = &decide.Checked{At: now, Text: "4 of 4 checks passed"}
}

func fence(epoch uint64) *engine.NodeFence { return &engine.NodeFence{Epoch: epoch} }

// TestSteps: what follows from each step. A call is "verb pool/node epoch", a record "step pool", "back",
// or "ended pool" where no hand-over is under way any more.
//
// Seen to fail without: the proof of other pools before the check and the end, the marks kept of those that do not own a machine
// that moves; a side that has the machine no more waited for on the way back, or not asked for at the admission;
// the check of a node that is up, of the second one too.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		name  string
		step  fleet.HandoverStep
		with  func(in *decide.Input)
		want  string // the call or record; empty: it waits
		waits string // a part of what it waits for
	}{
		{name: "nothing of ours is there", step: fleet.StepAsked, want: "drain a"},
		{
			name: "a job runs", step: fleet.StepAsked, waits: "job 12 (until 14:02 UTC) on a1",
			with: func(in *decide.Input) {
				in.Work = []decide.Work{{Job: 12, Name: "12", Pool: "a", Node: "a1", Until: now.Add(2*time.Hour + 2*time.Minute), Requeues: true}}
			},
		},
		{
			name: "a job without a limit runs", step: fleet.StepAsked, waits: "job 12 (no time limit) on a1",
			with: func(in *decide.Input) { in.Work = []decide.Work{{Job: 12, Name: "12", Pool: "a", Node: "a1"}} },
		},
		{
			name: "a job that may not be requeued", step: fleet.StepAsked, waits: "job 12, which may not be requeued, (until 13:00 UTC) on a1",
			with: func(in *decide.Input) {
				in.Owner.Requeue = true
				in.Work = []decide.Work{{Job: 12, Name: "12", Pool: "a", Node: "a1", Until: now.Add(time.Hour)}}
			},
		},
		{
			name: "a replica runs", step: fleet.StepAsked, waits: "the replica of service ml/web (job 9), until another is ready elsewhere, on a1",
			with: func(in *decide.Input) {
				in.Work = []decide.Work{{Job: 9, Name: "9", Pool: "a", Node: "a1", Service: "ml/web"}}
			},
		},
		{
			name: "four jobs run", step: fleet.StepAsked, waits: " and 1 more",
			with: func(in *decide.Input) {
				in.Work = []decide.Work{{Job: 1, Name: "1"}, {Job: 2, Name: "2"}, {Job: 3, Name: "3"}, {Job: 4, Name: "4"}}
			},
		},
		{
			name: "the pool places by itself", step: fleet.StepAsked, want: "drain a",
			with: func(in *decide.Input) {
				in.Sides[0].Delegated = true
				in.Work = []decide.Work{{Job: 12, Name: "12", Pool: "a", Node: "a1"}}
			},
		},
		{
			name: "the new pool has no such node", step: fleet.StepAsked, waits: "pool b to report a node on machine m",
			with: func(in *decide.Input) { in.Sides = in.Sides[:1] },
		},
		{
			name: "the old engine cannot fence", step: fleet.StepAsked, waits: "this one cannot",
			with: func(in *decide.Input) { in.Sides[0].Fences = false },
		},
		{
			name: "the deadline passes", step: fleet.StepAsked, want: "back",
			with: func(in *decide.Input) { in.Owner.Deadline = now },
		},
		{name: "drained", step: fleet.StepDrain, want: "fence a/a1 7"},
		{
			name: "the fence failed a moment ago", step: fleet.StepDrain, waits: "the engine of pool a to fence node a1: no answer",
			with: func(in *decide.Input) {
				in.Sides[0].Nodes[0].Trouble, in.Sides[0].Nodes[0].Tried = "no answer", now.Add(-time.Second)
			},
		},
		{
			name: "the fence is set", step: fleet.StepDrain, want: "fence a",
			with: func(in *decide.Input) {
				in.Sides[0].Nodes[0].Mark = decide.Mark{Epoch: 7, Fenced: true, At: now}
			},
		},
		{
			name: "an earlier fence is set", step: fleet.StepDrain, want: "fence a/a1 7",
			with: func(in *decide.Input) {
				in.Sides[0].Nodes[0].Mark = decide.Mark{Epoch: 6, Fenced: true, At: now}
			},
		},
		{
			name: "one of two nodes is fenced", step: fleet.StepDrain, want: "fence a/a2 7",
			with: func(in *decide.Input) {
				in.Sides[0].Nodes[0].Mark = decide.Mark{Epoch: 7, Fenced: true, At: now}
				in.Sides[0].Nodes = append(in.Sides[0].Nodes, decide.Node{Name: "a2"})
			},
		},
		{name: "fenced", step: fleet.StepFence, want: "empty a/a1 0"},
		{
			name: "a pod is left", step: fleet.StepFence, waits: "pod web-0 of bob on a1",
			with: func(in *decide.Input) {
				looked(in, 0, engine.NodeContents{Fence: fence(7), Work: []engine.NodeWork{{Kind: "pod", Name: "web-0", Owner: "bob"}}})
			},
		},
		{
			name: "its agent is away", step: fleet.StepFence, waits: "which is not taken for empty: the kubelet has not answered for 50 s",
			with: func(in *decide.Input) {
				looked(in, 0, engine.NodeContents{Fence: fence(7), Unknown: []string{"the kubelet has not answered for 50 s"}})
			},
		},
		{
			name: "somebody removed the fence", step: fleet.StepFence, want: "fence a/a1 7",
			with: func(in *decide.Input) { looked(in, 0, engine.NodeContents{}) },
		},
		{
			name: "another server's fence", step: fleet.StepFence, waits: "a fence of epoch 9 is there, and this one is 7",
			with: func(in *decide.Input) { looked(in, 0, engine.NodeContents{Fence: fence(9)}) },
		},
		{
			name: "empty", step: fleet.StepFence, want: "prove a",
			with: func(in *decide.Input) { looked(in, 0, engine.NodeContents{Fence: fence(7)}) },
		},
		{
			name: "empty, and the ledger has a job", step: fleet.StepFence, waits: "job 12",
			with: func(in *decide.Input) {
				looked(in, 0, engine.NodeContents{Fence: fence(7)})
				in.Work = []decide.Work{{Job: 12, Name: "12", Pool: "a", Node: "a1"}}
			},
		},
		{
			name: "one of two nodes is proved empty", step: fleet.StepFence, want: "empty a/a2 0",
			with: func(in *decide.Input) {
				looked(in, 0, engine.NodeContents{Fence: fence(7)})
				in.Owner.Nodes = "a[1-2]"
				in.Sides[0].Nodes = append(in.Sides[0].Nodes, decide.Node{Name: "a2", Mark: decide.Mark{Epoch: 7, Fenced: true, At: now}})
			},
		},
		{
			name: "one of two nodes is reported no more", step: fleet.StepFence, waits: "pool a to report node a2 on machine m, which was there when the hand-over began",
			with: func(in *decide.Input) {
				looked(in, 0, engine.NodeContents{Fence: fence(7)})
				in.Owner.Nodes = "a[1-2]"
			},
		},
		{
			name: "one of two nodes is reported no more, and the machine is admitted", step: fleet.StepProve, waits: "pool a to report node a2 on machine m",
			with: func(in *decide.Input) {
				looked(in, 0, engine.NodeContents{Fence: fence(7)})
				in.Owner.Nodes = "a[1-2]"
			},
		},
		{name: "proved, by an earlier process", step: fleet.StepProve, want: "empty a/a1 0"},
		{
			name: "proved", step: fleet.StepProve, want: "admit b",
			with: func(in *decide.Input) { looked(in, 0, engine.NodeContents{Fence: fence(7)}) },
		},
		{
			name: "proved long ago", step: fleet.StepProve, want: "empty a/a1 0",
			with: func(in *decide.Input) {
				looked(in, 0, engine.NodeContents{Fence: fence(7)})
				in.Sides[0].Nodes[0].Asked = now.Add(-time.Minute)
			},
		},
		{
			name: "proved, and the deadline passes", step: fleet.StepProve, want: "back",
			with: func(in *decide.Input) { in.Now = now.Add(2 * time.Hour) },
		},
		{name: "admitted", step: fleet.StepAdmit, want: "unfence b/b1 7"},
		{
			name: "admitted, and the deadline has passed", step: fleet.StepAdmit, want: "unfence b/b1 7",
			with: func(in *decide.Input) { in.Owner.Deadline = now.Add(-time.Second) },
		},
		{
			name: "admitted, and the new engine cannot fence", step: fleet.StepAdmit, want: "list b/ 0",
			with: func(in *decide.Input) { in.Sides[1].Fences = false },
		},
		{
			name: "opened", step: fleet.StepAdmit, want: "list b/ 0",
			with: func(in *decide.Input) { in.Sides[1].Nodes[0].Mark = decide.Mark{Epoch: 7, At: now} },
		},
		{
			name: "an administrator has drained it", step: fleet.StepAdmit, waits: "node b1 of pool b to be up; it is draining (new fan)",
			with: func(in *decide.Input) {
				n := &in.Sides[1].Nodes[0]
				n.Mark, n.Listed = decide.Mark{Epoch: 7, At: now}, &decide.Listed{State: fleet.Draining, Why: "new fan", At: now}
			},
		},
		{name: "up and checked", step: fleet.StepAdmit, want: "check b", with: isUp},
		{
			name: "up", step: fleet.StepAdmit, want: "check b/b1 0",
			with: func(in *decide.Input) { isUp(in); in.Sides[1].Nodes[0].Checked = nil },
		},
		{
			name: "up, and checked long ago", step: fleet.StepAdmit, want: "check b/b1 0",
			with: func(in *decide.Input) { isUp(in); in.Sides[1].Nodes[0].Checked.At = now.Add(-10 * time.Minute) },
		},
		{
			name: "up, and a check has just failed", step: fleet.StepAdmit, waits: "node b1 of pool b to pass its checks: check disk failed: full",
			with: func(in *decide.Input) { isUp(in); in.Sides[1].Nodes[0].Checked.Bad = "check disk failed: full" },
		},
		{
			name: "up, and a check failed before", step: fleet.StepAdmit, want: "check b/b1 0", waits: "node b1 of pool b to pass its checks: check disk failed: full",
			with: func(in *decide.Input) {
				isUp(in)
				in.Sides[1].Nodes[0].Checked = &decide.Checked{At: now.Add(-10 * time.Second), Bad: "check disk failed: full"}
			},
		},
		{
			name: "up, and nobody could look", step: fleet.StepAdmit, waits: "the engine of pool b to check node b1: no answer",
			with: func(in *decide.Input) {
				isUp(in)
				n := &in.Sides[1].Nodes[0]
				n.Checked, n.Trouble, n.Tried = nil, "no answer", now.Add(-time.Second)
			},
		},
		{
			name: "one of two new nodes is not checked", step: fleet.StepAdmit, want: "check b/b2 0",
			with: func(in *decide.Input) {
				isUp(in)
				b := in.Sides[1].Nodes[0]
				b.Name, b.Checked = "b2", nil
				in.Sides[1].Nodes = append(in.Sides[1].Nodes, b)
			},
		},
		{
			name: "up, and a check keeps work off it", step: fleet.StepAdmit, waits: "node b1 of pool b to be fit for work: check disk failed: full",
			with: func(in *decide.Input) { isUp(in); in.Sides[1].Nodes[0].Unfit = "check disk failed: full" },
		},
		{
			name: "admitted, by an earlier process", step: fleet.StepAdmit, want: "empty a/a1 0",
			with: func(in *decide.Input) { in.Sides[0].Nodes[0].Contents = nil },
		},
		{
			name: "admitted, by an earlier process, and the old pool has told nothing", step: fleet.StepAdmit, waits: "pool a to report which nodes it has",
			with: func(in *decide.Input) { in.Sides, in.Unheard = in.Sides[1:], []string{"a"} },
		},
		{
			name: "admitted, and the old pool has the machine no more", step: fleet.StepAdmit, want: "unfence b/b1 7",
			with: func(in *decide.Input) { in.Sides = in.Sides[1:] },
		},
		{
			name: "admitted, and the new pool has the machine no more", step: fleet.StepAdmit, waits: "pool b to report a node on machine m",
			with: func(in *decide.Input) { in.Sides = in.Sides[:1] },
		},
		{
			name: "admitted, and the new pool has not had the machine for long", step: fleet.StepAdmit, waits: "since 2026-03-01 11:30 UTC: start its agent there, or give the machine back: cox node move m --to a --force",
			with: func(in *decide.Input) { in.Sides, in.Since = in.Sides[:1], now.Add(-30*time.Minute) },
		},
		{
			name: "admitted, and the new pool has told nothing for long", step: fleet.StepAdmit, waits: "pool b to report a node on machine m",
			with: func(in *decide.Input) {
				in.Sides, in.Since, in.Unheard = in.Sides[:1], now.Add(-30*time.Minute), []string{"b"}
			},
		},
		{
			name: "up, and nobody has looked at the old pool for long", step: fleet.StepAdmit, want: "empty a/a1 0",
			with: func(in *decide.Input) { isUp(in); in.Sides[0].Nodes[0].Asked = now.Add(-time.Minute) },
		},
		{
			name: "up, and somebody removed the old pool's fence", step: fleet.StepAdmit, want: "fence a/a1 7",
			with: func(in *decide.Input) { isUp(in); looked(in, 0, engine.NodeContents{}) },
		},
		{
			name: "up, and something has begun in the old pool", step: fleet.StepAdmit, waits: "pod web-0 on a1",
			with: func(in *decide.Input) {
				isUp(in)
				looked(in, 0, engine.NodeContents{Fence: fence(7), Work: []engine.NodeWork{{Kind: "pod", Name: "web-0"}}})
			},
		},
		{
			name: "up, and a third pool was not looked at", step: fleet.StepAdmit, want: "empty c/c1 0",
			with: func(in *decide.Input) {
				isUp(in)
				in.Sides = append(in.Sides, decide.Side{Pool: "c", Fences: true, Nodes: []decide.Node{{Name: "c1", State: fleet.Up}}})
			},
		},
		{
			name: "opened, and fenced by a call that came late", step: fleet.StepAdmit, want: "unfence b/b1 7",
			with: func(in *decide.Input) {
				isUp(in)
				n := &in.Sides[1].Nodes[0]
				n.Fence, n.Mark.At, n.Tried, n.Listed.State = 7, now.Add(-time.Minute), now.Add(-time.Second), fleet.Draining
			},
		},
		{
			name: "somebody removed the new pool's fence before the admission", step: fleet.StepFence, want: "fence b/b1 7",
			with: func(in *decide.Input) { in.Owner.Fenced = true },
		},
		{
			name: "somebody removed a third pool's fence", step: fleet.StepAsked, want: "fence c/c1 7",
			with: func(in *decide.Input) {
				in.Owner.Fenced, in.Sides[1].Nodes[0].Fence = true, 6
				in.Sides = append(in.Sides, decide.Side{Pool: "c", Fences: true, Nodes: []decide.Node{{Name: "c1", State: fleet.Up}}})
			},
		},
		{name: "checked", step: fleet.StepCheck, want: "ended b"},
		{
			name: "checked, by an earlier process", step: fleet.StepCheck, want: "empty a/a1 0",
			with: func(in *decide.Input) { in.Sides[0].Nodes[0].Contents = nil },
		},
		{
			name: "checked, and somebody removed the old pool's fence", step: fleet.StepCheck, want: "fence a/a1 7",
			with: func(in *decide.Input) { looked(in, 0, engine.NodeContents{}) },
		},
		{
			name: "back, before the fence", step: fleet.StepAsked, want: "ended a",
			with: func(in *decide.Input) { in.Owner.Back = true },
		},
		{
			name: "back, when the fence may be set", step: fleet.StepDrain, want: "unfence a/a1 7",
			with: func(in *decide.Input) { in.Owner.Back = true },
		},
		{
			name: "back, when it is proved", step: fleet.StepProve, want: "unfence a/a1 7",
			with: func(in *decide.Input) {
				looked(in, 0, engine.NodeContents{Fence: fence(7)})
				in.Owner.Back = true
			},
		},
		{
			name: "proved, and the new pool has the machine no more", step: fleet.StepProve, waits: "pool b to report a node on machine m",
			with: func(in *decide.Input) {
				looked(in, 0, engine.NodeContents{Fence: fence(7)})
				in.Sides = in.Sides[:1]
			},
		},
		{
			name: "fenced, and the old pool has the machine no more", step: fleet.StepFence, waits: "pool a to report a node on machine m",
			with: func(in *decide.Input) { in.Sides = in.Sides[1:] },
		},
		{
			name: "fenced, and the new pool is configured no more", step: fleet.StepFence, want: "back",
			with: func(in *decide.Input) { in.Sides, in.Pools = in.Sides[:1], []string{"a", "c"} },
		},
		{
			name: "fenced, and both pools are configured", step: fleet.StepFence, want: "empty a/a1 0",
			with: func(in *decide.Input) { in.Pools = []string{"a", "b"} },
		},
		{
			name: "back, and the old pool has the machine no more", step: fleet.StepProve, want: "ended a",
			with: func(in *decide.Input) { in.Owner.Back, in.Sides = true, in.Sides[1:] },
		},
		{
			name: "back, and the fence is removed", step: fleet.StepProve, want: "ended a",
			with: func(in *decide.Input) {
				in.Owner.Back = true
				in.Sides[0].Nodes[0].Mark = decide.Mark{Epoch: 7, At: now}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(c.step)
			if c.with != nil {
				c.with(in)
			}
			out := decide.Decide(in)
			if got := told(&out); got != c.want || !strings.Contains(out.Waits, c.waits) {
				t.Errorf("%q, and waits: %q", got, out.Waits)
			}
			if c.want == "" && (out.Waits == "" || out.Next.Before(in.Now) && !out.Next.IsZero()) {
				t.Errorf("it waits for %q until %s", out.Waits, out.Next)
			}
		})
	}
}

// told is a decision in short.
func told(out *decide.Output) string {
	switch c, r := out.Call, out.Record; {
	case c != nil:
		return strings.Join([]string{string(c.Verb), c.Pool + "/" + c.Node, string(rune('0' + c.Mark.Epoch))}, " ")
	case r == nil:
		return ""
	case r.Back:
		return "back"
	case !r.Moving():
		return "ended " + r.Pool
	default:
		return string(r.Step) + " " + r.Pool
	}
}

// TestRequeues: with Requeue, jobs that allow it are requeued, once.
func TestRequeues(t *testing.T) {
	in := input(fleet.StepAsked)
	in.Owner.Requeue = true
	in.Work = []decide.Work{{Job: 1, Requeues: true}, {Job: 2}, {Job: 3, Requeues: true, Ending: true}, {Job: 1, Requeues: true, Node: "a2"}}
	if out := decide.Decide(in); !reflect.DeepEqual(out.Requeue, []job.ID{1}) {
		t.Errorf("requeued: %v", out.Requeue)
	}
	in.Owner.Requeue = false
	if out := decide.Decide(in); len(out.Requeue) > 0 {
		t.Errorf("requeued without being asked: %v", out.Requeue)
	}
}

// TestEveryRecordIsOfItsHandover: whatever a record says next, it is of the same machine and epoch.
func TestEveryRecordIsOfItsHandover(t *testing.T) {
	in := input(fleet.StepCheck)
	in.Owner.By, in.Owner.Reason = "ann", "night"
	r := decide.Decide(in).Record
	if r.Machine != "m" || r.Epoch != 7 || r.By != "ann" || r.Reason != "night" || r.Step != fleet.StepRelease || r.Moving() || r.Back {
		t.Errorf("%+v", r)
	}
}

// TestMarks: without a hand-over, our fence is kept off the owner's node and, where it is kept at all, on
// the others.
//
// Seen to fail with a pause of ten minutes for engines that tell of fences.
func TestMarks(t *testing.T) {
	for _, c := range []struct {
		name string
		mute bool // the engines do not tell of fences
		with func(o *fleet.MachineOwner, a, b *decide.Node)
		want string
	}{
		{name: "all is well", with: func(*fleet.MachineOwner, *decide.Node, *decide.Node) {}},
		{name: "the owner is fenced", with: func(_ *fleet.MachineOwner, a, _ *decide.Node) { a.Fence = 6 }, want: "unfence a/a1 7"},
		{name: "the owner has a fence of a later epoch", with: func(_ *fleet.MachineOwner, a, _ *decide.Node) { a.Fence = 8 }},
		{name: "the owner was opened a moment ago", with: func(_ *fleet.MachineOwner, a, _ *decide.Node) {
			a.Fence, a.Mark, a.Tried = 7, decide.Mark{Epoch: 7, At: now.Add(-time.Second)}, now.Add(-time.Second)
		}},
		{name: "the owner was opened, and is fenced all the same", with: func(_ *fleet.MachineOwner, a, _ *decide.Node) {
			a.Fence, a.Mark, a.Tried = 7, decide.Mark{Epoch: 7, At: now.Add(-time.Minute)}, now.Add(-time.Minute)
		}, want: "unfence a/a1 7"},
		{name: "the other is open", with: func(_ *fleet.MachineOwner, _, b *decide.Node) { b.Fence = 0 }, want: "fence b/b1 7"},
		{name: "the other is open and nobody asked for a fence", with: func(o *fleet.MachineOwner, _, b *decide.Node) { o.Fenced, b.Fence = false, 0 }},
		{name: "the other is open and its engine failed a moment ago", with: func(_ *fleet.MachineOwner, _, b *decide.Node) {
			b.Fence, b.Trouble, b.Tried = 0, "no answer", now.Add(-time.Second)
		}},
		{name: "the other was fenced a minute ago, and its engine tells of fences", with: func(_ *fleet.MachineOwner, _, b *decide.Node) {
			b.Fence, b.Mark, b.Tried = 0, decide.Mark{Epoch: 7, Fenced: true, At: now.Add(-time.Minute)}, now.Add(-time.Minute)
		}, want: "fence b/b1 7"},
		{name: "the other was fenced a moment ago, and its engine tells of fences", with: func(_ *fleet.MachineOwner, _, b *decide.Node) {
			b.Fence, b.Mark, b.Tried = 0, decide.Mark{Epoch: 7, Fenced: true, At: now.Add(-time.Second)}, now.Add(-time.Second)
		}},
		{name: "the other was fenced a minute ago, and its engine never tells of fences", mute: true, with: func(_ *fleet.MachineOwner, _, b *decide.Node) {
			b.Fence, b.Mark, b.Tried = 0, decide.Mark{Epoch: 7, Fenced: true, At: now.Add(-time.Minute)}, now.Add(-time.Minute)
		}},
		{name: "the other is fenced, and an administrator opens it", with: func(o *fleet.MachineOwner, _, _ *decide.Node) { o.Fenced, o.Open = false, true }, want: "unfence b/b1 7"},
		{name: "the other is open, as an administrator wants it", with: func(o *fleet.MachineOwner, _, b *decide.Node) { o.Fenced, o.Open, b.Fence = false, true, 0 }},
		{name: "the other has a fence of a later epoch, and an administrator opens it", with: func(o *fleet.MachineOwner, _, b *decide.Node) { o.Fenced, o.Open, b.Fence = false, true, 8 }},
		{name: "the other has a fence that nobody here asked for", with: func(o *fleet.MachineOwner, _, _ *decide.Node) { o.Fenced = false }},
		{name: "the other is not reported", with: func(_ *fleet.MachineOwner, _, b *decide.Node) { b.Fence, b.State = 0, "" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(fleet.StepRelease)
			in.Owner.Next, in.Owner.Fenced = "", true
			in.Sides[1].Nodes[0].Fence = 7
			in.Sides[0].Reports, in.Sides[1].Reports = !c.mute, !c.mute
			c.with(&in.Owner, &in.Sides[0].Nodes[0], &in.Sides[1].Nodes[0])
			out := decide.Decide(in)
			if got := told(&out); got != c.want || out.Record != nil || out.Waits != "" {
				t.Errorf("%q, waits %q until %s", got, out.Waits, out.Next)
			}
		})
	}
}

// TestNodesAreKept: which nodes the old pool had is in the record when it is drained, until the hand-over ends; and a
// fence that an administrator wants says why.
//
// Seen to fail without the nodes in the record of the drain.
func TestNodesAreKept(t *testing.T) {
	in := input(fleet.StepAsked)
	in.Sides[0].Nodes = append(in.Sides[0].Nodes, decide.Node{Name: "a2"})
	if r := decide.Decide(in).Record; r == nil || r.Step != fleet.StepDrain || r.Nodes != "a[1-2]" {
		t.Errorf("%+v", r)
	}
	in = input(fleet.StepCheck)
	in.Owner.Nodes = "a[1-2]"
	if r := decide.Decide(in).Record; r == nil || r.Moving() || r.Nodes != "" {
		t.Errorf("%+v", r)
	}
	in = input(fleet.StepRelease)
	in.Owner = fleet.MachineOwner{Machine: "m", Pool: "a", Epoch: 1}
	in.Owner = in.Owner.WithMarks(true, "ann", "inference by day")
	if c := decide.Decide(in).Call; c == nil || c.Verb != decide.Fence || c.Mark.Reason != "machine m is of pool a: inference by day" {
		t.Errorf("%+v", c)
	}
}

// TestLongWait: a step that has waited for long asks less often, also when what it waits for was written just now.
//
// Seen to fail without Since.
func TestLongWait(t *testing.T) {
	in := input(fleet.StepFence)
	looked(in, 0, engine.NodeContents{Fence: fence(7), Unknown: []string{"no word"}})
	in.Sides[0].Nodes[0].Asked = now.Add(-10 * time.Second)
	if out := decide.Decide(in); out.Call == nil || out.Call.Verb != decide.Empty {
		t.Errorf("at first: %+v", out)
	}
	in.Since = now.Add(-time.Hour)
	if out := decide.Decide(in); out.Call != nil || !out.Next.Equal(now.Add(20*time.Second)) {
		t.Errorf("after an hour: %+v", out)
	}
}
