package control_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// step asks for a step of the hand-over of a machine that is under way.
func (b *bench) step(machine string, step fleet.HandoverStep) error {
	b.t.Helper()
	o, ok := b.ctl.MachineOwner(machine)
	if !ok {
		b.t.Fatalf("machine %s has no owner", machine)
	}
	o.Step = step
	if step == fleet.StepRelease {
		o.Next = ""
	}
	return b.ctl.MoveMachine(b.t.Context(), job.Actor{Name: "root"}, o)
}

// walk hands a machine over to a pool, up to a step. It begins where the hand-over is.
func (b *bench) walk(machine, pool string, to fleet.HandoverStep) {
	b.t.Helper()
	o, _ := b.ctl.MachineOwner(machine)
	if !o.Moving() {
		o.Next, o.Step, o.Epoch = pool, fleet.StepAsked, o.Epoch+1
		if err := b.ctl.MoveMachine(b.t.Context(), job.Actor{Name: "root"}, o); err != nil {
			b.t.Fatal(err)
		}
	}
	for o.Step != to {
		o.Step = o.Step.Next()
		if err := b.step(machine, o.Step); err != nil {
			b.t.Fatalf("step %s: %v", o.Step, err)
		}
	}
}

// owners is who has which machine, and how far hand-overs are.
func (b *bench) owners() string {
	var out []string
	for _, o := range b.ctl.MachineOwners(b.t.Context()) {
		s := o.Machine + "=" + o.Pool
		if o.Moving() {
			s += "→" + o.Next + ":" + string(o.Step)
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// TestOwnersOutliveARestart: whichever pool answers first then, and out of the journal as out of the
// projection.
//
// Seen to fail with: a restore that reads no documents of machines; owners by who answers.
func TestOwnersOutliveARestart(t *testing.T) {
	p, q := standing(named("a", 2, 8), "m1", "m2"), standing(named("b", 2, 8), "m2", "m3")
	b := two(t, p, q, control.Config{})
	const want = "m1=p m2=p m3=q"
	for i := range 3 {
		if got := b.owners(); got != want {
			t.Fatalf("owners %s, want %s", got, want)
		}
		if on := b.ctl.MachineNodes("m2"); len(on) != 2 {
			t.Errorf("nodes on m2: %v", on)
		}
		if i == 1 { // the first restart is out of the journal alone
			b.submit(in("p", gang(1, 1))) // so that something is to be projected
			waitProjected(t, b.ctl)
		}
		b.close()
		slices.Reverse(b.cfg.Pools) // q's jobs that name none, and its answers, come first
		b.open()
	}
	b.walk("m2", "q", fleet.StepFence)
	b.reopen()
	if got := b.owners(); got != "m1=p m2=p→q:fence m3=q" {
		t.Errorf("after a restart: %s", got)
	}
	b.walk("m2", "q", fleet.StepRelease)
	b.reopen()
	if o, _ := b.ctl.MachineOwner("m2"); o.Pool != "q" || o.Last != "p" || o.Epoch != 2 || o.By != "root" || o.At.IsZero() {
		t.Errorf("handed over: %+v", o)
	}
	if v := b.launched(b.submit(in("q", gang(2, 8)))); len(v.Claims) != 2 {
		t.Errorf("q has %v", v.Claims)
	}
}

// TestStepsFollowEachOther: what does not follow is refused and changes nothing, and a step that was done
// twice is told so.
//
// Seen to fail with: CheckNext that compares no epochs.
func TestStepsFollowEachOther(t *testing.T) {
	b := two(t, named("a", 1, 8), standing(named("b", 1, 8), "a1"), control.Config{})
	move := func(change func(*fleet.MachineOwner)) error {
		o, _ := b.ctl.MachineOwner("a1")
		change(&o)
		return b.ctl.MoveMachine(t.Context(), job.Actor{Name: "root"}, o)
	}
	refused := func(what string, kind fault.Kind, change func(*fleet.MachineOwner)) {
		t.Helper()
		was := b.owners()
		if err := move(change); fault.KindOf(err) != kind {
			t.Errorf("%s: %v", what, err)
		}
		if now := b.owners(); now != was {
			t.Errorf("%s: it was %s, and is %s", what, was, now)
		}
	}
	ask := func(o *fleet.MachineOwner) { o.Next, o.Step, o.Epoch = "q", fleet.StepAsked, o.Epoch+1 }
	refused("another pool at once", fault.Conflict, func(o *fleet.MachineOwner) { o.Pool, o.Epoch = "q", 2 })
	refused("a pool that is not there", fault.NotFound, func(o *fleet.MachineOwner) { ask(o); o.Next = "r" })
	refused("a machine that is not there", fault.NotFound, func(o *fleet.MachineOwner) { ask(o); o.Machine = "r" })
	refused("the present epoch", fault.Conflict, func(o *fleet.MachineOwner) { ask(o); o.Epoch = 1 })
	refused("a step before the first", fault.Conflict, func(o *fleet.MachineOwner) { ask(o); o.Step = fleet.StepFence })
	if err := move(ask); err != nil {
		t.Fatal(err)
	}
	refused("asked again", fault.Conflict, ask)
	refused("two steps", fault.Conflict, func(o *fleet.MachineOwner) { o.Step = fleet.StepFence })
	refused("another pool", fault.Conflict, func(o *fleet.MachineOwner) { o.Step, o.Next = fleet.StepDrain, "r" })
	refused("the epoch before", fault.Conflict, func(o *fleet.MachineOwner) { o.Step, o.Epoch = fleet.StepDrain, 1 })
	refused("the end", fault.Conflict, func(o *fleet.MachineOwner) { o.Step, o.Next = fleet.StepRelease, "" })
	if err := move(func(o *fleet.MachineOwner) { o.Waits = "job 1" }); err != nil {
		t.Errorf("what it waits for: %v", err)
	}
	if err := move(func(o *fleet.MachineOwner) { o.Back = true }); err != nil {
		t.Errorf("back: %v", err)
	}
	refused("on, when it is walked back", fault.Conflict, func(o *fleet.MachineOwner) { o.Step, o.Back = fleet.StepDrain, false })
	if err := move(func(o *fleet.MachineOwner) { o.Step, o.Next, o.Back = fleet.StepRelease, "", false }); err != nil {
		t.Errorf("it is back: %v", err)
	}
	b.launched(b.submit(in("p", gang(1, 8))))
	if o, _ := b.ctl.MachineOwner("a1"); o.Pool != "p" || o.Epoch != 2 {
		t.Errorf("walked back: %+v", o)
	}
}

// TestWorkOwnsItsMachine: a journal without records of machines, of a server that left them to who answered
// first, gives each to the pool that has work there.
//
// Seen to fail with: ownerFor that asks for no work.
func TestWorkOwnsItsMachine(t *testing.T) {
	p, q := named("a", 1, 8), named("b", 1, 8)
	b := openWith(t, q, control.Config{})
	v := b.launched(b.submit(gang(1, 8)))
	q.start(v)
	b.state(v.Job.ID, job.Running)
	if got := b.owners(); got != "" {
		t.Errorf("with one pool: %s", got)
	}
	b.close()
	standing(q, "a1")
	first := onHand(p)[0]
	first.Name = "first"
	b.cfg.Pools = append(onHand(p)[:0:0], first, b.cfg.Pools[0])
	b.open()
	if got, want := b.owners(), "a1="+b.cfg.Pools[1].Name; got != want {
		t.Errorf("owners %s, want %s", got, want)
	}
	id := b.submit(in("first", gang(1, 8)))
	b.waitsStill(id)
	q.end(v, engine.Exited, 0)
	b.state(v.Job.ID, job.Completed)
	b.waitsStill(id)
	if n := b.nodeView("first", "a1"); n.Node.State != fleet.Draining {
		t.Errorf("a1 is %+v", n)
	}
}

// TestAPoolThatIsRemovedLeavesItsMachines to the pool that reports them too, but only by force: nothing says then
// that its engine starts nothing there. The others are nobody's.
//
// Seen to fail with: RemovePool without ownersWithout, or without leavesOpen.
func TestAPoolThatIsRemovedLeavesItsMachines(t *testing.T) {
	s := &sites{hands: map[string]*hand{"q": standing(named("q", 2, 8), "m1", "m2")}, closed: map[string]int{}}
	b := openWith(t, named("a", 1, 8), control.Config{OpenPool: s.open})
	if err := b.ctl.AddPool(t.Context(), job.Actor{}, state.PoolSpec{Name: "q", Engine: "hand"}); err != nil {
		t.Fatal(err)
	}
	home := b.cfg.Pools[0].Name
	eventually(t, "each machine has an owner", func() bool { return b.owners() == "a1="+home+" m1=q m2=q" })
	standing(b.hand, "m1")
	if err := b.ctl.Compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second one of m1 is not used", func() bool { return b.nodeView(home, "a1").Node.Why == "machine m1 belongs to pool q" })
	b.walk("m2", home, fleet.StepAsked)
	if err := b.ctl.RemovePool(t.Context(), job.Actor{}, "q", false); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "machine m2") {
		t.Errorf("removed while it hands over: %v", err)
	}
	o, _ := b.ctl.MachineOwner("m2")
	o.Back = true
	if err := b.ctl.MoveMachine(t.Context(), job.Actor{}, o); err != nil {
		t.Fatal(err)
	}
	o.Step, o.Next, o.Back = fleet.StepRelease, "", false
	if err := b.ctl.MoveMachine(t.Context(), job.Actor{}, o); err != nil {
		t.Fatal(err)
	}
	if err := b.ctl.RemovePool(t.Context(), job.Actor{}, "q", false); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "owns m1, where p could") {
		t.Errorf("removed while it owns a machine of two pools: %v", err)
	}
	if got := b.owners(); got != "a1="+home+" m1=q m2=q" {
		t.Errorf("refused, and now %s", got)
	}
	if err := b.ctl.RemovePool(t.Context(), job.Actor{}, "q", true); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := b.owners(); got != "a1="+home+" m1="+home {
			t.Errorf("without q: %s", got)
		}
		if n := b.nodeView(home, "a1"); n.Node.State != fleet.Up {
			t.Errorf("a1 is %+v", n)
		}
		b.reopen()
	}
}

