package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Outside is what the suite does on nodes past the driver, as an administrator or another user of what the engine
// drives. Nil functions skip what needs them.
type Outside struct {
	// Start submits work that stays, for a node, and returns once what the engine drives has decided about it:
	// whether it runs, and how it is ended (or withdrawn).
	Start func(t *testing.T, e engine.Engine, node string) (runs bool, end func())
	// Drain sets an administrator's mark on a node; an empty reason removes it.
	Drain func(t *testing.T, e engine.Engine, node, why string)
	// Silence lets the agent of a node fall silent, and returns once that is known to what the engine
	// drives, with what brings it back.
	Silence func(t *testing.T, e engine.Engine, node string) (restore func())
}

// testNodeFence is what holds for drivers that close nodes to all work (engine.NodeFencer). It has the
// driver's nodes for itself.
func testNodeFence(t *testing.T, h Harness) {
	if h.Shared {
		t.Skip("other tests have the nodes")
	}
	for name, test := range map[string]func(*fenceBench){
		"Closes":  testFenceCloses,
		"GoesOn":  testFenceGoesOn,
		"Epochs":  testFenceEpochs,
		"Drained": testFenceDrained,
		"Others":  testFenceOthers,
		"Silent":  testFenceSilent,
		"NoNode":  testFenceNoNode,
	} {
		t.Run(name, func(t *testing.T) {
			b := startBench(t, h)
			f, ok := b.e.(engine.NodeFencer)
			if !ok {
				t.Skip("this driver closes no nodes")
			}
			test(&fenceBench{bench: b, NodeFencer: f, epoch: uint64(time.Now().UnixMilli())})
		})
	}
}

type fenceBench struct {
	*bench
	engine.NodeFencer

	epoch uint64 // of the last call; above that of every test before
}

// mustFence closes a node with the next epoch until the test ends.
func (b *fenceBench) mustFence(node string) engine.NodeFence {
	b.Helper()
	b.epoch++
	f := engine.NodeFence{Epoch: b.epoch, Reason: "the machine is another pool's"}
	b.Cleanup(func() {
		if err := b.Unfence(context.Background(), node, f); err != nil && fault.KindOf(err) != fault.Conflict {
			b.Log(err) // the engine may be closed
		}
	})
	if err := b.Fence(b.Context(), node, f); err != nil {
		b.Fatalf("fence %s: %v", node, err)
	}
	return f
}

func (b *fenceBench) mustUnfence(node string, f engine.NodeFence) {
	b.Helper()
	if err := b.Unfence(b.Context(), node, f); err != nil {
		b.Fatalf("unfence %s: %v", node, err)
	}
}

// lookAt asks what is on a node.
func (b *fenceBench) lookAt(node string) engine.NodeContents {
	b.Helper()
	c, err := b.Empty(b.Context(), node)
	if err != nil {
		b.Fatalf("look at %s: %v", node, err)
	}
	return c
}

// awaitEmpty waits until a node is proved to be empty: its agent may have to be heard first.
func (b *fenceBench) awaitEmpty(node string, f engine.NodeFence) {
	b.Helper()
	b.pollUntil("it is empty", func() bool { c := b.lookAt(node); return c.ProvedEmpty(f.Epoch) })
}

// nodeNamed is a node as the engine lists it.
func (b *fenceBench) nodeNamed(name string) fleet.Node {
	b.Helper()
	nodes, err := b.e.Nodes(b.Context())
	for _, n := range nodes {
		if n.Name == name {
			return n
		}
	}
	b.Fatalf("node %s is not listed: %v", name, err)
	return fleet.Node{}
}

// freeNode is a node that is up, with nothing on it.
func (b *fenceBench) freeNode() (name string) {
	b.Helper()
	b.pollUntil("a node is free", func() bool { // one that was undrained may have to answer first
		nodes, err := b.e.Nodes(b.Context())
		if err != nil || len(nodes) == 0 {
			b.Fatalf("%d nodes, %v", len(nodes), err)
		}
		name = nodes[0].Name
		return nodes[0].State == fleet.Up && len(b.lookAt(name).Work) == 0
	})
	return name
}

