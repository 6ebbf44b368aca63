// Package study compares hand-over on demand with static splits of a fleet: recorded batch jobs in one
// pool, the load of inference services in another one, both on the same machines.
//
// Batch jobs run through the production core on simulated time (sim/sim); their run times are estimated
// by sched/whatif's History, as in a server. Machines move by demand.Decide, with the drains, requeues and
// starts of replicas that follow. Services are a fluid model: a request is GPU-seconds, a replica serves
// so many of them a second, and a request that waits longer than the objective is a miss.
//
// Left out: failures, the steps of a hand-over one by one (they take demand.StepsTake together), and
// everything that the fluid model of services leaves out (batches, caches, single tokens).
//
// A study is deterministic by its seed.
package study

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/whatif"
	"github.com/coxswain-sched/coxswain/service/handover/demand"
	"github.com/coxswain-sched/coxswain/sim/sim"
	"github.com/coxswain-sched/coxswain/sim/study"
	"github.com/coxswain-sched/coxswain/sim/trace"
)

// The two pools.
const (
	Batch    = "batch"
	Services = "services"
)

// Study is one fleet with its work.
type Study struct {
	Name     string
	Machines int // of PerNode GPUs each
	PerNode  int
	Batch    int              // machines of the batch pool at the beginning; the services have the others
	Rules    account.Handover // without pools: a static split
	Jobs     []trace.Job      // by submission
	Services []Service
	Saves    time.Duration                           // jobs save a checkpoint so often, and go on from it; 0: a requeue loses all
	Say      func(now time.Duration, m *demand.Move) // of each move; nil: nobody listens
	From, To time.Duration                           // jobs submitted in this time are counted, and what is used in it; it ends with To
}

// Result is what came of it. Times are seconds, shares are between 0 and 1.
type Result struct {
	Name string

	Jobs, Unstarted   int     // submitted in the counted time; of these, not started at its end
	MeanWait, P95Wait float64 // of jobs that have not started, until the end
	Slowdown          float64 // mean, bounded at 10 s
	Requeued          int
	LostHours         float64 // GPU-hours of work of requeued jobs

	Requests, Misses float64 // misses: the part of the requests
	Use              float64 // GPU time that did work which counts, of both pools, of all GPU time
	BatchShare       float64 // mean part of the machines that the batch pool has
	Moves, Back      int     // hand-overs that ended; that were walked back
}

// node is a machine of the fleet.
type node struct {
	name     string
	owner    string
	to       string // where it is on the way to
	ready    time.Duration
	empty    bool // it is drained, and the other steps end at ready
	due      time.Duration
	force    bool // requeue what runs there at due
	came     time.Duration
	moved    bool
	tried    time.Duration
	wasTried bool
}

// batchJob is a job with what became of it.
type batchJob struct {
	*trace.Job
	id      job.ID
	spec    *job.Spec
	first   time.Duration // its first start
	start   time.Duration
	end     time.Duration
	began   bool
	running bool
	ended   bool
	takes   map[string]int
	saved   time.Duration // of its work, before this start
}

type run struct {
	Study
	now      time.Duration
	sim      *sim.Sim
	nodes    map[string]*node
	hosts    []*host
	jobs     []*batchJob
	waiting  map[job.ID]*batchJob
	on       map[string]map[job.ID]*batchJob
	services []*serving
	history  *whatif.History
	memory   demand.Memory
	share    float64
	ticks    int
	out      Result
	used     float64 // GPU-seconds of work of jobs in the counted time
}

// Run runs the study.
func (s Study) Run() *Result {
	r := &run{Study: s, nodes: map[string]*node{}, waiting: map[job.ID]*batchJob{}, on: map[string]map[job.ID]*batchJob{}, history: whatif.NewHistory()}
	var nodes []fleet.Node
	for i := range s.Machines {
		n := &node{name: fmt.Sprintf("m%03d", i+1), owner: Services}
		if i < s.Batch {
			n.owner = Batch
		}
		r.nodes[n.name] = n
		r.hosts = append(r.hosts, &host{node: n, free: s.PerNode, runs: map[*serving]int{}})
		nodes = append(nodes, r.coreNode(n))
	}
	r.sim = sim.New(sched.Config{}, nodes)
	r.sim.Watch = r.followCore
	specOf := study.Specs(nodes, study.Rounded)
	for i := range s.Jobs {
		j := &batchJob{Job: &s.Jobs[i], id: job.ID(i + 1)}
		j.spec = specOf(j.Job)
		r.jobs = append(r.jobs, j)
		r.sim.Submit(sim.Job{ID: j.id, Spec: j.spec, Submit: j.Submit, Work: j.Run})
	}
	for i := range s.Services {
		r.services = append(r.services, &serving{Service: &s.Services[i]})
	}
	for ; r.now < s.To; r.now += Tick {
		r.passTick()
	}
	return r.sumUp()
}

