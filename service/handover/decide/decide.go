// Package decide decides what comes next of the hand-over of a machine from one pool to another: a pure
// function of the machine's record, of what the engines said and of what the ledger holds there. It has no
// clock, no I/O and no goroutine.
//
// # Guarantees
//
// The pool that owned a machine is fenced before anything is proved of it, and the proof that admits the new
// pool names the fence of this hand-over (its epoch). A node of which something could not be seen, or of
// which nobody answers, is never taken for empty. The new pool's nodes are opened only when the record says
// that it is the owner, and the old pool's stay fenced. A hand-over that is walked back is never continued.
//
// A decision does not depend on what was called before: after a crash, with the record alone, the same call
// follows again, and engines take each one as often as it comes.
package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Pauses until something is asked again.
const (
	proofAge   = 30 * time.Second // a proof that is older admits nobody
	checkAge   = 5 * time.Minute  // a check of a new node that is older ends no hand-over
	unreported = 10 * time.Minute // an admitted machine that its pool has not reported for so long has a remedy
	askAgain   = 5 * time.Second  // whether a node is empty, up or answers at last
	longWait   = 30 * time.Second // the same, when it has waited for longer than ten of these
	oftenMend  = 40 * time.Second // of our fence on a machine of which no hand-over is under way
	seldomMend = 10 * time.Minute // the same, if the engine has never told of a fence
)

// Input is what a decision depends on. It is not written to.
type Input struct {
	Now   time.Time
	Owner fleet.MachineOwner
	Since time.Time // of the last step, which may be before Owner.At: what it waits for was written since. Zero: Owner.At
	Sides []Side    // the pools that are configured and have, or had, a node on the machine
	Work  []Work    // what the ledger holds on the machine
	Pools []string  // that are configured; nil: nobody knows
	// Unheard are configured pools of which this process does not know the nodes yet: their engines have not answered.
	Unheard []string
}

// Side is a pool of the machine, with what this process has heard of it.
type Side struct {
	Pool      string
	Fences    bool // its engine can fence nodes
	Delegated bool // its own scheduler chooses nodes: we cannot keep off what waits there
	Reports   bool // it has told of a fence of ours on some node: so one that it does not tell of is not there
	Nodes     []Node
}

// Node is a node of a pool on the machine. Contents, Listed and Checked are forgotten when a call of Fence or
// Unfence is sent: what they tell is of after the last of these.
type Node struct {
	Name  string
	State fleet.NodeState // as the pool last said; "": it has not reported the node
	Fence uint64          // epoch of our fence there, as the pool last said; 0: none
	Unfit string          // which of our checks keeps new work off it as a whole; empty: none does

	Contents *engine.NodeContents // the last answer of Empty; nil: none
	Asked    time.Time            // when that was asked
	Listed   *Listed              // the last answer of List; nil: none
	Checked  *Checked             // the last answer of Check; nil: none
	Mark     Mark                 // what was done to our fence
	Trouble  string               // why the last call failed; empty: it did not
	Tried    time.Time            // when that call ended
}

// Listed is a node as its pool has just reported it.
type Listed struct {
	State fleet.NodeState // "": not at all
	Why   string          // of a state other than up
	At    time.Time
}

// Checked is what the checks of a node have just seen.
type Checked struct {
	Bad  string    // why no work should start on the node as a whole; empty: nothing says so
	Text string    // what was looked at, or why nobody could look
	At   time.Time // when they began
}

// Mark is the last answer to a call of Fence or Unfence.
type Mark struct {
	Epoch  uint64
	Fenced bool      // Fence; else Unfence
	At     time.Time // zero: none was answered
}

// Work is something of ours that holds a part of the machine.
type Work struct {
	Job        job.ID
	Name       string // as it is shown: "12_3"
	Pool, Node string
	Until      time.Time // it is ended then; zero: nobody knows
	Requeues   bool      // it may be requeued
	Ending     bool      // a record asks for its end
	Service    string    // the service of which it is a replica; empty: none
}

// Verb is what is asked of an engine.
type Verb string

// The verbs.
const (
	Fence   Verb = "fence"
	Unfence Verb = "unfence"
	Empty   Verb = "empty"
	List    Verb = "list"  // the nodes of the pool
	Check   Verb = "check" // the node, by the checks that there are
)

// Call is a call to the engine of a pool.
type Call struct {
	Verb Verb
	Pool string
	Node string // not of List
	Mark engine.NodeFence
}

