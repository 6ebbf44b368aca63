package sched

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// runAsSlurm makes the cycle as slurmctld would (Policy.Compat), for sites that want the
// decisions that they are used to, and to compare with a real one
// (test/slurm/compat, docs/explanation/compat-slurm.md). It reports whether that was asked for.
//
// It looks at every job and every node each time, and promises nothing: its plan is
// made anew in each cycle, as Slurm's is. Times are rounded down to whole seconds.
func (p *schedulingCycle) runAsSlurm() bool {
	if p.policy == nil || p.policy.Compat == "" {
		return false
	}
	p.dropReservation()
	p.fleet.freed = p.fleet.freed[:0]
	s := slurmCycle{schedulingCycle: p, now: p.now / Instant(time.Second) * Instant(time.Second)}
	if p.policy.Compat != "slurm-backfill" || !p.backfills() {
		s.runMain()
	}
	if p.backfills() {
		s.runBackfill()
	}
	s.restAll()
	return true
}

// slurmCycle is one look of slurmctld's schedulers.
type slurmCycle struct {
	*schedulingCycle
	now  Instant
	plan []slurmInterval
}

// slurmInterval is a part of time and the nodes that no job is planned for then. Stretches
// follow each other without gaps; the last one has no end.
type slurmInterval struct {
	from, to Instant
	free     []bool // by position
}

// startableJobs lists the jobs that may start, in order.
func (s *slurmCycle) startableJobs() []*queuedJob {
	var out []*queuedJob
	for _, l := range s.queue.classes {
		out = append(out, l.jobs.allJobs()...)
	}
	slices.SortFunc(out, (*queuedJob).compareOrder)
	return out
}

// placeAllowed places a job among the allowed nodes, as far as the rules of the site let it.
func (s *slurmCycle) placeAllowed(e *queuedJob, allowed []bool) []fleet.Claim {
	claims := place.AsSlurm(s.fleet.table, s.fleet.state, e.class.kind.shape, allowed)
	if claims == nil || !s.quotaCovers(e.class, claims) {
		return nil
	}
	return claims
}

// runMain is the main scheduler: strictly in order. Once a job cannot start, nothing
// else in its partition does, nor on any of the partition's nodes
// (Slurm's page sched_config.html).
func (s *slurmCycle) runMain() {
	open := s.allNodes()
	closed := map[string]bool{}
	for _, e := range s.startableJobs() {
		part := partitionOf(e)
		if closed[part] || !s.passesGates(e.class) {
			continue
		}
		if claims := s.placeAllowed(e, open); claims != nil {
			s.startJob(e, claims)
			continue
		}
		closed[part] = true
		for pos := range open {
			open[pos] = open[pos] && !s.inPartition(pos, part)
		}
	}
}

// partitionOf is the first partition that a job names; empty: all nodes.
func partitionOf(e *queuedJob) string {
	if parts := e.class.kind.shape.Partitions; len(parts) > 0 {
		return parts[0]
	}
	return ""
}

// inPartition reports whether a node belongs to a partition.
func (s *slurmCycle) inPartition(pos int, part string) bool {
	return part == "" || s.fleet.table.Node(pos).In(part)
}

func (s *slurmCycle) allNodes() []bool {
	out := make([]bool, s.fleet.table.Len())
	for i := range out {
		out[i] = true
	}
	return out
}

// The backfill scheduler's window and grain, as it comes from Debian but for the
// window, which is long enough for most limits (bf_window, bf_resolution).
const (
	slurmWindow = Instant(3 * 24 * time.Hour)
	slurmGrain  = Instant(time.Minute)
)

// runBackfill is the backfill scheduler: each job in order gets the first start at which
// it fits beside what is planned for those before it, and is planned there, on whole
// nodes.
func (s *slurmCycle) runBackfill() {
	s.plan = []slurmInterval{{s.now, never, s.allNodes()}}
	tried := 0
	for _, e := range s.startableJobs() {
		if !s.passesGates(e.class) {
			continue
		}
		if tried++; s.policy.Backfill.Depth > 0 && tried > s.policy.Backfill.Depth { // bf_max_job_test
			break
		}
		for from := s.now; from != never; {
			from = s.tryFrom(e, from)
		}
	}
}

// tryFrom looks for a start at an instant or after it. It returns when to look again, never
// if the job was started, planned or given up.
func (s *slurmCycle) tryFrom(e *queuedJob, from Instant) (later Instant) {
	limit := e.class.limit
	if limit <= 0 {
		limit = 365 * 24 * time.Hour
	}
	allowed, later := s.unplannedNodes(partitionOf(e), from, addDuration(from, limit))
	at, claims := s.willRun(e, allowed)
	if claims == nil {
		return later
	}
	if at = max(at, from); at <= s.now {
		if claims = s.placeAllowed(e, claimedNodes(s.fleet.table, claims)); claims != nil {
			s.startJob(e, claims)
		}
		return never
	}
	switch {
	case at > later:
		return later
	case at > s.now+slurmWindow:
		return never
	}
	start, end := at/slurmGrain*slurmGrain, addDuration(at, limit)/slurmGrain*slurmGrain
	nodes := claimedNodes(s.fleet.table, claims)
	if s.overlapsPlan(start, end, nodes) {
		return max(at, from+Instant(time.Second)) // rounding may bring it back to the same instant
	}
	s.planNodes(start, end, nodes)
	return never
}