// TestAPoolThatIsNotConfiguredKeepsItsMachines: a pool may be taken out of the configuration while its engine runs
// work of others. Its machines say why nothing starts there, and are given away by force alone.
//
// Seen to fail with: claimMachines that gives away what a pool has that is gone.
func TestAPoolThatIsNotConfiguredKeepsItsMachines(t *testing.T) {
	p, q := standing(named("a", 2, 8), "m1", "m2"), standing(named("b", 2, 8), "m2", "m3")
	b := two(t, p, q, control.Config{})
	b.walk("m2", "q", fleet.StepRelease)
	b.close()
	r := b.cfg.Pools[1]
	r.Name = "r" // of the same engine: two pools remain
	b.cfg.Pools[1] = r
	b.open()
	if err := b.ctl.Compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.owners(); got != "m1=p m2=q m3=q" {
		t.Errorf("with q gone: %s", got)
	}
	if n := b.nodeView("p", "a2"); n.Node.State != fleet.Draining || !strings.Contains(n.Node.Why, "belongs to pool q, which is not configured any more") {
		t.Errorf("the machine's node is %+v", n.Node)
	}
	root := job.Actor{Name: "root"}
	if err := b.ctl.RemovePool(t.Context(), root, "q", false); fault.KindOf(err) != fault.NotFound {
		t.Errorf("given away without force: %v", err)
	}
	if err := b.ctl.RemovePool(t.Context(), root, "q", true); err != nil {
		t.Fatal(err)
	}
	if got := b.owners(); got != "m1=p m2=p m3=r" {
		t.Errorf("given away: %s", got)
	}
	if o, _ := b.ctl.MachineOwner("m2"); o.By != "root" || o.Last != "q" {
		t.Errorf("m2 is %+v", o)
	}
}