// Output is what comes next: at most one of Record and Call, and jobs to requeue.
type Output struct {
	Record  *fleet.MachineOwner // nil: the step is not done. At is left to whoever writes it
	Call    *Call
	Requeue []job.ID
	Waits   string    // what the next step waits for, for people; empty: for nothing
	Next    time.Time // decide again then; zero: only when something changes
}

// plan is a decision on its way.
type plan struct {
	in  *Input
	o   fleet.MachineOwner
	out Output
}

// Decide decides.
func Decide(in *Input) Output {
	p := &plan{in: in, o: in.Owner}
	switch {
	case p.keepMarks(), !p.o.Moving():
	case p.o.Back:
		p.walkBack()
	case p.isLate():
		p.turnBack(fmt.Sprintf("its deadline %s passed", p.o.Deadline.UTC().Format(time.RFC3339)))
	case p.in.Pools != nil && CanWalkBack(&p.o) && !slices.Contains(p.in.Pools, p.o.Next):
		p.turnBack(fmt.Sprintf("pool %s is not configured any more", p.o.Next))
	default:
		p.nextStep()
	}
	return p.out
}

// isLate reports whether the deadline of the hand-over has passed while it can be walked back.
func (p *plan) isLate() bool {
	return !p.o.Deadline.IsZero() && !p.in.Now.Before(p.o.Deadline) && CanWalkBack(&p.o)
}

// CanWalkBack reports whether a hand-over is under way that has not admitted the new pool.
func CanWalkBack(o *fleet.MachineOwner) bool {
	return o.Moving() && o.Step != fleet.StepAdmit && o.Step != fleet.StepCheck
}

// turnBack begins to walk the hand-over back.
func (p *plan) turnBack(why string) {
	next := p.o
	next.Back, next.Evidence = true, why+p.o.WaitedFor()
	next.Waits = ""
	p.out.Record = &next
}

// stepDone is the record of a step that is done.
func (p *plan) stepDone(step fleet.HandoverStep, format string, args ...any) *fleet.MachineOwner {
	next := p.o
	next.Step, next.Evidence, next.Waits = step, fmt.Sprintf(format, args...), ""
	p.out.Record = &next
	return &next
}

// waitFor says what the next step waits for.
func (p *plan) waitFor(next time.Time, format string, args ...any) {
	p.out.Waits = fmt.Sprintf(format, args...)
	if p.out.Next.IsZero() || next.Before(p.out.Next) {
		p.out.Next = next
	}
}

// askPause is how long nothing is asked again: longer when the step has waited for long.
func (p *plan) askPause() time.Duration {
	if since := p.waitsSince(); !since.IsZero() && p.in.Now.Sub(since) > 10*longWait {
		return longWait
	}
	return askAgain
}

// sideOf is a pool of the machine; nil: it has no node there, as far as is known.
func (p *plan) sideOf(pool string) *Side {
	for i := range p.in.Sides {
		if s := &p.in.Sides[i]; s.Pool == pool && len(s.Nodes) > 0 {
			return s
		}
	}
	return nil
}

// needSide is a pool of the machine, or a wait until its engine has reported a node there: of the pool that has the
// machine, each node that it had when it was drained.
func (p *plan) needSide(pool string) *Side {
	s := p.sideOf(pool)
	if s == nil {
		p.waitFor(p.in.Now.Add(p.askPause()), "pool %s to report a node on machine %s", pool, p.o.Machine)
		return nil
	}
	if p.o.Nodes == "" || pool != p.o.Pool || p.o.Step.Reached(fleet.StepAdmit) {
		return s
	}
	names, _ := hostlist.Expand(p.o.Nodes) // as it was written
	for _, name := range names {
		if !slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Name == name }) {
			p.waitFor(p.in.Now.Add(p.askPause()), "pool %s to report node %s on machine %s, which was there when the hand-over began: it is not taken for empty", pool, name, p.o.Machine)
			return nil
		}
	}
	return s
}

// waitsSince is since when the next step waits.
func (p *plan) waitsSince() time.Time {
	if !p.in.Since.IsZero() {
		return p.in.Since
	}
	return p.o.At
}