// checkStands waits until a fence of an epoch is listed, and checks what is seen of it; 0: none.
func (b *fenceBench) checkStands(node string, epoch uint64) {
	b.Helper()
	c := b.lookAt(node)
	if epoch == 0 && c.Fence != nil || epoch != 0 && (c.Fence == nil || c.Fence.Epoch != epoch) {
		b.Errorf("node %s: the fence that stands is %+v, want epoch %d", node, c.Fence, epoch)
	}
	b.pollUntil("the fence is listed", func() bool {
		n := b.nodeNamed(node)
		return n.Fence == epoch && (n.State == fleet.Up) == (epoch == 0)
	})
}

// testFenceCloses: nothing starts on a fenced node, ours or others'. Without the fence it does.
func testFenceCloses(b *fenceBench) {
	node := b.freeNode()
	f := b.mustFence(node)
	b.checkStands(node, f.Epoch)
	b.awaitEmpty(node, f)
	if c := b.lookAt(node); c.ProvedEmpty(f.Epoch-1) || c.Drained != "" || len(c.Looked) == 0 {
		b.Errorf("nothing is on it: %+v", c)
	}
	if out := b.Outside.Start; out != nil {
		runs, end := out(b.T, b.e, node)
		if runs {
			b.Errorf("others' work runs on fenced node %s", node)
		}
		end()
	}
	if !b.Delegated {
		l := b.planLaunch(1, 1, Program{})
		checkKind(b.T, b.e.Launch(b.Context(), l), fault.Exhausted)
		if c := b.lookAt(node); len(c.Work) != 0 {
			b.Errorf("a launch that was refused left %+v", c.Work)
		}
	}
	b.mustUnfence(node, f)
	b.checkStands(node, 0)
	l := b.planLaunch(2, 1, Program{})
	b.mustLaunch(l)
	checkEnded(b.T, b.awaitGone(l.Ref), engine.Exited, job.ExitCode{})
}

// testFenceGoesOn: what runs goes on, and is seen until it has ended; the fence outlives the driver.
func testFenceGoesOn(b *fenceBench) {
	ref := b.launchProgram(1, Program{Run: Forever})
	b.awaitRunning(ref)
	node := b.nodeOf(ref, 0)
	f := b.mustFence(node)
	if c := b.lookAt(node); c.ProvedEmpty(f.Epoch) || len(c.Work) == 0 || !c.Work[0].Ours {
		b.Errorf("an attempt of ours runs there: %+v", c)
	}
	if b.Reopen != nil {
		b.reopenEngine(func() {})
		b.NodeFencer = b.e.(engine.NodeFencer)
		b.checkStands(node, f.Epoch)
	}
	if r := b.awaitRunning(ref); r.Gone || r.Uncertain {
		b.Errorf("after the fence: %s", describeReport(r))
	}
	b.mustStop(ref, engine.Stop{Grace: patience})
	checkEnded(b.T, b.awaitGone(ref), engine.Stopped, job.ExitCode{Signal: sigterm}) // not by the fence
	b.awaitEmpty(node, f)
	b.mustUnfence(node, f)
}

// testFenceEpochs: calls may be repeated, and those of an earlier epoch change nothing.
func testFenceEpochs(b *fenceBench) {
	node := b.freeNode()
	old := b.mustFence(node)
	f := b.mustFence(node)
	for range 2 {
		if err := b.Fence(b.Context(), node, f); err != nil {
			b.Errorf("the same fence again: %v", err)
		}
		checkKind(b.T, b.Fence(b.Context(), node, old), fault.Conflict)
		checkKind(b.T, b.Unfence(b.Context(), node, old), fault.Conflict)
		b.checkStands(node, f.Epoch)
	}
	for range 2 {
		b.mustUnfence(node, f)
		checkKind(b.T, b.Fence(b.Context(), node, old), fault.Conflict) // it comes late
		b.checkStands(node, 0)
	}
	last := b.mustFence(node)
	b.checkStands(node, last.Epoch)
	last.Epoch++ // of the hand-over that gives it back
	b.mustUnfence(node, last)
	b.checkStands(node, 0)
}

