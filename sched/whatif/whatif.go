// Package whatif lets the production core go on from a snapshot, on estimated run
// times, and says when each waiting job would start: as things are, and with a
// change (more nodes, other rules, another job).
//
// It is a function of its arguments: no clock, no random source. What comes in
// meanwhile from outside is left out: jobs that are submitted later, nodes that
// fail. Running jobs that are taken back for others end when their grace is over and,
// unless that cancels them, wait again. Jobs that are held or wait for another job are left as they are; those that
// wait for a time are let through at it. The work is bounded; what had not started
// when it ran out is said to be so.
package whatif

import (
	"container/heap"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
)

// Change is what is otherwise.
type Change struct {
	Nodes  []fleet.Node    // added, or put in the place of those of the same name
	Policy *account.Policy // instead of the present one; nil: that stays
	Submit []sched.Submitted
	Later  []LaterNode
}

// LaterNode is a node that is as it says from a time on, after the beginning.
type LaterNode struct {
	In   time.Duration
	Node fleet.Node
}

// Zero reports whether nothing is otherwise.
func (c *Change) Zero() bool { return len(c.Nodes)+len(c.Later)+len(c.Submit) == 0 && c.Policy == nil }

// Took estimates how long a job takes from its start on, if it has already run for
// so long. It is more than elapsed.
type Took func(id job.ID, spec *job.Spec, elapsed time.Duration) time.Duration

// Bounds end a run: so many steps of the core, or so far ahead. Stop is asked now
// and then; nil: never.
type Bounds struct {
	Steps   int           // 0: 200,000
	Horizon time.Duration // 0: 90 days
	Until   job.ID        // it ends when this job has started; 0: it goes on
	Names   int           // how many names of nodes are kept in all (Job.Nodes); 0: none
	Stop    func() bool
}

// Outcome is what became of the waiting jobs.
type Outcome struct {
	From    sched.Instant
	Jobs    []Job // those that waited, and those of the change, by number
	Use     []Use // devices in use, and how many there are, whenever it changed
	Taken   int   // times that a running job was ended for another one
	Bounded bool  // the work ran out before everything that can start had started
	Steps   int
}

// Job is one job that waited.
type Job struct {
	ID      job.ID
	Spec    *job.Spec
	Since   sched.Instant // it waits
	Start   sched.Instant // 0: not within the bounds
	Fixed   bool          // held, or waiting for what is not simulated
	Never   bool          // no fleet of nodes like these takes it
	Devices int
	Nodes   []string // where it starts, for the first of the jobs that start (Bounds.Names); nil: not kept
}

// Use is how much is used from an instant on.
type Use struct {
	At          sched.Instant
	Used, There int // devices; CPUs where no node has any
}

type run struct {
	core   *sched.Core
	took   Took
	b      Bounds
	now    sched.Instant
	ends   agenda
	alive  map[job.ID]*running
	asked  map[job.ID]sched.Submitted
	rest   map[job.ID]sched.Instant // of the work of jobs that saved what they had done
	jobs   map[job.ID]*Job
	left   int // waiting jobs that may start
	turns  int // starts so far
	meter  *meter
	bounds sched.Instant
	looked sched.Instant // when the core was last stepped at an instant that it wanted
	out    Outcome
}

type running struct {
	claims  []fleet.Claim
	turn    int // of which start: an end that was planned for an earlier one is void
	of      sched.Submitted
	ends    sched.Instant // as planned; 0: nobody knows
	stopped string        // how it is taken back for another one; "": it is not
}

// Run goes on from a state, which it changes nothing of.
func Run(s *sched.Snapshot, now sched.Instant, change *Change, took Took, b Bounds) *Outcome {
	if b.Steps == 0 {
		b.Steps = 200_000
	}
	if b.Horizon == 0 {
		b.Horizon = 90 * 24 * time.Hour
	}
	now = max(now, s.At)
	r := &run{
		core: sched.Load(s), took: took, b: b, now: now, bounds: now + sched.Instant(b.Horizon),
		alive: map[job.ID]*running{}, asked: map[job.ID]sched.Submitted{}, rest: map[job.ID]sched.Instant{}, jobs: map[job.ID]*Job{}, meter: newMeter(s.Nodes, change.allNodes()),
	}
	r.out.From = now
	for i := range s.Added {
		if a := &s.Added[i]; a.Stopping {
			heap.Push(&r.ends, planned{at: now + 1, job: a.Job, node: a.Claims[0].Node})
		}
	}
	for i := range s.Running {
		r.planEnd(&s.Running[i])
	}
	for i := range s.Queue {
		r.noteWaiting(&s.Queue[i])
	}
	for i := range change.Later {
		l := &change.Later[i]
		heap.Push(&r.ends, planned{at: now + max(sched.Instant(l.In), 1), set: &l.Node})
	}
	r.meter.noteUse(&r.out, now)
	r.stepCore(r.changeEvents(change))
	for r.goesOn() {
		r.stepCore(r.nextEvents())
	}
	r.sumUp()
	return &r.out
}