func (r *run) coreNode(n *node) fleet.Node {
	out := fleet.Node{Name: n.name, Pool: Batch, State: fleet.Up, Capacity: resource.Vector{CPU: resource.Unlimited, Memory: resource.Unlimited}}
	if n.owner != Batch || n.to != "" {
		out.State = fleet.Draining
	}
	for i := range r.PerNode {
		out.Devices = append(out.Devices, fleet.Device{Index: i, Minor: -1, Kind: "gpu", NUMA: -1, Declared: true})
	}
	return out
}

func (r *run) setNode(n *node) { r.sim.At(r.now, sched.NodeSet{Node: r.coreNode(n)}) }

// passTick lets ten seconds pass.
func (r *run) passTick() {
	counted := r.now >= r.From
	minute := r.now%time.Minute == 0
	if minute {
		r.sim.RunUntil(r.now)
		r.advanceMoves()
	}
	for _, s := range r.services {
		s.serveTick(r.now, counted)
		s.scaleTick(r.now)
		r.placeTick(s)
	}
	if minute && len(r.Rules.Pools) > 0 {
		r.askPolicy()
		r.sim.RunUntil(r.now)
	}
	if counted {
		r.ticks++
		for _, n := range r.nodes {
			if n.owner == Batch {
				r.share++
			}
		}
	}
}

// followCore follows what the core decides.
func (r *run) followCore(now time.Duration, events []sched.Event, decisions []sched.Decision) {
	for _, e := range events {
		switch e := e.(type) {
		case sched.Submitted:
			r.waiting[e.Job] = r.jobs[e.Job-1]
		case sched.Released:
			r.endJob(r.jobs[e.Job-1], now)
		}
	}
	for _, d := range decisions {
		if d, ok := d.(sched.Start); ok {
			j := r.jobs[d.Job-1]
			delete(r.waiting, d.Job)
			if !j.began {
				j.first, j.began = now, true
			}
			j.start, j.running, j.takes = now, true, map[string]int{}
			for i := range d.Claims {
				c := &d.Claims[i]
				j.takes[c.Node] += len(c.Devices)
				if r.on[c.Node] == nil {
					r.on[c.Node] = map[job.ID]*batchJob{}
				}
				r.on[c.Node][d.Job] = j
			}
		}
	}
}

// endJob frees what a job holds: it has ended, or is requeued.
func (r *run) endJob(j *batchJob, now time.Duration) {
	if !j.running {
		return
	}
	j.running = false
	for name := range j.takes {
		delete(r.on[name], j.id)
	}
	if now-j.start >= j.Run-j.saved {
		j.ended, j.end = true, now
		r.history.Add("", j.spec, j.Run)
		r.used += float64(j.GPUs) * overlap(j.start, now, r.From, r.To)
		return
	}
	lost := float64(j.GPUs) * r.lostOf(j, now).Seconds()
	kept := now - j.start - r.lostOf(j, now)
	j.saved += kept
	r.used += float64(j.GPUs) * overlap(j.start, j.start+kept, r.From, r.To)
	if now >= r.From {
		r.out.Requeued++
		r.out.LostHours += lost / 3600
	}
}

// lostOf is the work of a job that a requeue loses.
func (r *run) lostOf(j *batchJob, now time.Duration) time.Duration {
	if r.Saves > 0 {
		return (now - j.start) % r.Saves
	}
	return now - j.start
}

func (r *run) requeueJob(j *batchJob) {
	r.sim.Requeue(j.id, j.saved+r.now-j.start-r.lostOf(j, r.now))
}

func overlap(a, b, from, to time.Duration) float64 {
	return max(0, (min(b, to) - max(a, from)).Seconds())
}

// advanceMoves brings machines that are on the way a step further.
func (r *run) advanceMoves() {
	for _, h := range r.hosts {
		n := h.node
		switch {
		case n.to == "":
		case n.empty && r.now >= n.ready:
			n.owner, n.to, n.empty, n.came, n.moved = n.to, "", false, r.now, true
			if r.now >= r.From {
				r.out.Moves++
			}
			if n.owner == Batch {
				r.setNode(n)
			}
		case n.empty:
		case len(r.on[n.name]) == 0 && len(h.runs) == 0:
			n.empty, n.ready = true, r.now+demand.StepsTake
		case r.now >= n.due && n.force:
			for _, id := range sortedIDs(r.on[n.name]) {
				r.requeueJob(r.on[n.name][id])
			}
		case r.now >= n.due && n.owner == Batch:
			n.to, n.tried, n.wasTried = "", r.now, true
			r.setNode(n)
			if r.now >= r.From {
				r.out.Back++
			}
		}
	}
	r.sim.RunUntil(r.now)
}