// nextStep decides upon the step after the one that is done.
func (p *plan) nextStep() {
	switch p.o.Step {
	case fleet.StepDrain:
		p.fenceOld()
	case fleet.StepFence:
		p.proveEmpty()
	case fleet.StepProve:
		p.admitNew()
	case fleet.StepAdmit:
		p.checkNew()
	case fleet.StepCheck:
		if !p.othersProved() { // the server may have been away since
			return
		}
		next := p.stepDone(fleet.StepRelease, "pool %s has the machine", p.o.Pool)
		next.Next, next.Nodes, next.Deadline, next.Requeue = "", "", time.Time{}, false
	default:
		p.drainOld()
	}
}

// drainOld waits until nothing of ours is left in the old pool.
func (p *plan) drainOld() {
	old := p.needSide(p.o.Pool)
	switch {
	case old == nil:
	case p.sideOf(p.o.Next) == nil:
		p.needSide(p.o.Next)
	case !old.Fences:
		p.waitFor(time.Time{}, "an engine of pool %s that can fence nodes: this one cannot", old.Pool)
	case old.Delegated:
		p.stepDone(fleet.StepDrain, "pool %s chooses nodes itself: only its fence keeps work off", old.Pool).Nodes = namesOf(old)
	case p.waitForWork():
	default:
		p.stepDone(fleet.StepDrain, "nothing of ours was left in pool %s", old.Pool).Nodes = namesOf(old)
	}
}

// waitForWork waits for what the ledger holds on the machine, and reports whether there is anything. What
// may be requeued is, where the hand-over asks for that.
func (p *plan) waitForWork() bool {
	var names []string
	for i := range p.in.Work {
		w := &p.in.Work[i]
		if p.o.Requeue && w.Requeues && !w.Ending && !slices.Contains(p.out.Requeue, w.Job) {
			p.out.Requeue = append(p.out.Requeue, w.Job)
		}
		names = append(names, w.describe(p.o.Requeue, p.in.Now))
	}
	if len(names) == 0 {
		return false
	}
	p.waitFor(p.in.Now.Add(longWait), "%s", listNames(names))
	return true
}

// describe names a piece of work: "job 12 (until 14:02) on a1".
func (w *Work) describe(requeue bool, now time.Time) string {
	what := "job " + w.Name
	if w.Service != "" {
		what = fmt.Sprintf("the replica of service %s (job %s)", w.Service, w.Name)
	}
	switch {
	case w.Ending:
		what += ", which is being ended,"
	case requeue && !w.Requeues && w.Service == "":
		what += ", which may not be requeued," + endText(w.Until, now)
	case w.Service != "":
		what += ", until another is ready elsewhere,"
	default:
		what += endText(w.Until, now)
	}
	return what + " on " + w.Node
}

// endText tells when work is ended at the latest.
func endText(t, now time.Time) string {
	switch {
	case t.IsZero():
		return " (no time limit)"
	case t.Sub(now) < 24*time.Hour:
		return " (until " + t.UTC().Format("15:04 UTC") + ")"
	}
	return " (until " + t.UTC().Format("2006-01-02 15:04 UTC") + ")"
}

// mostListed is how many things a wait names.
const mostListed = 3

func listNames(names []string) string {
	if len(names) > mostListed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed], ", "), len(names)-mostListed)
	}
	return strings.Join(names, ", ")
}

// markOf is our fence of this hand-over.
func (p *plan) markOf(reason string) engine.NodeFence {
	return engine.NodeFence{Epoch: p.o.Epoch, Reason: reason}
}

// askEngine calls an engine, unless the last call for the node failed a moment ago.
func (p *plan) askEngine(verb Verb, pool string, n *Node, reason string) {
	if n.Trouble != "" {
		if again := n.Tried.Add(p.askPause()); p.in.Now.Before(again) {
			p.waitFor(again, "the engine of pool %s to %s node %s: %s", pool, words[verb], n.Name, n.Trouble)
			return
		}
		p.out.Waits = fmt.Sprintf("the engine of pool %s to %s node %s: %s", pool, words[verb], n.Name, n.Trouble)
	}
	p.out.Call = &Call{Verb: verb, Pool: pool, Node: n.Name, Mark: p.markOf(reason)}
	if verb == Empty || verb == List || verb == Check {
		p.out.Call.Mark = engine.NodeFence{}
	}
	if verb == List {
		p.out.Call.Node = ""
	}
}

// words are verbs as people read them.
var words = map[Verb]string{Fence: "fence", Unfence: "remove our fence of", Empty: "look at", List: "report", Check: "check"}

