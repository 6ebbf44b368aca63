package sched

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/share"
)

// Snapshot is the whole state of a core between two steps, as data: what Load
// makes of it decides on the same events as the core does that it was taken of, to
// the byte. It shares memory with that core which neither writes to.
//
// Most of it is what events say: nodes, rules, jobs. What does not follow from these
// is the core's Memory. A policy that adds to a core's state something that decisions
// depend on, and that does not follow from the events, adds it here.
type Snapshot struct {
	At      Instant         `json:"at"` // of the last step
	Config  Config          `json:"config"`
	Policy  *account.Policy `json:"policy,omitempty"`
	Nodes   []fleet.Node    `json:"nodes,omitempty"`
	Apart   []fleet.NodeKey `json:"apart,omitempty"`   // that have left while another node of their name was there
	Queue   []Waiting       `json:"queue,omitempty"`   // by number
	Running []Restored      `json:"running,omitempty"` // by number
	Added   []Added         `json:"added,omitempty"`   // by number of the job, then in the order in which they were added
	Settled []job.ID        `json:"settled,omitempty"` // running jobs that are not to grow any more
	Memory  Memory          `json:"memory"`
}

// Waiting is a queued job.
type Waiting struct {
	Submitted
	Gate  *reason.Reason `json:",omitempty"` // why it is blocked; nil: it is not
	Told  *reason.Reason `json:",omitempty"` // the first reason that it was told
	Since int64          `json:",omitempty"` // when, in Unix seconds
	Aging uint8          `json:",omitempty"` // how it stands to the limits on growing older
	Grows int64          `json:",omitempty"` // second since when it does, where that is later than it could
}

// Memory is what a core knows beside events.
type Memory struct {
	Unsettled bool            `json:"unsettled,omitempty"` // no step has seen the fleet
	Dirty     bool            `json:"dirty,omitempty"`     // a cycle is due
	Shaken    bool            `json:"shaken,omitempty"`    // the plan is to be made again
	Plan      Planned         `json:"plan,omitzero"`
	Promised  Promise         `json:"promised,omitzero"`
	Lines     []ClassMemory   `json:"lines,omitempty"` // by Job
	Ranks     *PriorityMemory `json:"ranks,omitempty"` // nil: the rules say nothing of order and usage
	ByName    *Timetable      `json:"by_name,omitempty"`
	Nominees  []Nominee       `json:"nominees,omitempty"`  // in the order in which they were made
	Pinched   Instant         `json:"pinched,omitempty"`   // a limit keeps a job from growing, until then at least
	TurnEnds  Instant         `json:"turn_ends,omitempty"` // when turns of those who share devices change
	Exempted  Instant         `json:"exempted,omitempty"`  // when somebody who was passed over may be taken
	Moves     *DefragMemory   `json:"moves,omitempty"`     // nil: there is nothing to know

	Seen    *share.Memory `json:"seen,omitempty"`    // what has arrived; nil: nobody learns from it
	Learned bool          `json:"learned,omitempty"` // that is yet to be told
}

// Timetable is what is planned node by node.
type Timetable struct {
	On    bool      `json:"on"`              // the last cycle planned node by node
	Slots []Slot    `json:"slots,omitempty"` // in queue order
	At    Instant   `json:"at"`              // of the last cycle
	Lost  []Promise `json:"lost,omitempty"`  // by jobs that are yet to be told
}

// Slot is what is planned for one job.
type Slot struct {
	Job    job.ID        `json:"job"`
	At     Instant       `json:"at"`
	Claims []fleet.Claim `json:"claims,omitempty"`
	Told   Promise       `json:"told,omitzero"`
}

// Planned is the reservation of the head.
type Planned struct {
	Job     job.ID        `json:"job"`
	At      Instant       `json:"at"`
	Counted bool          `json:"counted,omitempty"` // a number of nodes is kept, not named ones
	Nodes   []string      `json:"nodes,omitempty"`
	Claims  []fleet.Claim `json:"claims,omitempty"`
	Station queuePosition `json:"station,omitzero"` // where it stands, if it has a quota
}

// Nominee is a job for which something is held until others are gone.
type Nominee struct {
	Job    job.ID        `json:"job"`
	Claims []fleet.Claim `json:"claims"`
	Await  []job.ID      `json:"await"`
	Shed   []Member      `json:"shed,omitempty"`
	Began  Instant       `json:"began"`
	Until  Instant       `json:"until"`

	Flavors []string `json:"flavors,omitempty"`
	License string   `json:"license,omitempty"`
	Tail    Instant  `json:"tail,omitempty"`
	Home    bool     `json:"home,omitempty"` // it moves, and this was kept for it
}