// TestOwnersWithoutAJournal: of a machine without a record, the pool with our fence is the one that had given it
// away. Where all have it, nobody knows, and nothing starts.
//
// Seen to fail with: ownerFor that does not look at fences; without isOutdated; firstOwner that keeps no fences.
func TestOwnersWithoutAJournal(t *testing.T) {
	fenced := func(h *hand, epochs ...uint64) *hand {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i, e := range epochs {
			if h.nodes[i].Fence, h.nodes[i].State = e, fleet.Up; e != 0 {
				h.nodes[i].State = fleet.Draining
			}
		}
		return h
	}
	records := func(b *bench) (out string) {
		for _, o := range b.ctl.MachineOwners(t.Context()) {
			out += fmt.Sprintf("%s=%s %d %v;", o.Machine, o.Pool, o.Epoch, o.Fenced)
		}
		return out
	}
	p := fenced(named("a", 3, 8), 5, 7, 0)
	q := fenced(standing(named("b", 3, 8), "a1", "a2", "a3"), 0, 6, 0)
	b := two(t, p, q, control.Config{})
	if got := records(b); got != "a1=q 6 true;a3=p 1 false;" {
		t.Errorf("the owners are %s", got)
	}
	for pool, node := range map[string]string{"p": "a2", "q": "b2"} {
		if n := b.nodeView(pool, node).Node; n.State != fleet.Draining || !strings.Contains(n.Why, "machine a2 has no owner: the journal has none") {
			t.Errorf("%s/%s is %s %q", pool, node, n.State, n.Why)
		}
	}
	fenced(q, 0, 0, 0) // somebody knows
	if err := b.ctl.Compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has an owner", func() bool { return records(b) == "a1=q 6 true;a2=q 8 true;a3=p 1 false;" })

	// A pool that answers later has a fence of an epoch that the first record did not know.
	s := &sites{hands: map[string]*hand{"q": fenced(standing(named("q", 1, 8), "a1"), 9)}, closed: map[string]int{}}
	b = openWith(t, named("a", 1, 8), control.Config{OpenPool: s.open})
	if err := b.ctl.AddPool(t.Context(), job.Actor{}, state.PoolSpec{Name: "q", Engine: "hand"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		eventually(t, "its epoch is after the fence", func() bool { return records(b) == "a1=p 10 true;" })
		b.reopen()
	}
}

// TestManyMachinesInOneRecord: a report of many machines makes one record, and another look none.
//
// Seen to fail with: claimMachines that makes a record for each machine.
func TestManyMachinesInOneRecord(t *testing.T) {
	big := func(letter string) *hand {
		h := newHand(0, 0)
		for i := range 400 {
			h.nodes = append(h.nodes, fleet.Node{Name: fmt.Sprintf("%s%d", letter, i), State: fleet.Up, Hosts: []string{fmt.Sprintf("m%d", i)}})
		}
		return h
	}
	b := two(t, big("a"), big("b"), control.Config{})
	records := func() (n int) {
		if err := b.store.Read(t.Context(), 0, func(r store.Record) error {
			if r.Kind == state.KindOwner {
				n++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := len(b.ctl.MachineOwners(t.Context())); n != 400 || records() != 1 {
		t.Errorf("%d machines in %d records", n, records())
	}
	if err := b.ctl.Compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	if n := records(); n != 1 {
		t.Errorf("%d records after another look and a restart", n)
	}
	if ms := b.ctl.MarkedMachines(); len(ms) != 400 || len(ms[7].Nodes) != 2 || ms[7].Owner.Pool != "p" {
		t.Errorf("%d machines are listed, one is %+v", len(ms), ms[7])
	}
}

// TestMarksOfANode: our fence in the engine, an administrator's drain there, and one by cox node drain are three
// things, and none takes another away.
//
// Seen to fail with: NodeWithDrain that says nothing of a fence; DrainOf that asks for the node alone.
func TestMarksOfANode(t *testing.T) {
	p, q := named("a", 1, 8), standing(named("b", 1, 8), "a1")
	b := two(t, p, q, control.Config{})
	engineSays := func(fence uint64, why string) {
		t.Helper()
		q.mu.Lock()
		n := &q.nodes[0]
		if n.State, n.Fence, n.Why = fleet.Up, fence, why; fence != 0 || why != "" {
			n.State = fleet.Draining
		}
		q.mu.Unlock()
		if err := b.ctl.Compare(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the look has come", func() bool { n := b.ctl.MarkedMachines()[0].Nodes[1].Node; return n.Fence == fence && n.Why == why })
	}
	drain := func(name string, on bool) {
		t.Helper()
		if err := b.ctl.SetNodes(t.Context(), job.Actor{Name: "root"}, []string{name}, on, "bad fan"); err != nil {
			t.Fatal(err)
		}
	}
	is := func(when string, state fleet.NodeState, why string) {
		t.Helper()
		if n := b.nodeView("q", "b1").Node; n.State != state || n.Why != why {
			t.Errorf("%s: %s %q, want %s %q", when, n.State, n.Why, state, why)
		}
	}
	open := func() (pools string) {
		for _, n := range b.ctl.MarkedMachines()[0].Nodes {
			if n.CanStart() {
				pools += n.Node.Pool
			}
		}
		return pools
	}
	is("of another pool", fleet.Draining, "machine a1 belongs to pool p")
	if got := open(); got != "pq" {
		t.Errorf("without a mark the engines of %q could start work", got)
	}
	engineSays(1, "")
	is("fenced", fleet.Draining, "machine a1 belongs to pool p")
	if got := open(); got != "p" {
		t.Errorf("with a fence the engines of %q could start work", got)
	}
	drain("p/a1", true)
	is("drained in p", fleet.Draining, "bad fan")
	b.walk("a1", "q", fleet.StepRelease)
	is("handed over", fleet.Draining, "bad fan")
	drain("q/b1", false)
	if n := b.nodeView("p", "a1"); n.Drained != nil {
		t.Errorf("resumed by its other name: %+v", n.Drained)
	}
	is("resumed", fleet.Draining, "its engine has our fence (epoch 1)")
	engineSays(1, "maintenance")
	is("an administrator drains it there too", fleet.Draining, "maintenance")
	engineSays(0, "maintenance")
	is("without our fence", fleet.Draining, "maintenance")
	engineSays(0, "")
	eventually(t, "it is up", func() bool { return b.nodeView("q", "b1").Node.State == fleet.Up })
	b.launched(b.submit(in("q", gang(1, 8))))
}
