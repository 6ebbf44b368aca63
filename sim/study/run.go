package study

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sim/sim"
	"github.com/coxswain-sched/coxswain/sim/trace"
)

// Study is one workload on one cluster under one policy.
type Study struct {
	Name   string // of the policy, for reports
	Log    *trace.Log
	Nodes  []fleet.Node
	Policy *account.Policy // nil: first come, first served with backfill behind the head
	Strict bool            // nothing passes the head of the queue
	Limits Limits
	Cycle  time.Duration // decide only so often, as Slurm's backfill does each 30 s; 0: at each event
	// Progress, if set, is called now and then with how many jobs have ended.
	Progress func(ended, of int)
	Clock    func() time.Time // for Result.Took; nil: it stays 0
}

// record is what became of one job.
type record struct {
	*trace.Job
	start, end time.Duration
	first      time.Duration // start that it was promised first; -1: never at the head
	preempted  int           // how often it was asked to make room
	started    bool
	ended      bool
	leaves     int // leaf switches that it spans; 0: one node, or none known
	nodes      []int32
}

// running gathers what happens while a study runs.
type running struct {
	Study
	sim     *sim.Sim
	records []record
	number  map[string]int32 // of a node by its name
	leaf    []string         // of a node
	inLeaf  map[string]int   // nodes below a leaf
	capacity
	use   use
	ended int
	queue widths
}

// capacity is what the fleet has.
type capacity struct {
	gpus int // devices; 0: the fleet has none and processors are counted
	cpus int
}

// jobWidth is how many devices, or processors, a job takes in thousandths.
func (c *capacity) jobWidth(j *trace.Job) int {
	switch {
	case c.gpus > 0 && j.Milli > 0:
		return j.Milli
	case c.gpus > 0:
		return 1000 * j.GPUs
	}
	return 1000 * j.CPUs
}

func (c *capacity) totalWidth() int {
	if c.gpus > 0 {
		return 1000 * c.gpus
	}
	return 1000 * c.cpus
}

// Run lets the whole workload run.
func (s Study) Run() *Result {
	r := &running{Study: s, number: map[string]int32{}, inLeaf: map[string]int{}}
	for i, n := range s.Nodes {
		r.gpus += len(n.Devices)
		r.cpus += int(min(n.Capacity.CPU, 1<<40) / 1000)
		r.number[n.Name] = int32(i)
		at := ""
		if len(n.Path) > 0 {
			at = n.Path[len(n.Path)-1]
		}
		r.leaf = append(r.leaf, at)
		r.inLeaf[at]++
	}
	var began time.Time
	if s.Clock != nil {
		began = s.Clock()
	}
	r.submitAll()
	steps := 0
	for r.sim.Step() {
		if steps++; steps%1024 == 0 && s.Progress != nil {
			s.Progress(r.ended, len(r.records))
		}
	}
	out := r.measureResult()
	if s.Clock != nil {
		out.Took = s.Clock().Sub(began)
		out.Seconds = out.Took.Seconds()
	}
	return out
}

// submitAll submits everything.
func (r *running) submitAll() {
	r.sim = sim.New(sched.Config{NoBackfill: r.Strict}, r.Nodes)
	r.sim.Watch = r.followStep
	if r.Policy != nil {
		r.sim.At(0, sched.PolicySet{Policy: r.Policy})
	}
	shapes := newShapes(r.Nodes, r.Limits)
	shapes.qosOf = defaultQOS(r.Policy)
	r.records = make([]record, len(r.Log.Jobs))
	for i := range r.Log.Jobs {
		j := &r.Log.Jobs[i]
		r.records[i] = record{Job: j, first: -1}
		r.sim.Submit(sim.Job{ID: job.ID(i + 1), Spec: shapes.specOf(j), Submit: r.nextCycleAt(j.Submit), Work: r.nextCycleAt(j.Run)})
	}
}