// DefragMemory is what is known of moves.
type DefragMemory struct {
	Homes     []Home    `json:"homes,omitempty"`     // by job
	Proposal  *Proposal `json:"proposal,omitempty"`  // that is told
	Tried     job.ID    `json:"tried,omitempty"`     // a search was made for it, and nothing has changed since …
	Stirred   bool      `json:"stirred,omitempty"`   // … but for what others started or ended
	Anyway    bool      `json:"anyway,omitempty"`    // it fits once those have gone who go anyway
	Searched  Instant   `json:"searched,omitempty"`  // when the last search was made
	Searching Instant   `json:"searching,omitempty"` // when the next one is due; 0: when something has changed
}

// Home is a place that is kept for a running job that moves.
type Home struct {
	Job     job.ID        `json:"job"`
	Claims  []fleet.Claim `json:"claims"`
	Flavors []string      `json:"flavors,omitempty"`
	Began   Instant       `json:"began"`
	Until   Instant       `json:"until"`
}

// ClassMemory is what is known of a class of jobs that are alike.
type ClassMemory struct {
	Job      job.ID        `json:"job"` // one of the class
	Rest     uint8         `json:"rest,omitempty"`
	Why      reason.Reason `json:"why,omitzero"`
	Full     bool          `json:"full,omitempty"`     // its kind does not fit what is free
	Shadowed bool          `json:"shadowed,omitempty"` // nor beside what is planned
	Flavors  []string      `json:"flavors,omitempty"`  // that its jobs would be placed in
	Cut      int           `json:"cut,omitempty"`      // tasks that would be left out
	Over     bool          `json:"over,omitempty"`     // where they were placed they took more than their quota
}

// Snapshot copies the state. It costs a look at each job and node; what has to be
// put in order is left to Sort, for which the core is not needed.
func (c *Core) Snapshot() *Snapshot {
	s := &Snapshot{At: c.clock.now, Config: c.cfg, Policy: c.policy}
	s.Nodes = make([]fleet.Node, c.fleet.table.Len())
	for i := range s.Nodes {
		s.Nodes[i] = c.fleet.table.Node(i).Node
	}
	s.Apart = c.fleet.table.Apart()
	s.Queue = make([]Waiting, 0, len(c.queue.jobs))
	member := make(map[*jobClass]job.ID, len(c.queue.classes))
	for id, e := range c.queue.jobs {
		w := Waiting{Submitted: Submitted{Job: id, Spec: e.spec, Priority: e.priority, At: e.at, Fixed: e.fixed, Eligible: atSecond(e.eligible), Moved: e.moved}, Told: e.told, Since: e.since}
		w.Aging, w.Grows = uint8(e.aging), e.grows
		if e.blocked {
			w.Gate = e.gate
		}
		s.Queue = append(s.Queue, w)
		if m := member[e.class]; m == 0 || id < m {
			member[e.class] = id
		}
	}
	s.Running = make([]Restored, 0, len(c.runs.byJob))
	for _, r := range c.runs.byJob {
		if r.nominee != nil || r.target != nil {
			continue
		}
		s.Running = append(s.Running, c.asRestored(r))
		for _, a := range r.added {
			s.Added = append(s.Added, Added{Job: r.id, Claims: a.claims, Began: a.began, Stopping: a.stopping})
		}
		if r.growth.settled {
			s.Settled = append(s.Settled, r.id)
		}
	}
	s.Memory = c.copyMemory(member)
	return s
}

// asRestored is a run as an event.
func (c *Core) asRestored(r *run) Restored {
	x := Restored{Job: r.id, Spec: r.spec, Claims: r.claims, Until: orZero(r.until), Began: r.began, Submitted: r.submitted, Flavors: r.flavors, License: r.license, Priority: r.priority, Saved: r.move.savedAt, Stopping: r.stopping, Suspending: r.pause.asked, GivesWay: r.pause.givesWay, Turn: r.pause.turn, Tail: r.pause.tail, Moved: r.move.askedAt, GoesFor: r.move.startsJob, Begun: r.growth.allowed, Waits: r.waits}
	if p := r.pause.suspended; p != nil {
		x.Claims, x.Parked = p.full, &Parked{At: p.at, Left: p.left, Keeps: r.claims}
	}
	return x
}

