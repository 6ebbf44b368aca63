package decide_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/service/handover/decide"
)

// pool is an engine with one node on the machine, as its contract says.
type pool struct {
	name    string
	fence   *engine.NodeFence
	drained bool // by an administrator
	away    bool // the node's agent does not answer
	silent  bool // the engine does not answer
	foreign int  // work of others
	ours    int
}

// world is a machine with three engines, and a server that dies.
type world struct {
	t      *testing.T
	d      *rand.Rand
	now    time.Time
	owner  fleet.MachineOwner // in the journal
	pools  map[string]*pool
	memory map[string]*decide.Node // of the present process
	late   []func()                // calls that have not arrived
	// reported are the fences as the engines last told them, as epochs.
	reported map[string]uint64
	ended    map[string]int // hand-overs, by how they ended
	story    []string
	// unlocked: somebody removes fences past us. Then two engines may have work at once for a while, and what is
	// looked at is that no hand-over ends with that.
	unlocked bool
}

var poolNames = []string{"a", "b", "c"}

func (w *world) note(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%s  ", w.now.Format("15:04:05"))+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.story[max(0, len(w.story)-60):], "\n"))
}

func (w *world) forget() { // what a process knows
	w.memory = map[string]*decide.Node{}
	for _, name := range poolNames {
		w.memory[name] = &decide.Node{Name: name + "1", State: fleet.Up}
	}
}

func (w *world) input() *decide.Input {
	in := &decide.Input{Now: w.now, Owner: w.owner}
	for _, name := range poolNames {
		n := *w.memory[name]
		n.Fence = w.reported[name]
		in.Sides = append(in.Sides, decide.Side{Pool: name, Fences: true, Nodes: []decide.Node{n}})
		for i := range w.pools[name].ours {
			in.Work = append(in.Work, decide.Work{Job: job.ID(i + 1), Pool: name, Node: name + "1", Requeues: i%2 == 0})
		}
	}
	return in
}

// check looks for both engines' work on the machine.
func (w *world) check() {
	if w.unlocked {
		return
	}
	var work, open []string
	for _, name := range poolNames {
		p := w.pools[name]
		if p.ours+p.foreign > 0 {
			work = append(work, fmt.Sprintf("%s: %d of ours, %d of others", name, p.ours, p.foreign))
		}
		if p.fence == nil {
			open = append(open, name)
		}
	}
	if len(work) > 1 {
		w.fail("several engines have work on the machine: %v", work)
	}
	if len(open) > 1 {
		w.fail("several engines may start work: %v", open)
	}
}

// arrive is a call at an engine.
func (w *world) arrive(c *decide.Call) (contents *engine.NodeContents, err error) {
	p := w.pools[c.Pool]
	if p.silent {
		return nil, fmt.Errorf("no answer")
	}
	switch {
	case c.Verb == decide.Empty:
		out := &engine.NodeContents{At: w.now}
		if p.fence != nil {
			f := *p.fence
			out.Fence = &f
		}
		if p.away {
			out.Unknown = []string{"no agent"}
			return out, nil
		}
		for range p.foreign + p.ours {
			out.Work = append(out.Work, engine.NodeWork{Kind: "pod", Name: "x"})
		}
		return out, nil
	case p.fence != nil && p.fence.Epoch > c.Mark.Epoch:
		return nil, fmt.Errorf("conflict")
	case c.Verb == decide.Fence:
		f := c.Mark
		p.fence = &f
	case c.Verb == decide.Unfence:
		p.fence = nil
	}
	w.check()
	return nil, nil
}