// testFenceDrained: an administrator's mark stays, whenever it was set.
func testFenceDrained(b *fenceBench) {
	drain := b.Outside.Drain
	if drain == nil {
		b.Skip("nobody drains nodes of this driver")
	}
	node := b.freeNode()
	b.Cleanup(func() { drain(b.T, b.e, node, "") })
	marked := func(when string, want bool) {
		b.Helper()
		if c := b.lookAt(node); (c.Drained != "") != want {
			b.Errorf("%s: the administrator's mark is %q", when, c.Drained)
		}
		b.pollUntil("the mark is listed", func() bool {
			n := b.nodeNamed(node)
			return (n.State == fleet.Draining && n.Why != "") == want
		})
	}
	drain(b.T, b.e, node, "fan is noisy")
	marked("before the fence", true)
	f := b.mustFence(node)
	b.checkStands(node, f.Epoch)
	marked("with the fence", true)
	b.mustUnfence(node, f)
	marked("after the fence", true)
	drain(b.T, b.e, node, "")
	marked("undrained", false)

	f = b.mustFence(node)
	marked("fenced alone", false)
	drain(b.T, b.e, node, "fan is noisy")
	marked("drained later", true)
	if c := b.lookAt(node); c.Fence == nil {
		b.Error("the drain took the fence away")
	}
	b.mustUnfence(node, f)
	marked("drained later, and unfenced", true)
	if c := b.lookAt(node); c.Fence != nil {
		b.Errorf("it is fenced: %+v", c.Fence)
	}
	drain(b.T, b.e, node, "")
	b.checkStands(node, 0)
}

// testFenceOthers: work of others that runs on the node is seen, and goes on.
func testFenceOthers(b *fenceBench) {
	if b.Outside.Start == nil {
		b.Skip("nobody else has work on nodes of this driver")
	}
	node := b.freeNode()
	runs, end := b.Outside.Start(b.T, b.e, node)
	if !runs {
		b.Fatal("others' work does not run on a node without a fence")
	}
	f := b.mustFence(node)
	c := b.lookAt(node)
	if c.ProvedEmpty(f.Epoch) || len(c.Work) == 0 || c.Work[0].Ours || c.Work[0].Name == "" {
		b.Errorf("others' work is there: %+v", c)
	}
	end()
	b.awaitEmpty(node, f)
	b.mustUnfence(node, f)
}

// testFenceSilent: a node that does not answer is never empty.
func testFenceSilent(b *fenceBench) {
	if b.Outside.Silence == nil {
		b.Skip("nodes of this driver cannot fall silent")
	}
	node := b.freeNode()
	f := b.mustFence(node)
	restore := b.Outside.Silence(b.T, b.e, node)
	if c := b.lookAt(node); len(c.Unknown) == 0 || c.ProvedEmpty(f.Epoch) || c.Fence == nil {
		b.Errorf("it does not answer: %+v", c)
	}
	restore()
	b.awaitEmpty(node, f)
	b.mustUnfence(node, f)
}

func testFenceNoNode(b *fenceBench) {
	const node = "no-such-node"
	b.epoch++
	f := engine.NodeFence{Epoch: b.epoch, Reason: "test"}
	checkKind(b.T, b.Fence(b.Context(), node, f), fault.NotFound)
	checkKind(b.T, b.Unfence(b.Context(), node, f), fault.NotFound)
	_, err := b.Empty(b.Context(), node)
	checkKind(b.T, err, fault.NotFound)
	checkKind(b.T, b.Fence(b.Context(), b.freeNode(), engine.NodeFence{Reason: "no epoch"}), fault.Invalid)
}