// copyMemory copies what does not follow from events; member names a job of each class.
func (c *Core) copyMemory(member map[*jobClass]job.ID) Memory {
	m := Memory{Unsettled: c.fleet.dirty, Dirty: c.cycleDue, Shaken: c.planDirty, Promised: c.promised, TurnEnds: c.suspended.turnEnds, Exempted: c.preempt.exemptUntil, Pinched: c.elastic.limitedUntil, Ranks: c.priorityMemory(), Moves: c.defragMemory(), Seen: c.Learned(), Learned: c.forecast.learned}
	for _, n := range c.preempt.nominees {
		m.Nominees = append(m.Nominees, Nominee{n.entry.id, n.run.claims, n.await, n.additions, n.run.began, n.run.until, n.run.flavors, n.run.license, n.run.pause.tail, n.target != nil})
	}
	m.Plan = Planned{Job: c.plan.job, At: c.plan.at, Counted: c.plan.profile != nil, Claims: c.plan.claims, Station: c.plan.position}
	for _, pos := range c.plan.nodes {
		m.Plan.Nodes = append(m.Plan.Nodes, c.fleet.table.Label(int(pos)))
	}
	m.ByName = c.copyTimetable()
	for l, id := range member {
		x := ClassMemory{Job: id, Rest: uint8(l.waiting), Why: l.why, Full: l.kind.full, Shadowed: l.kind.blockedPlan == c.plan.version}
		x.Flavors, x.Cut, x.Over = c.demandMemory(l)
		m.Lines = append(m.Lines, x)
	}
	return m
}

// Sort puts a snapshot in order.
func (s *Snapshot) Sort() *Snapshot {
	slices.SortFunc(s.Queue, func(a, b Waiting) int { return cmp.Compare(a.Job, b.Job) })
	slices.SortFunc(s.Running, func(a, b Restored) int { return cmp.Compare(a.Job, b.Job) })
	slices.SortStableFunc(s.Added, func(a, b Added) int { return cmp.Compare(a.Job, b.Job) })
	slices.Sort(s.Settled)
	slices.SortFunc(s.Memory.Lines, func(a, b ClassMemory) int { return cmp.Compare(a.Job, b.Job) })
	return s
}

// Load returns a core in the state of a snapshot.
func Load(s *Snapshot) *Core {
	c := New(s.Config)
	c.clock.now = s.At
	c.adoptPolicy(s.Policy)
	for _, n := range s.Nodes {
		c.fleet.table.Put(n)
	}
	for _, k := range s.Apart {
		c.fleet.table.SetApart(k)
	}
	c.restorePriority(s.Memory.Ranks)
	c.restoreForecast(s.Memory.Seen)
	for i := range s.Running {
		c.restoreRun(s.Running[i])
	}
	for i := range s.Added {
		c.restoreAddition(s.Added[i])
	}
	for _, id := range s.Settled {
		c.runs.byJob[id].growth.settled = true
	}
	for i := range s.Queue {
		c.restoreWaiting(&s.Queue[i])
	}
	for i := range s.Memory.Nominees {
		c.restoreNominee(&s.Memory.Nominees[i])
	}
	c.restoreAccrual()
	c.restoreTargets(s.Memory.Moves)
	if !s.Memory.Unsettled {
		c.rebuildFleet()
	}
	c.restoreMemory(&s.Memory)
	return c
}

// restoreWaiting puts a job into its class, as it was.
func (c *Core) restoreWaiting(w *Waiting) {
	e := &queuedJob{id: w.Job, spec: w.Spec, priority: w.Priority, fixed: w.Fixed, at: w.At, eligible: int64(w.Eligible) / int64(time.Second), told: w.Told, since: w.Since, moved: w.Moved, aging: accrueState(w.Aging), grows: w.Grows}
	if w.Gate != nil {
		e.blocked, e.gate = true, w.Gate
	}
	var next Instant
	e.stage, next = c.stageOf(e)
	e.class = c.classOf(e)
	c.queue.jobs[w.Job] = e
	c.scheduleStage(e, next)
	if !e.blocked {
		e.class.jobs.insertSorted(e)
	}
}

// restoreNominee holds for a job what was held for it.
func (c *Core) restoreNominee(m *Nominee) {
	e := c.queue.jobs[m.Job]
	n := &nomination{entry: e, await: m.Await, additions: m.Shed}
	if m.Home {
		n.target = &migrationTarget{job: e.id, shape: class.Key(e.spec), flavors: m.Flavors}
	}
	e.class.jobs.remove(e)
	n.run = &run{
		id: e.id, spec: e.spec, policy: c.policyWithLicense(e.spec, m.License), claims: m.Claims,
		began: m.Began, until: m.Until, priority: e.priority, nominee: n,
		flavors: m.Flavors, license: m.License, pause: runPause{tail: m.Tail},
	}
	if n.target != nil {
		n.target.run = n.run
	}
	e.nominee = n
	c.preempt.nominees = append(c.preempt.nominees, n)
	c.holdRun(n.run)
}