// fenceOld fences all nodes of the old pool.
func (p *plan) fenceOld() {
	old := p.needSide(p.o.Pool)
	if old == nil {
		return
	}
	for i := range old.Nodes {
		if n := &old.Nodes[i]; !n.isFenced(p.o.Epoch) {
			p.askEngine(Fence, old.Pool, n, p.closedReason())
			return
		}
	}
	p.stepDone(fleet.StepFence, "the engine of pool %s answered that %s closed (epoch %d)", old.Pool, nodesAre(old), p.o.Epoch)
}

func (p *plan) closedReason() string {
	return fmt.Sprintf("machine %s is handed over to pool %s", p.o.Machine, p.o.Next)
}

// namesOf is a host list of the nodes of a pool on the machine.
func namesOf(s *Side) string {
	var names []string
	for i := range s.Nodes {
		names = append(names, s.Nodes[i].Name)
	}
	return hostlist.Compress(names)
}

func nodesAre(s *Side) string {
	if len(s.Nodes) == 1 {
		return "node " + s.Nodes[0].Name + " is"
	}
	return fmt.Sprintf("%d nodes are", len(s.Nodes))
}

// isFenced reports whether the engine said that our fence of an epoch is on the node, and nothing after that.
func (n *Node) isFenced(epoch uint64) bool {
	if n.Contents != nil {
		return n.Contents.Fence != nil && n.Contents.Fence.Epoch == epoch
	}
	return !n.Mark.At.IsZero() && n.Mark.Fenced && n.Mark.Epoch == epoch
}

// isProved reports whether the node was proved empty by an answer that is fresh enough.
func (n *Node) isProved(epoch uint64, now time.Time) bool {
	if planted.UnreachableEmpty && n.Contents != nil && len(n.Contents.Unknown) > 0 {
		return true
	}
	return n.Contents != nil && n.Trouble == "" && now.Sub(n.Asked) < proofAge && n.Contents.ProvedEmpty(epoch)
}

// askProof asks for a proof of each node of the old pool that lacks one, and reports whether all have one. A
// fence that somebody has removed is set again first.
func (p *plan) askProof(old *Side) bool {
	for i := range old.Nodes {
		n := &old.Nodes[i]
		c := n.Contents
		fresh := c != nil && n.Trouble == ""
		switch {
		case n.isProved(p.o.Epoch, p.in.Now):
			continue
		case fresh && c.Fence != nil && c.Fence.Epoch > p.o.Epoch:
			p.waitFor(p.in.Now.Add(longWait), "the end of a later hand-over on node %s of pool %s: a fence of epoch %d is there, and this one is %d. Does another server work with this engine?", n.Name, old.Pool, c.Fence.Epoch, p.o.Epoch)
		case fresh && (c.Fence == nil || c.Fence.Epoch != p.o.Epoch):
			p.askEngine(Fence, old.Pool, n, p.closedReason())
		case fresh && (len(c.Unknown) > 0 || len(c.Work) > 0) && p.in.Now.Before(n.Asked.Add(p.askPause())):
			p.waitFor(n.Asked.Add(p.askPause()), "%s", contentsOf(n))
		default:
			p.askEngine(Empty, old.Pool, n, "")
			if p.out.Waits == "" && fresh && (len(c.Unknown) > 0 || len(c.Work) > 0) {
				p.out.Waits = contentsOf(n)
			}
		}
		return false
	}
	return true
}

// contentsOf tells what is on a node that is not empty.
func contentsOf(n *Node) string {
	if u := n.Contents.Unknown; len(u) > 0 {
		return fmt.Sprintf("a look at all of node %s, which is not taken for empty: %s", n.Name, listNames(u))
	}
	var names []string
	for _, w := range n.Contents.Work {
		text := w.Kind + " " + w.Name
		if w.Owner != "" {
			text += " of " + w.Owner
		}
		names = append(names, text)
	}
	return listNames(names) + " on " + n.Name
}

// proveEmpty waits until the old pool's nodes are proved empty.
func (p *plan) proveEmpty() {
	old := p.needSide(p.o.Pool)
	if old == nil {
		return
	}
	if held := p.waitForWork(); !planted.AdmitUnproved && !p.askProof(old) || held {
		return
	}
	p.stepDone(fleet.StepProve, "%s", proofOf(old))
}