// defaultQOS says which QOS jobs have that name none, as no trace does, by the site's rules.
func defaultQOS(p *account.Policy) func(account, user string) string {
	if p == nil {
		return func(string, string) string { return "" }
	}
	book := fair.NewBook(p, account.NewTree(p), nil)
	return func(account, user string) string { return book.DefaultQOS(book.Find(account, user)) }
}

// nextCycleAt is when something is seen that happens after so long: starts are at whole
// cycles, so what is rounded up ends or arrives at one.
func (r *running) nextCycleAt(d time.Duration) time.Duration {
	if r.Cycle <= 0 {
		return d
	}
	return (d + r.Cycle - 1) / r.Cycle * r.Cycle
}

// followStep follows the simulation.
func (r *running) followStep(now time.Duration, events []sched.Event, decisions []sched.Decision) {
	r.use.closeSpan(now, r.idleNow())
	for _, e := range events {
		switch e := e.(type) {
		case sched.Submitted:
			x := &r.records[e.Job-1]
			if x.ended { // it made room, and waits again
				x.started, x.ended = false, false
				r.ended--
			}
			if !x.started {
				r.queue.add(r.jobWidth(x.Job), 1)
			}
		case sched.Released:
			x := &r.records[e.Job-1]
			if x.started && !x.ended {
				if x.ended, x.end = true, min(now, x.start+x.Run); x.preempted > 0 {
					x.end = now
				}
				r.ended++
				r.use.held -= r.jobWidth(x.Job)
			}
		}
	}
	for _, d := range decisions {
		switch d := d.(type) {
		case sched.Preempt:
			x := &r.records[d.Job-1]
			if x.preempted++; d.Mode == account.PreemptSuspend {
				r.use.held -= r.jobWidth(x.Job)
			}
		case sched.Resume:
			r.use.held += r.jobWidth(r.records[d.Job-1].Job)
		case sched.Start:
			r.startRecord(now, &r.records[d.Job-1], d.Claims)
		case sched.Promise:
			if x := &r.records[d.Job-1]; x.first < 0 && d.At != 0 && len(d.Nodes) > 0 {
				x.first = time.Duration(d.At)
			}
		}
	}
}

func (r *running) startRecord(now time.Duration, x *record, claims []fleet.Claim) {
	r.queue.add(r.jobWidth(x.Job), -1)
	r.use.held += r.jobWidth(x.Job)
	x.started, x.start, x.ended = true, now, false
	x.nodes = x.nodes[:0]
	leaves := map[string]bool{}
	for i := range claims {
		n := r.number[claims[i].Node]
		x.nodes = append(x.nodes, n)
		if len(claims) > 1 && r.leaf[n] != "" {
			leaves[r.leaf[n]] = true
		}
	}
	x.leaves = len(leaves)
}

// idleNow says how much is idle although some waiting job asks for no more.
func (r *running) idleNow() (blocked int) {
	idle := r.totalWidth() - r.use.held
	if least, ok := r.queue.leastWidth(); ok && least <= idle {
		return idle
	}
	return 0
}

// widths counts waiting jobs by what they take.
type widths struct{ count map[int]int }

func (w *widths) add(width, n int) {
	if w.count == nil {
		w.count = map[int]int{}
	}
	if w.count[width] += n; w.count[width] == 0 {
		delete(w.count, width)
	}
}

func (w *widths) leastWidth() (least int, ok bool) {
	for width := range w.count {
		if !ok || width < least {
			least, ok = width, true
		}
	}
	return least, ok
}

// use is what is held over time.
type use struct {
	now     time.Duration
	held    int // thousandths
	samples []sample
}

// sample is a stretch of time with one amount held.
type sample struct {
	from    time.Duration
	held    int
	blocked int
}

// closeSpan ends a stretch.
func (u *use) closeSpan(now time.Duration, blocked int) {
	if now > u.now || len(u.samples) == 0 {
		u.samples = append(u.samples, sample{u.now, u.held, blocked})
		u.now = now
	}
}
