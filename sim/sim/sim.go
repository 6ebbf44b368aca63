// Package sim runs the core against invented time: jobs that are submitted at
// known instants and run for known durations, on nodes that all work. Decisions
// take effect at once and cost nothing.
//
// The core is the production one. What is left out is everything outside it:
// engines, failures, the time that a launch or a proof of the end takes.
package sim

import (
	"container/heap"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// Job is one job of a simulation. An elastic one grows and shrinks as it would; how long
// it works does not depend on that.
type Job struct {
	ID       job.ID
	Spec     *job.Spec
	Priority int64
	Submit   time.Duration // after the start of the simulation
	Work     time.Duration // how long it works, if its limit does not end it before

	// Peers, unless zero, is a number that jobs share which work together: none
	// of them works before all of them run, and meanwhile they hold what they
	// have. It stands for tasks of one gang that were submitted one by one.
	Peers int
}

// Outcome is what became of a job. Times are after the start of the simulation.
type Outcome struct {
	Job      job.ID
	Promised []sched.Promise
	Started  bool
	Start    time.Duration
	Until    time.Duration // when its limit ends it; 0: no limit
	Claims   []fleet.Claim
	Ended    bool
	End      time.Duration

	Preempted int // how often it made room for another job
}

// Sim is a simulation. It is not safe for concurrent use.
type Sim struct {
	Core *sched.Core
	Now  time.Duration
	// Watch, if set, is called after each step of the core with what it was told
	// and what it decided.
	Watch func(now time.Duration, events []sched.Event, decisions []sched.Decision)
	// OneByOne lets the core decide after each single event; otherwise it is told
	// of all events of an instant first.
	OneByOne bool

	jobs  map[job.ID]*state
	order []job.ID
	queue agenda
	seq   int

	waiting int // submitted and not started
	idle    int // steps in a row for which nothing was planned
}

type state struct {
	Job
	Outcome
	left   time.Duration // of its work
	since  time.Duration // when it began to work, or went on
	works  bool
	ends   int           // the item of its planned end; 0: none
	leaves string        // the mode in which it makes room; empty: it does not
	held   bool          // it is suspended
	limit  time.Duration // of its time, as long as it is suspended; 0: none
}

// New returns a simulation of a fleet.
func New(cfg sched.Config, nodes []fleet.Node) *Sim {
	s := &Sim{Core: sched.New(cfg), jobs: map[job.ID]*state{}}
	for _, n := range nodes {
		s.At(0, sched.NodeSet{Node: n})
	}
	return s
}

// Submit plans the submission of a job.
func (s *Sim) Submit(j Job) {
	if s.jobs[j.ID] != nil {
		panic(fmt.Sprintf("sim: job %d was submitted before", j.ID))
	}
	s.jobs[j.ID] = &state{Job: j, Outcome: Outcome{Job: j.ID}, left: j.Work}
	s.order = append(s.order, j.ID)
	s.waiting++
	s.At(j.Submit, sched.Submitted{Job: j.ID, Spec: j.Spec, Priority: j.Priority, At: sched.Instant(j.Submit)})
}

// At plans any other event.
func (s *Sim) At(when time.Duration, e sched.Event) {
	s.seq++
	heap.Push(&s.queue, item{when, s.seq, e})
}

// Run lets time pass until nothing is planned any longer and returns the outcomes
// in order of submission. Jobs that have not ended then never will.
func (s *Sim) Run() []Outcome {
	for s.Step() {
	}
	return s.Outcomes()
}

// Outcomes returns what has become of the jobs so far, in order of submission.
func (s *Sim) Outcomes() []Outcome {
	out := make([]Outcome, 0, len(s.order))
	for _, id := range s.order {
		out = append(out, s.jobs[id].Outcome)
	}
	return out
}

// Step goes on to the next planned instant and lets everything happen that is
// planned for it. It returns false if nothing is planned.
func (s *Sim) Step() bool {
	if !s.advanceTime() {
		return false
	}
	var events []sched.Event
	for len(s.queue) > 0 && s.queue[0].when == s.Now { // what releases a job may add to it
		next := heap.Pop(&s.queue).(item)
		e := next.event
		if r, ok := e.(sched.Released); ok {
			if j := s.jobs[r.Job]; j != nil && !s.releaseJob(j, next.seq) {
				continue
			}
		}
		if events = append(events, e); s.OneByOne {
			break
		}
	}
	decisions := s.Core.Step(sched.Instant(s.Now), events...)
	for _, d := range decisions {
		s.applyDecision(d)
	}
	if s.Watch != nil {
		s.Watch(s.Now, events, decisions)
	}
	return true
}

// maxIdle bounds how often in a row the core is stepped for the sake of time alone
// after all that was planned has happened: what waits then may wait for ever.
const maxIdle = 10_000

// advanceTime goes to the next instant at which something is planned or the core wants
// to be stepped, and reports whether there is one.
func (s *Sim) advanceTime() bool {
	next := time.Duration(s.Core.Next())
	switch {
	case len(s.queue) > 0 && (next == 0 || next >= s.queue[0].when):
		s.Now = s.queue[0].when
	case next == 0 || len(s.queue) == 0 && (s.waiting == 0 || s.idle >= maxIdle):
		return false
	default:
		s.Now = max(next, s.Now+1)
	}
	if s.idle++; len(s.queue) > 0 {
		s.idle = 0
	}
	return true
}

func (s *Sim) applyDecision(d sched.Decision) {
	switch d := d.(type) {
	case sched.Promise:
		if j := s.jobs[d.Job]; j != nil {
			j.Promised = append(j.Promised, d)
		}
	case sched.Start:
		j := s.jobs[d.Job]
		s.waiting, s.idle = s.waiting-1, 0
		j.Started, j.Start, j.Until, j.Claims, j.leaves = true, s.Now, time.Duration(d.Until), d.Claims, ""
		for _, p := range s.readyPeers(j) {
			s.planEnd(p)
		}
		if j.Spec.Elastic() {
			s.At(s.Now, sched.Begun{Job: d.Job})
		}
	case sched.Preempt:
		if j := s.jobs[d.Job]; j != nil {
			s.preemptJob(j, d)
		}
	case sched.Resume:
		if j := s.jobs[d.Job]; j != nil && j.held {
			s.resumeJob(j)
		}
	case sched.Shrink: // what is asked back goes at once
		s.At(s.Now, sched.Dropped{Job: d.Job, Node: d.Node})
	}
}

// readyPeers lists the jobs that begin to work because one has started.
func (s *Sim) readyPeers(j *state) []*state {
	if j.Peers == 0 {
		return []*state{j}
	}
	var all []*state
	for _, id := range s.order {
		if p := s.jobs[id]; p.Peers == j.Peers {
			if !p.Started {
				return nil
			}
			all = append(all, p)
		}
	}
	return all
}

// planEnd has a job work, until its work is done or its limit ends it.
func (s *Sim) planEnd(j *state) {
	end := s.Now + j.left
	if j.Until != 0 {
		end = min(end, j.Until)
	}
	j.since, j.works = s.Now, true
	s.At(end, sched.Released{Job: j.ID})
	j.ends = s.seq
}

// stopWork has a job work no more, and keeps count of what it has done.
func (s *Sim) stopWork(j *state) {
	if j.works {
		j.left = max(j.left-(s.Now-j.since), 1)
	}
	j.works, j.ends = false, 0
}

// releaseJob notes that a job has let go what it held, by an item of the agenda; false: that
// is no longer how it ends. One that made room waits again, unless that ended it for good.
func (s *Sim) releaseJob(j *state, item int) bool {
	switch {
	case !j.Started || j.ends != item && j.ends != 0 || j.held:
		return false
	case j.leaves == "" || j.leaves == account.PreemptCancel:
		j.Ended, j.End, j.ends = true, s.Now, 0
		return true
	case j.leaves == account.PreemptCheckpoint:
		s.stopWork(j)
	default:
		j.left, j.works, j.ends = j.Work, false, 0 // from its beginning
	}
	j.Started, j.leaves = false, ""
	s.waiting++
	s.At(s.Now, sched.Submitted{Job: j.ID, Spec: j.Spec, Priority: j.Priority, At: sched.Instant(j.Submit)})
	return true
}

// preemptJob has a running job make room: at once by being suspended, else when its grace is
// over. One that ends before that by itself does.
func (s *Sim) preemptJob(j *state, d sched.Preempt) {
	switch {
	case !j.Started || j.Ended || j.leaves != "":
		return
	case d.Mode == account.PreemptSuspend && j.held:
		return
	case d.Mode == account.PreemptSuspend:
		s.stopWork(j)
		j.Preempted++
		j.held, j.limit = true, 0
		if j.Until != 0 {
			j.limit = max(j.Until-s.Now, 1)
		}
		s.At(s.Now, sched.Suspended{Job: j.ID})
		return
	}
	gone := s.Now + d.Grace
	if j.works && gone >= min(j.since+j.left, orNever(j.Until)) {
		return
	}
	j.Preempted++
	j.leaves, j.held = d.Mode, false
	s.At(gone, sched.Released{Job: j.ID})
	j.ends = s.seq
}

// resumeJob lets a suspended job go on. Its time limit stood still.
func (s *Sim) resumeJob(j *state) {
	j.held = false
	if j.limit != 0 {
		j.Until = s.Now + j.limit
		s.At(s.Now, sched.Extended{Job: j.ID, Until: sched.Instant(j.Until)})
	}
	s.planEnd(j)
}

// orNever is a time, or the last one there is where it is 0.
func orNever(t time.Duration) time.Duration {
	if t == 0 {
		return math.MaxInt64
	}
	return t
}

// Idle lists the jobs that have started and not ended, by number: once Run has
// returned, those that hold resources for ever.
func (s *Sim) Idle() []job.ID {
	var out []job.ID
	for _, id := range s.order {
		if j := s.jobs[id]; j.Started && !j.Ended {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

type item struct {
	when  time.Duration
	seq   int
	event sched.Event
}

// agenda is a heap of events by instant, then in the order in which they were planned.
type agenda []item

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if a[i].when != a[j].when {
		return a[i].when < a[j].when
	}
	return a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(item)) }
func (a *agenda) Pop() any {
	old := *a
	x := old[len(old)-1]
	*a = old[:len(old)-1]
	return x
}
