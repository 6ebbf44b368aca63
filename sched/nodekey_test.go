package sched_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/snapshot"
)

// inPool asks for a pool's node n1 as a whole.
func inPool(pool string) *job.Spec {
	s := gang(1, 1, 2, 0)
	s.Pool = pool
	return s
}

func nodeOf(pool string) fleet.Node {
	n := node("n1", 2)
	n.Pool = pool
	return n
}

// startedAt maps each started job to its node.
func startedAt(t *testing.T, c *sched.Core, out []sched.Decision) map[job.ID]string {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	at := map[job.ID]string{}
	for _, d := range out {
		if s, ok := d.(sched.Start); ok {
			at[s.Job] = s.Claims[0].Key().String()
		}
	}
	return at
}

// reload writes a core down and reads it.
func reload(t *testing.T, c *sched.Core) *sched.Core {
	t.Helper()
	var b bytes.Buffer
	if err := (&snapshot.File{State: c.Snapshot().Sort()}).Write(&b, "test"); err != nil {
		t.Fatal(err)
	}
	f, err := snapshot.Read(&b, "it")
	if err != nil {
		t.Fatal(err)
	}
	return sched.Load(f.State)
}

// TestNodesOfOneName: two pools have a node of one name, and what is held, drained or lost in
// one says nothing about the other.
func TestNodesOfOneName(t *testing.T) {
	c := sched.New(sched.Config{})
	want := func(out []sched.Decision, id job.ID, at string) {
		t.Helper()
		if got := startedAt(t, c, out); got[id] != at || at == "" && len(got) > 0 {
			t.Errorf("started %v, want job %d at %q", got, id, at)
		}
	}
	out := c.Step(1, sched.NodeSet{Node: nodeOf("a")}, sched.NodeSet{Node: nodeOf("b")}, sched.Submitted{Job: 1, Spec: inPool("b")})
	want(out, 1, "b/n1")
	want(c.Step(2, sched.Submitted{Job: 2, Spec: inPool("b")}), 2, "")
	want(c.Step(3, sched.Submitted{Job: 3, Spec: inPool("a")}), 3, "a/n1")

	drained := nodeOf("b")
	drained.State = fleet.Draining
	want(c.Step(4, sched.NodeSet{Node: drained}, sched.Released{Job: 1}), 2, "")
	want(c.Step(5, sched.Released{Job: 3}, sched.Submitted{Job: 4, Spec: inPool("a")}), 4, "a/n1")
	want(c.Step(6, sched.NodeSet{Node: nodeOf("b")}), 2, "b/n1")

	want(c.Step(7, sched.NodeRemoved{Pool: "a", Name: "n1"}, sched.Submitted{Job: 5, Spec: inPool("a")}), 5, "")
	want(c.Step(8, sched.Released{Job: 2}, sched.Submitted{Job: 6, Spec: inPool("b")}), 6, "b/n1") // job 4 is still held in a
	c = reload(t, c)
	want(c.Step(9, sched.Released{Job: 6}, sched.Submitted{Job: 7, Spec: inPool("b")}), 7, "b/n1")
	want(c.Step(10, sched.NodeSet{Node: nodeOf("a")}), 5, "")
	c = reload(t, c)
	want(c.Step(11, sched.Released{Job: 4}), 5, "a/n1")
}

// TestNamedNodeOfOneName: a job that names a node gets the one of its pool, and does not get the
// one that it excludes.
func TestNamedNodeOfOneName(t *testing.T) {
	c := sched.New(sched.Config{})
	must, not := inPool("b"), inPool("b")
	must.Groups[0].NodeList = []string{"n1"}
	not.Groups[0].Exclude = []string{"n1"}
	out := c.Step(1, sched.NodeSet{Node: nodeOf("a")}, sched.NodeSet{Node: nodeOf("b")}, sched.Submitted{Job: 1, Spec: not}, sched.Submitted{Job: 2, Spec: must})
	if got := startedAt(t, c, out); len(got) != 1 || got[2] != "b/n1" {
		t.Errorf("started %v, want job 2 at b/n1", got)
	}
}

// TestReservedNodeOfOneName: a reservation may say of which pool its node is.
func TestReservedNodeOfOneName(t *testing.T) {
	c := sched.New(sched.Config{})
	policy := &account.Policy{Reservations: []account.Reservation{{Name: "r", Nodes: []string{"a/n1"}, Start: "1970-01-01T00:00:00Z", Duration: account.Duration(time.Hour), Users: []string{"nobody"}}}}
	out := c.Step(1, sched.NodeSet{Node: nodeOf("a")}, sched.NodeSet{Node: nodeOf("b")}, sched.PolicySet{Policy: policy},
		sched.Submitted{Job: 1, Spec: inPool("a")}, sched.Submitted{Job: 2, Spec: inPool("b")})
	if got := startedAt(t, c, out); len(got) != 1 || got[2] != "b/n1" {
		t.Errorf("started %v, want job 2 at b/n1 alone", got)
	}
}

// TestMachineChangesPool: a job goes on, and counts, on a machine that another pool has by now.
func TestMachineChangesPool(t *testing.T) {
	c := sched.New(sched.Config{})
	c.Step(1, sched.NodeSet{Node: nodeOf("a")}, sched.Submitted{Job: 1, Spec: inPool("a")})
	out := c.Step(2, sched.NodeRemoved{Pool: "a", Name: "n1"}, sched.NodeSet{Node: nodeOf("b")}, sched.Submitted{Job: 2, Spec: inPool("b")})
	if got := startedAt(t, c, out); len(got) != 0 {
		t.Errorf("started %v on what job 1 holds", got)
	}
	if got := startedAt(t, c, c.Step(3, sched.Released{Job: 1})); got[2] != "b/n1" {
		t.Errorf("started %v, want job 2 at b/n1", got)
	}
}