// planEnd plans the end of a job that runs.
func (r *run) planEnd(x *sched.Restored) {
	of := sched.Submitted{Job: x.Job, Spec: x.Spec, Priority: x.Priority, At: x.Submitted}
	r.alive[x.Job], r.asked[x.Job] = &running{claims: x.Claims, of: of}, of
	r.meter.takeClaims(x.Claims, 1)
	if x.Spec == nil {
		return // nobody knows how long
	}
	elapsed := time.Duration(0)
	if x.Began > 0 {
		elapsed = time.Duration(r.now - x.Began)
	}
	if x.Spec.Endless() && x.Until == 0 {
		return
	}
	end := r.now - sched.Instant(elapsed) + sched.Instant(r.took(x.Job, x.Spec, elapsed))
	switch {
	case x.Spec.Endless(): // it ends when its granted time does
		end = x.Until
	case x.Until != 0:
		end = min(end, x.Until)
	}
	r.alive[x.Job].ends = max(end, r.now+1)
	heap.Push(&r.ends, planned{at: r.alive[x.Job].ends, job: x.Job})
}

// noteWaiting notes a waiting job, and lets it through at its time if that is all that
// keeps it.
func (r *run) noteWaiting(w *sched.Waiting) {
	j := &Job{ID: w.Job, Spec: w.Spec, Since: w.At, Devices: devicesAsked(w.Spec)}
	r.jobs[w.Job], r.asked[w.Job] = j, w.Submitted
	switch {
	case w.Gate == nil:
	case w.Gate.Code == reason.BeginTime && w.Gate.Until > 0:
		heap.Push(&r.ends, planned{at: max(sched.Instant(w.Gate.Until)*sched.Instant(time.Second), r.now), job: w.Job, open: true})
	default:
		j.Fixed = true
		return
	}
	r.left++
}

// allNodes lists the nodes of the change as they are in the end.
func (c *Change) allNodes() []fleet.Node {
	out := slices.Clone(c.Nodes)
	for i := range c.Later {
		out = append(out, c.Later[i].Node)
	}
	return out
}

// changeEvents is the change as events.
func (r *run) changeEvents(c *Change) []sched.Event {
	var out []sched.Event
	for _, n := range c.Nodes {
		out = append(out, sched.NodeSet{Node: n})
	}
	if c.Policy != nil {
		out = append(out, sched.PolicySet{Policy: c.Policy})
	}
	for _, s := range c.Submit {
		r.asked[s.Job] = s
		r.jobs[s.Job] = &Job{ID: s.Job, Spec: s.Spec, Since: s.At, Devices: devicesAsked(s.Spec)}
		r.left++
		out = append(out, s)
	}
	return out
}

func (r *run) goesOn() bool {
	if r.left == 0 || r.b.Until != 0 && (r.jobs[r.b.Until] == nil || r.jobs[r.b.Until].Start != 0) {
		return false
	}
	if r.out.Steps >= r.b.Steps || r.out.Steps%64 == 1 && r.b.Stop != nil && r.b.Stop() {
		r.out.Bounded = true
		return false
	}
	at, ok := r.nextInstant()
	if ok && at > r.bounds {
		r.out.Bounded, ok = true, false
	}
	return ok
}

// nextInstant is the next instant at which something happens.
func (r *run) nextInstant() (sched.Instant, bool) {
	next := r.core.Next()
	if next != 0 { // what changes by time alone is looked at more rarely the farther ahead it is
		next = max(next, r.looked+max(sched.Instant(time.Minute), (r.now-r.out.From)/100))
	}
	switch {
	case len(r.ends) == 0 && next == 0:
		return 0, false
	case len(r.ends) == 0 || next != 0 && next < r.ends[0].at:
		return max(next, r.now+1), true
	}
	return r.ends[0].at, true
}

// nextEvents lets time pass until something happens, and is what happens.
func (r *run) nextEvents() []sched.Event {
	r.now, _ = r.nextInstant()
	if next := r.core.Next(); next != 0 && next <= r.now {
		r.looked = r.now
	}
	var out []sched.Event
	for len(r.ends) > 0 && r.ends[0].at <= r.now {
		p := heap.Pop(&r.ends).(planned)
		switch {
		case p.set != nil:
			out = append(out, sched.NodeSet{Node: *p.set})
			continue
		case p.open:
			out = append(out, sched.Unblocked{Job: p.job})
			continue
		case p.node != "":
			out = append(out, sched.Dropped{Job: p.job, Node: p.node})
			continue
		}
		if x := r.alive[p.job]; x != nil && x.turn == p.turn {
			r.freeJob(p.job)
			out = append(out, sched.Released{Job: p.job})
			out = r.requeueJob(x, out)
		}
	}
	return out
}