// proofOf tells what was looked at.
func proofOf(old *Side) string {
	var parts []string
	for i := range old.Nodes {
		n := &old.Nodes[i]
		if n.Contents == nil {
			continue
		}
		looked := "everything"
		if len(n.Contents.Looked) > 0 {
			looked = strings.Join(n.Contents.Looked, ", ")
		}
		parts = append(parts, fmt.Sprintf("nothing was on node %s of pool %s at %s (looked at %s)", n.Name, old.Pool, n.Contents.At.UTC().Format(time.RFC3339), looked))
	}
	return strings.Join(parts, "; ")
}

// admitNew makes the new pool the owner, on a proof that is fresh.
func (p *plan) admitNew() {
	old := p.needSide(p.o.Pool)
	if old == nil || p.needSide(p.o.Next) == nil { // after the admission it cannot be walked back
		return
	}
	if held := p.waitForWork(); !planted.AdmitUnproved && !p.askProof(old) || held {
		return
	}
	next := p.stepDone(fleet.StepAdmit, "%s", proofOf(old))
	next.Pool, next.Last, next.Fenced, next.Open = p.o.Next, p.o.Pool, true, false
}

// othersProved reports whether the nodes of each pool but the new one are proved closed and empty. A proof that is
// lacking is asked for, or waited for.
func (p *plan) othersProved() bool {
	for i := range p.in.Sides {
		if s := &p.in.Sides[i]; s.Pool != p.o.Pool && s.Fences && !planted.AdmitUnproved && !p.askProof(s) {
			return false
		}
	}
	if slices.Contains(p.in.Unheard, p.o.Last) {
		p.waitFor(p.in.Now.Add(p.askPause()), "pool %s to report which nodes it has: it must have nothing on machine %s", p.o.Last, p.o.Machine)
		return false
	}
	return true
}

// checkNew opens the nodes of the new pool, and waits until they are up, no check of ours closes one, and each has
// passed checks that began after it was opened, where there are any. That may take hours, and somebody may remove a
// fence of ours in the meantime: so each other pool's nodes are proved closed and empty to the end.
func (p *plan) checkNew() {
	if !p.othersProved() {
		return
	}
	s := p.needSide(p.o.Pool)
	if s == nil {
		if since := p.waitsSince(); !since.IsZero() && p.in.Now.Sub(since) >= unreported && !slices.Contains(p.in.Unheard, p.o.Pool) {
			p.out.Waits += fmt.Sprintf(", since %s: start its agent there, or give the machine back: cox node move %s --to %s --force", since.UTC().Format("2006-01-02 15:04 UTC"), p.o.Machine, p.o.Last)
		}
		return
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		switch {
		case s.Fences && !n.isOpened(p.o.Epoch):
			p.askEngine(Unfence, s.Pool, n, "")
		case s.Fences && p.keepMark(s, n, true): // a call of before the admission that has arrived since
		case n.Trouble != "" && p.in.Now.Before(n.Tried.Add(p.askPause())):
			verb := List
			if n.Listed != nil && n.Listed.State == fleet.Up {
				verb = Check
			}
			p.waitFor(n.Tried.Add(p.askPause()), "the engine of pool %s to %s node %s: %s", s.Pool, words[verb], n.Name, n.Trouble)
		case n.Listed == nil:
			p.askEngine(List, s.Pool, n, "")
		case n.Listed.State == fleet.Up && n.Unfit != "":
			p.waitFor(p.in.Now.Add(p.askPause()), "node %s of pool %s to be fit for work: %s", n.Name, s.Pool, n.Unfit)
		case n.Listed.State == fleet.Up:
			if p.checkNode(s, n) {
				continue
			}
		case p.in.Now.Before(n.Listed.At.Add(p.askPause())):
			p.waitFor(n.Listed.At.Add(p.askPause()), "node %s of pool %s to be up; it is %s", n.Name, s.Pool, n.Listed)
		default:
			p.askEngine(List, s.Pool, n, "")
			p.out.Waits = fmt.Sprintf("node %s of pool %s to be up; it is %s", n.Name, s.Pool, n.Listed)
		}
		return
	}
	p.stepDone(fleet.StepCheck, "%s up in pool %s; %s", nodesAre(s), s.Pool, checksOf(s))
}