// unplannedNodes lists the nodes of a partition that are not planned for others from one instant
// to another, and when that changes first for the better; never: not.
func (s *slurmCycle) unplannedNodes(part string, from, to Instant) (allowed []bool, later Instant) {
	allowed, later = s.allNodes(), never
	for pos := range allowed {
		allowed[pos] = s.inPartition(pos, part)
	}
	mine := slices.Clone(allowed)
	for i, x := range s.plan {
		if x.to > from && i+1 < len(s.plan) && later == never && hasExtraNode(intersectNodes(allowed, x.free), intersectNodes(mine, s.plan[i+1].free)) {
			later = x.to
		}
		switch {
		case x.to <= from:
		case x.from <= to:
			allowed = intersectNodes(allowed, x.free)
		default:
			return allowed, later
		}
	}
	return allowed, later
}

func intersectNodes(a, b []bool) []bool {
	out := make([]bool, len(a))
	for i := range a {
		out[i] = a[i] && b[i]
	}
	return out
}

// hasExtraNode reports whether b has a node that a has not.
func hasExtraNode(a, b []bool) bool {
	for i := range a {
		if b[i] && !a[i] {
			return true
		}
	}
	return false
}

// claimedNodes is the nodes of claims.
func claimedNodes(t *index.Table, claims []fleet.Claim) []bool {
	out := make([]bool, t.Len())
	for _, c := range claims {
		out[t.Find(c.Key())] = true
	}
	return out
}

// willRun says when a job fits on some of the nodes if running jobs end at their
// limits, and where. Ends are looked at in growing windows, so that a start may be
// said later than it could be: bf_window_scale, as Slurm has it by default.
func (s *slurmCycle) willRun(e *queuedJob, allowed []bool) (Instant, []fleet.Claim) {
	shape := e.class.kind.shape
	if claims := place.AsSlurm(s.fleet.table, s.fleet.state, shape, allowed); claims != nil {
		return s.now, claims
	}
	ends := slices.DeleteFunc(s.runs.ends.allRuns(), func(r *run) bool {
		return !slices.ContainsFunc(r.claims, func(c fleet.Claim) bool { return allowed[s.fleet.table.Find(c.Key())] })
	})
	const second = Instant(time.Second)
	window, first := 30*second, Instant(0)
	free := s.fleet.state.Clone()
	for i := 0; i < len(ends); {
		if first == 0 {
			first = ends[i].until/(30*second)*(30*second) + 30*second
		}
		for {
			free.Release(s.fleet.table, ends[i].claims)
			if asksDeviceType(shape) && asksNoDeviceType(ends[i].spec) {
				s.keepDevices(free, ends[i].claims)
			}
			i++
			if i == len(ends) || ends[i].until > first+window {
				break
			}
		}
		for window *= 2; i < len(ends) && ends[i].until != never && ends[i].until > first+window; window *= 2 {
		}
		if claims := place.AsSlurm(s.fleet.table, free, shape, allowed); claims != nil {
			return ends[i-1].until, claims
		}
	}
	return 0, nil
}

// keepDevices takes the devices of claims again and nothing else. slurmctld 22.05 does
// so when it looks ahead for a job that asks for GPUs of a type, with those of running
// jobs that asked for any.
func (s *slurmCycle) keepDevices(free *index.State, claims []fleet.Claim) {
	for _, c := range claims {
		if len(c.Devices) > 0 && !c.Whole {
			free.Take(s.fleet.table, []fleet.Claim{{Node: c.Node, Pool: c.Pool, Group: c.Group, Devices: c.Devices}})
			free.Row(s.fleet.table.Find(c.Key())).Holds-- // the node itself is free
		}
	}
}

func asksDeviceType(shape *class.Shape) bool {
	for _, g := range shape.Groups {
		for _, n := range append(g.BaseDevices, g.StepDevices...) {
			if n.Type != "" {
				return true
			}
		}
	}
	return false
}

func asksNoDeviceType(spec *job.Spec) bool {
	return spec != nil && !asksDeviceType(class.Compile(spec))
}

// overlapsPlan reports whether some of the nodes are planned for others in a stretch.
func (s *slurmCycle) overlapsPlan(from, to Instant, nodes []bool) bool {
	for _, x := range s.plan {
		if x.from < to && x.to > from && hasExtraNode(x.free, nodes) {
			return true
		}
	}
	return false
}

// planNodes plans nodes for a job.
func (s *slurmCycle) planNodes(from, to Instant, nodes []bool) {
	from = max(from, s.now)
	to = max(to, from+slurmGrain)
	s.splitAt(from)
	s.splitAt(to)
	for i := range s.plan {
		if x := &s.plan[i]; x.from >= from && x.to <= to {
			for pos, mine := range nodes {
				x.free[pos] = x.free[pos] && !mine
			}
		}
	}
}

// splitAt makes an instant the border of two stretches.
func (s *slurmCycle) splitAt(at Instant) {
	i, found := slices.BinarySearchFunc(s.plan, at, func(x slurmInterval, at Instant) int { return cmp.Compare(x.from, at) })
	if found {
		return
	}
	x := s.plan[i-1]
	s.plan[i-1].to = at
	x.from, x.free = at, slices.Clone(x.free)
	s.plan = slices.Insert(s.plan, i, x)
}

// restAll notes why the first job of each class waits. All are looked at in the next cycle.
func (s *slurmCycle) restAll() {
	for _, l := range s.queue.woken {
		l.awake = false
	}
	s.Core.queue.woken = s.queue.woken[:0]
	s.Core.queue.forPlan = s.queue.forPlan[:0]
	for _, l := range s.queue.classes {
		switch {
		case l.jobs.len() == 0 || l.waiting.isBarred():
		case place.Fits(s.fleet.table, s.fleet.state, l.kind.shape):
			s.restClass(l, forPlan, reason.Reason{Code: reason.Priority})
		default:
			s.restClass(l, forPlan, s.missingReason(l))
		}
	}
}