// send is a call with what may become of it.
func (w *world) send(c *decide.Call) {
	n := w.memory[c.Pool]
	asked := w.now
	if c.Verb == decide.Fence || c.Verb == decide.Unfence {
		n.Contents, n.Listed, n.Checked = nil, nil, nil
	}
	var contents *engine.NodeContents
	err := fmt.Errorf("lost")
	switch chance := w.d.IntN(10); {
	case chance == 0:
	case chance == 1 && c.Verb != decide.Empty: // it arrives much later
		w.late = append(w.late, func() { w.note("%s %s %d arrives late", c.Verb, c.Pool, c.Mark.Epoch); _, _ = w.arrive(c) })
	case chance == 2: // the answer is lost
		_, _ = w.arrive(c)
	default:
		contents, err = w.arrive(c)
		if chance == 3 {
			w.late = append(w.late, func() { w.note("%s %s %d arrives again", c.Verb, c.Pool, c.Mark.Epoch); _, _ = w.arrive(c) })
		}
	}
	w.note("%s %s %d: %v", c.Verb, c.Pool, c.Mark.Epoch, err)
	n.Tried, n.Trouble = w.now, ""
	switch {
	case err != nil:
		n.Trouble = err.Error()
	case c.Verb == decide.Empty:
		n.Contents, n.Asked = contents, asked
	case c.Verb == decide.List:
		n.Listed = &decide.Listed{State: fleet.Up, At: w.now}
		if w.pools[c.Pool].drained || w.pools[c.Pool].fence != nil {
			n.Listed.State = fleet.Draining
		}
	case c.Verb == decide.Check:
		n.Checked = &decide.Checked{At: w.now, Text: "well"}
		if w.pools[c.Pool].away {
			n.Checked.Bad = "no agent"
		}
	default:
		n.Mark = decide.Mark{Epoch: c.Mark.Epoch, Fenced: c.Verb == decide.Fence, At: w.now}
	}
}

// report has the engine tell its nodes.
func (w *world) report(p *pool) {
	if w.reported[p.name] = 0; p.fence != nil {
		w.reported[p.name] = p.fence.Epoch
	}
}

// decideOnce decides and applies.
func (w *world) decideOnce() {
	in := w.input()
	out := decide.Decide(in)
	if again := decide.Decide(in); !reflect.DeepEqual(out, again) {
		w.fail("two decisions about the same differ: %+v %+v", out, again)
	}
	if out.Record != nil && out.Call != nil {
		w.fail("a record and a call at once")
	}
	w.checkRecord(out.Record)
	if r := out.Record; r != nil {
		if w.d.IntN(8) == 0 {
			w.note("it dies before it writes %s", r.Step)
			w.forget()
			return
		}
		w.note("record: %s of %s, back %v: %s", r.Step, r.Pool, r.Back, r.Evidence)
		if w.owner.Moving() && !r.Moving() {
			how := r.Pool
			if w.owner.Back {
				how += ", back"
			}
			w.ended[how]++
		}
		w.owner = *r
		w.owner.At = w.now
		w.check()
	}
	if len(out.Requeue) > 0 {
		w.pools[w.owner.Pool].ours--
	}
	if out.Call != nil {
		w.send(out.Call)
	}
	if out.Record == nil && out.Call == nil && w.owner.Moving() && out.Waits == "" {
		w.fail("nothing follows, and it waits for nothing: %+v", w.owner)
	}
	if w.d.IntN(30) == 0 {
		w.note("the server is killed")
		w.forget()
	}
}

// checkRecord looks whether a record may follow the present one.
func (w *world) checkRecord(r *fleet.MachineOwner) {
	switch was := w.owner; {
	case r == nil:
	case r.Epoch != was.Epoch || r.Machine != was.Machine:
		w.fail("a record of something else: %+v", r)
	case r.Pool != was.Pool && (was.Step != fleet.StepProve || was.Back || r.Pool != was.Next):
		w.fail("from %+v to %+v", was, r)
	case was.Step.Reached(fleet.StepAdmit) && r.Step != was.Step && was.Moving():
		for _, name := range poolNames {
			if n := w.memory[name]; name != r.Pool && (n.Contents == nil || !n.Contents.ProvedEmpty(was.Epoch) || w.now.Sub(n.Asked) > 30*time.Second) {
				w.fail("%s gets the machine without a proof of %s: %+v", r.Pool, name, n.Contents)
			}
		}
	case r.Step == fleet.StepCheck && (w.memory[r.Pool].Checked == nil || w.memory[r.Pool].Checked.Bad != ""):
		w.fail("the check of %s has not passed: %+v", r.Pool, w.memory[r.Pool].Checked)
	case r.Pool != was.Pool && !w.unlocked:
		if f := w.pools[was.Pool].fence; f == nil || f.Epoch != was.Epoch {
			w.fail("%s is admitted, and %s has the fence %v", r.Pool, was.Pool, f)
		}
		if p := w.pools[was.Pool]; p.ours+p.foreign > 0 {
			w.fail("%s is admitted, and %s has work", r.Pool, was.Pool)
		}
		if n := w.memory[was.Pool]; n.Contents == nil || !n.Contents.ProvedEmpty(was.Epoch) {
			w.fail("%s is admitted without a proof: %+v", r.Pool, n.Contents)
		}
	}
}