// checkNode reports whether a node that is up has passed its checks lately. A check that is lacking is asked for, or
// waited for.
func (p *plan) checkNode(s *Side, n *Node) bool {
	c := n.Checked
	bad := ""
	if c != nil && c.Bad != "" {
		bad = fmt.Sprintf("node %s of pool %s to pass its checks: %s", n.Name, s.Pool, c.Bad)
	}
	switch {
	case c != nil && bad == "" && p.in.Now.Sub(c.At) < checkAge:
		return true
	case bad != "" && p.in.Now.Before(c.At.Add(p.askPause())):
		p.waitFor(c.At.Add(p.askPause()), "%s", bad)
	default:
		p.askEngine(Check, s.Pool, n, "")
		if p.out.Waits == "" {
			p.out.Waits = bad
		}
	}
	return false
}

// checksOf tells what the checks of the new nodes have seen.
func checksOf(s *Side) string {
	var texts []string
	for i := range s.Nodes {
		texts = append(texts, s.Nodes[i].Name+": "+s.Nodes[i].Checked.Text)
	}
	return listNames(texts)
}

// String is the state as people read it.
func (l *Listed) String() string {
	state := string(l.State)
	if state == "" {
		state = "not reported"
	}
	if l.Why != "" {
		state += " (" + l.Why + ")"
	}
	return state
}

// isOpened reports whether the engine said that our fence of an epoch, or of one before, was removed.
func (n *Node) isOpened(epoch uint64) bool {
	return !n.Mark.At.IsZero() && !n.Mark.Fenced && n.Mark.Epoch == epoch
}

// walkBack removes the old pool's fence and ends the hand-over. If the old pool has the machine no more, or has not
// answered since this process began, its fence is left to keepMarks: until then it closes the node of the owner.
func (p *plan) walkBack() {
	if s := p.sideOf(p.o.Pool); s != nil && s.Fences && p.o.Step != fleet.StepAsked {
		for i := range s.Nodes {
			if n := &s.Nodes[i]; !n.isOpened(p.o.Epoch) {
				p.askEngine(Unfence, s.Pool, n, "")
				return
			}
		}
	}
	next := p.stepDone(fleet.StepRelease, "walked back: %s", p.o.Evidence)
	next.Next, next.Nodes, next.Back, next.Deadline, next.Requeue = "", "", false, time.Time{}, false
}

// keepMarks keeps our fence off the owner's nodes, and on those of other pools where a hand-over or an
// administrator has asked for that. It reports whether an engine has to be called. Of a machine that is handed
// over, it keeps those of pools that do not own it; from the admission on, the steps do that with a proof.
func (p *plan) keepMarks() bool {
	if p.o.Moving() && p.o.Step.Reached(fleet.StepAdmit) {
		return false
	}
	for i := range p.in.Sides {
		s := &p.in.Sides[i]
		owns := s.Pool == p.o.Pool
		if !s.Fences || !owns && !p.o.Fenced && !p.o.Open || owns && p.o.Moving() {
			continue
		}
		for k := range s.Nodes {
			if p.keepMark(s, &s.Nodes[k], owns || p.o.Open) {
				return true
			}
		}
	}
	return false
}

// keepMark mends our fence of a node, which is to be open or not, and reports whether its engine has to be called for
// that. What was called a moment ago the pool may not have reported yet.
func (p *plan) keepMark(s *Side, n *Node, open bool) bool {
	verb, reason := Unfence, ""
	switch {
	case n.State == "", n.Fence > p.o.Epoch, open == (n.Fence == 0):
		return false
	case !open:
		verb, reason = Fence, fmt.Sprintf("machine %s is of pool %s", p.o.Machine, p.o.Pool)
		if p.o.Last == "" && p.o.Reason != "" && !p.o.Moving() {
			reason += ": " + p.o.Reason // an administrator's, of a machine that was never handed over
		}
	}
	var again time.Time
	switch {
	case n.Trouble != "":
		again = n.Tried.Add(oftenMend)
	case n.Mark.Epoch == p.o.Epoch && n.Mark.Fenced == (verb == Fence):
		again = n.Mark.At.Add(oftenMend)
		if verb == Fence && !s.Reports {
			again = n.Mark.At.Add(seldomMend)
		}
	}
	if !n.Tried.IsZero() && p.in.Now.Before(again) {
		if p.out.Next.IsZero() || again.Before(p.out.Next) {
			p.out.Next = again
		}
		return false
	}
	p.out.Call = &Call{Verb: verb, Pool: s.Pool, Node: n.Name, Mark: p.markOf(reason)}
	return true
}