// preemptJob has a running job end for another one, once its grace is over.
func (r *run) preemptJob(d sched.Preempt) {
	x := r.alive[d.Job]
	if x == nil || x.stopped != "" {
		return
	}
	x.stopped = d.Mode
	r.out.Taken++
	heap.Push(&r.ends, planned{at: r.now + max(sched.Instant(d.Grace), 1), job: d.Job, turn: x.turn})
}

// requeueJob has a job that was taken back wait for another start: for the rest of its work
// if it had saved what it did or was suspended, for all of it if not. That a
// suspended job goes on where it was, before others, is left out.
func (r *run) requeueJob(x *running, out []sched.Event) []sched.Event {
	switch {
	case x.of.Spec == nil || x.stopped == "" || x.stopped == account.PreemptCancel || x.ends != 0 && x.ends <= r.now:
		return out
	case (x.stopped == account.PreemptCheckpoint || x.stopped == account.PreemptSuspend) && x.ends != 0:
		r.rest[x.of.Job] = x.ends - r.now
	}
	return append(out, x.of)
}

func (r *run) freeJob(id job.ID) {
	r.meter.takeClaims(r.alive[id].claims, -1)
	delete(r.alive, id)
}

func (r *run) stepCore(events []sched.Event) {
	r.out.Steps++
	for _, d := range r.core.Step(r.now, events...) {
		switch d := d.(type) {
		case sched.Start:
			r.startJob(d)
		case sched.Preempt:
			r.preemptJob(d)
		case sched.Shrink: // as long as it may take
			heap.Push(&r.ends, planned{at: r.now + max(sched.Instant(d.Grace), 1), job: d.Job, node: d.Node})
		}
	}
	r.meter.noteUse(&r.out, r.now)
}

func (r *run) startJob(d sched.Start) {
	of, ok := r.asked[d.Job]
	if !ok {
		return
	}
	if j := r.jobs[d.Job]; j != nil && j.Start == 0 {
		j.Start = max(r.now, 1)
		r.left--
		if n := len(d.Claims); n > 0 && n <= r.b.Names {
			r.b.Names -= n
			j.Nodes = make([]string, n)
			for i := range d.Claims {
				j.Nodes[i] = d.Claims[i].Node
			}
		}
	}
	r.turns++
	x := &running{claims: d.Claims, turn: r.turns, of: of}
	r.alive[d.Job] = x
	r.meter.takeClaims(d.Claims, 1)
	if of.Spec.Endless() && d.Until == 0 {
		return
	}
	work := sched.Instant(r.took(d.Job, of.Spec, 0))
	if rest := r.rest[d.Job]; rest != 0 {
		work = rest
	}
	end := r.now + max(work, 1)
	switch {
	case of.Spec.Endless():
		end = d.Until
	case d.Until != 0:
		end = min(end, d.Until)
	}
	x.ends = max(end, r.now+1)
	heap.Push(&r.ends, planned{at: x.ends, job: d.Job, turn: r.turns})
}

// sumUp sums up: what still runs goes on to its end, for the sake of what is in use.
func (r *run) sumUp() {
	for len(r.ends) > 0 && r.left == 0 {
		if p := heap.Pop(&r.ends).(planned); r.alive[p.job] != nil && r.alive[p.job].turn == p.turn {
			r.now = max(r.now, p.at)
			r.freeJob(p.job)
			r.meter.noteUse(&r.out, r.now)
		}
	}
	ids := make([]job.ID, 0, len(r.jobs))
	for id := range r.jobs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		j := r.jobs[id]
		j.Never = j.Start == 0 && !j.Fixed && r.core.Feasible(j.Spec) != nil
		r.out.Jobs = append(r.out.Jobs, *j)
	}
}

// planned is something that is to happen.
type planned struct {
	at   sched.Instant
	job  job.ID
	open bool // its time has come; else it ends
	turn int
	set  *fleet.Node // a node that is so from then on
	node string      // what was added to it on this node goes, not the job; empty: nothing
}

type agenda []planned

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if a[i].at != a[j].at {
		return a[i].at < a[j].at
	}
	return a[i].job < a[j].job
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(planned)) }
func (a *agenda) Pop() any {
	old := *a
	x := old[len(old)-1]
	*a = old[:len(old)-1]
	return x
}