// disturb is what else happens.
func (w *world) disturb() {
	for _, name := range poolNames {
		p := w.pools[name]
		if w.d.IntN(5) == 0 {
			w.report(p)
		}
		switch w.d.IntN(14) {
		case 0, 1:
			if p.fence == nil {
				p.foreign++
			}
		case 2:
			if w.owner.MayPlace(name) && p.fence == nil {
				p.ours++
			}
		case 3, 4, 5:
			p.foreign = max(0, p.foreign-1)
		case 6, 7:
			p.ours = max(0, p.ours-1)
		case 8:
			p.away = w.d.IntN(3) == 0
		case 9:
			p.silent = w.d.IntN(4) == 0
		case 10:
			p.drained = w.d.IntN(4) == 0
		case 11:
			if w.unlocked && p.fence != nil && w.d.IntN(8) == 0 {
				w.note("somebody removes the fence of %s", name)
				p.fence = nil
			}
		}
	}
	w.check()
	if len(w.late) > 0 && w.d.IntN(6) == 0 {
		i := w.d.IntN(len(w.late))
		do := w.late[i]
		w.late = append(w.late[:i:i], w.late[i+1:]...)
		do()
	}
	o := &w.owner
	switch {
	case !o.Moving() && w.d.IntN(10) == 0:
		to := poolNames[w.d.IntN(len(poolNames))]
		if to == o.Pool {
			return
		}
		*o = fleet.MachineOwner{
			Machine: "m", Pool: o.Pool, Next: to, Step: fleet.StepAsked, Epoch: o.Epoch + 1, Fenced: o.Fenced, Requeue: w.d.IntN(2) == 0,
			Deadline: w.now.Add(time.Duration(w.d.IntN(2000)) * time.Second), At: w.now,
		}
		w.note("to %s, epoch %d", to, o.Epoch)
	case decide.CanWalkBack(o) && !o.Back && w.d.IntN(60) == 0:
		o.Back = true
		w.note("aborted")
	}
}

// TestRandomWorlds: whatever happens to calls, to engines and to the server, both engines never have work on
// the machine, no pool is admitted without a proof, and when nothing more goes wrong each hand-over ends.
//
// Seen to fail with: Unknown left out of the proof, and without the proof of all other pools before the check.
func TestRandomWorlds(t *testing.T) {
	ended := map[string]int{}
	for seed := range uint64(700) {
		w := &world{t: t, d: rand.New(rand.NewPCG(seed, 28)), now: now, ended: ended, unlocked: seed%2 == 1, pools: map[string]*pool{}, reported: map[string]uint64{"b": 1, "c": 1}}
		for _, name := range poolNames {
			w.pools[name] = &pool{name: name}
			if name != "a" {
				w.pools[name].fence = &engine.NodeFence{Epoch: 1}
			}
		}
		w.owner = fleet.MachineOwner{Machine: "m", Pool: "a", Epoch: 1, Fenced: true, At: now}
		w.forget()
		for range 400 {
			w.now = w.now.Add(time.Duration(w.d.IntN(8)) * time.Second)
			if w.d.IntN(3) > 0 {
				w.decideOnce()
			}
			w.disturb()
		}
		w.settle()
	}
	for _, how := range []string{"a, back", "a", "b, back", "b"} {
		if ended[how] < 100 {
			t.Errorf("hand-overs that ended as %q: %d", how, ended[how])
		}
	}
	t.Log(ended)
}

// settle lets everything go well until nothing moves.
func (w *world) settle() {
	w.d = rand.New(calm{})
	for _, p := range w.pools {
		p.away, p.silent, p.drained, p.foreign, p.ours = false, false, false, 0, 0
	}
	for _, do := range w.late {
		do()
	}
	for range 200 {
		w.now = w.now.Add(10 * time.Second)
		for _, p := range w.pools {
			w.report(p)
		}
		w.decideOnce()
	}
	for name, p := range w.pools {
		if w.owner.Moving() || (name == w.owner.Pool) != (p.fence == nil) {
			w.fail("it does not come to rest: %+v, and the fence of %s is %v", w.owner, name, p.fence)
		}
	}
}

// calm draws the largest number each time.
type calm struct{}

func (calm) Uint64() uint64 { return ^uint64(0) }