// restoreMemory sets what does not follow from events.
func (c *Core) restoreMemory(m *Memory) {
	c.plan = headReservation{job: m.Plan.Job, at: m.Plan.At, claims: m.Plan.Claims, position: m.Plan.Station, version: 1}
	for _, l := range c.queue.classes {
		l.leader = l.jobs.firstJob()
		if l.leader != nil {
			c.updateHeads(l)
		}
	}
	for i := range m.Lines {
		c.restoreClass(&m.Lines[i])
	}
	if m.Plan.Counted {
		c.plan.profile = c.profileOf(c.queue.jobs[m.Plan.Job].class.kind)
		c.plan.profile.settleAt(m.Plan.At)
	}
	for _, name := range m.Plan.Nodes {
		c.plan.nodes = append(c.plan.nodes, int32(c.fleet.table.Find(fleet.ParseNodeKey(name))))
	}
	c.priority.stale = false
	c.restoreTimetable(m.ByName)
	c.chargeBudgets(c.clock.now)
	c.promised, c.planDirty, c.cycleDue, c.preempt.exemptUntil, c.elastic.limitedUntil, c.suspended.turnEnds = m.Promised, m.Shaken, m.Dirty, m.Exempted, m.Pinched, m.TurnEnds
	c.scheduleLimits()
	c.restoreDefrag(m.Moves)
	c.forecast.learned = m.Learned
}

func (c *Core) restoreClass(m *ClassMemory) {
	l := c.queue.jobs[m.Job].class
	c.restoreDemand(l, m.Flavors, m.Cut, m.Over)
	l.waiting, l.why, l.kind.full = waitState(m.Rest), m.Why, m.Full
	if m.Shadowed {
		l.kind.blockedPlan = c.plan.version
	}
	switch {
	case l.waiting == toLookAt:
		c.wakeClass(l)
	case l.waiting == forPlan:
		c.queue.forPlan = append(c.queue.forPlan, l)
		l.waitsForHead = true // it is looked at once more
	case l.waiting == forLimit:
		c.removeFromHeads(l)
		c.restoreLimitWait(l)
	case l.waiting == forQuota:
		c.removeFromHeads(l)
		l.listForQuota()
	case l.waiting.isBarred(), l.waiting == forNodes && l.jobs.len() > 0 && !l.jobs.firstJob().mayReserve():
		c.removeFromHeads(l)
	}
}

// orZero turns the instant that orders last into the interface's "0: no limit".
func orZero(t Instant) Instant {
	if t == never {
		return 0
	}
	return t
}

// Valid reports what no snapshot of a core has: jobs and nodes that its memory
// names and that are not there.
func (s *Snapshot) Valid() error {
	queued, nodes := map[job.ID]bool{}, map[string]bool{}
	for i := range s.Nodes {
		nodes[s.Nodes[i].Name], nodes[s.Nodes[i].Key().String()] = true, true
	}
	for i := range s.Queue {
		if s.Queue[i].Spec == nil {
			return fmt.Errorf("job %d waits and asks for nothing", s.Queue[i].Job)
		}
		if queued[s.Queue[i].Job] {
			return fmt.Errorf("job %d waits twice", s.Queue[i].Job)
		}
		queued[s.Queue[i].Job] = true
	}
	for i := range s.Running {
		if queued[s.Running[i].Job] {
			return fmt.Errorf("job %d waits and runs", s.Running[i].Job)
		}
	}
	running := map[job.ID]bool{}
	for i := range s.Running {
		running[s.Running[i].Job] = true
	}
	for _, id := range s.Settled {
		if !running[id] {
			return fmt.Errorf("job %d is not to grow and does not run", id)
		}
	}
	m := &s.Memory
	for i := range m.Lines {
		if !queued[m.Lines[i].Job] || m.Lines[i].Rest > uint8(forFairShare) {
			return fmt.Errorf("a line of jobs like job %d is remembered, which does not wait", m.Lines[i].Job)
		}
	}
	for i := range m.Nominees {
		if !queued[m.Nominees[i].Job] {
			return fmt.Errorf("something is held for job %d, which does not wait", m.Nominees[i].Job)
		}
	}
	if m.Moves != nil {
		if err := m.Moves.validateTargets(s.Running); err != nil {
			return err
		}
	}
	if m.ByName != nil {
		for _, slot := range m.ByName.Slots {
			if !queued[slot.Job] {
				return fmt.Errorf("a start is planned for job %d, which does not wait", slot.Job)
			}
		}
	}
	if m.Plan.Job != 0 && !queued[m.Plan.Job] {
		return fmt.Errorf("something is reserved for job %d, which does not wait", m.Plan.Job)
	}
	for _, name := range m.Plan.Nodes {
		if !nodes[name] {
			return fmt.Errorf("node %s is reserved and not there", name)
		}
	}
	return nil
}