func sortedIDs(m map[job.ID]*batchJob) []job.ID {
	var out []job.ID
	for id := range m {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// epoch is the instant at which a study begins.
var epoch = time.Unix(0, 0).UTC()

func instantOf(d time.Duration) time.Time { return epoch.Add(d) }

// askPolicy asks the policy, and begins its moves.
func (r *run) askPolicy() {
	in := &demand.Input{Now: instantOf(r.now), Rules: r.Rules, Unit: "GPU", Memory: r.memory}
	ends := map[job.ID]time.Time{}
	for _, h := range r.hosts {
		in.Machines = append(in.Machines, r.machineOf(h, ends))
	}
	in.Waiting = r.waitingWork()
	demand.EstimateWaits(in)
	out := demand.Decide(in)
	r.memory = out.Memory
	for _, m := range out.Moves {
		if r.Say != nil {
			r.Say(r.now, &m)
		}
		n := r.nodes[m.Machine]
		n.to, n.due, n.force = m.To, m.Until.Sub(epoch), m.Requeue
		if m.From == Batch {
			r.setNode(n)
			continue
		}
		for _, s := range r.services {
			for _, x := range s.replicas {
				x.leaves = x.leaves || x.on.node == n
			}
		}
	}
}

func (r *run) machineOf(h *host, ends map[job.ID]time.Time) demand.Machine {
	n := h.node
	m := demand.Machine{Name: n.name, Pool: n.owner, To: n.to, Could: []string{Batch, Services}, Units: r.PerNode}
	if n.moved {
		m.Came = instantOf(n.came)
	}
	if n.wasTried {
		m.Tried = instantOf(n.tried)
	}
	for _, id := range sortedIDs(r.on[n.name]) {
		j := r.on[n.name][id]
		end, known := ends[id]
		if !known {
			end = instantOf(j.start + r.history.Took("", j.spec, r.now-j.start))
			ends[id] = end
		}
		m.Runs = append(m.Runs, demand.Run{Units: j.takes[n.name], Ends: end, Requeue: true, Lost: int64(j.GPUs) * int64(r.lostOf(j, r.now)/time.Second)})
	}
	for _, s := range r.services {
		for range h.runs[s] {
			m.Runs = append(m.Runs, demand.Run{Units: s.GPUs, Replica: true})
		}
	}
	return m
}

// shownMost bounds the waiting jobs that a decision looks at.
const shownMost = 200

func (r *run) waitingWork() (out []demand.Want) {
	var all []*batchJob
	for _, j := range r.waiting {
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *batchJob) int { return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.id, b.id)) })
	for _, j := range all[:min(len(all), shownMost)] {
		out = append(out, demand.Want{Pool: Batch, Units: j.GPUs, Count: 1, Wait: -1, Takes: r.history.Took("", j.spec, 0)})
	}
	for _, s := range r.services {
		if s.pending > 0 {
			out = append(out, demand.Want{Pool: Services, Units: s.GPUs, Count: s.pending, Wait: -1, Service: s.Name})
		}
	}
	return out
}

func (r *run) sumUp() *Result {
	r.sim.RunUntil(r.To)
	out := &r.out
	out.Name = r.Name
	var waits []float64
	for _, j := range r.jobs {
		if j.running {
			r.used += float64(j.GPUs) * overlap(j.start, r.To, r.From, r.To)
		}
		if j.Submit < r.From || j.Submit >= r.To {
			continue
		}
		out.Jobs++
		wait := (r.To - j.Submit).Seconds()
		if j.began {
			wait = (j.first - j.Submit).Seconds()
		} else {
			out.Unstarted++
		}
		waits = append(waits, wait)
		out.MeanWait += wait
		flow := wait + j.Run.Seconds() // of those that have not ended, the least that it can be
		if j.ended {
			flow = (j.end - j.Submit).Seconds()
		}
		out.Slowdown += max(1, flow/max(j.Run.Seconds(), 10))
	}
	if n := float64(len(waits)); n > 0 {
		slices.Sort(waits)
		out.MeanWait, out.Slowdown, out.P95Wait = out.MeanWait/n, out.Slowdown/n, waits[int(0.95*n)]
	}
	for _, s := range r.services {
		out.Requests += s.requests
		out.Misses += s.misses
		r.used += s.worked
	}
	if out.Requests > 0 {
		out.Misses /= out.Requests
	}
	all := float64(r.Machines*r.PerNode) * (r.To - r.From).Seconds()
	out.Use = r.used / all
	out.BatchShare = r.share / float64(max(r.ticks, 1)*r.Machines)
	return out
}
