package sched

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/defrag"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/victim"
)

// Bounds of one search for moves.
const (
	moveMost  = 16  // jobs that move at a time
	moveUnits = 256 // jobs that are looked at, the cheapest ones
	moveWork  = 512 // sets that are tried
)

// moveSearch looks for moves that make room for one job: it is defrag.Field, on the state
// of the moment.
type moveSearch struct {
	victimSearch
	shapes map[int]*class.Shape // of runs, as far as they were looked for
	claims []fleet.Claim        // of the job itself, with the last set that did
	homes  [][]fleet.Claim      // of each run that moves with that set
}

// findMoves finds the cheapest moves with which a job fits; nil: there are none, or what
// ends anyway is enough.
func (p *schedulingCycle) findMoves(e *queuedJob) (x *Proposal, anyway bool) {
	m := moveSearch{victimSearch: victimSearch{schedulingCycle: p, entry: e, kind: e.class.kind}, shapes: map[int]*class.Shape{}}
	at := p.expectedStart(e)
	worth := p.gainOfStart(e, at)
	if worth <= 0 {
		return nil, false
	}
	m.gatherMovable(worth)
	defer m.endSearch()
	seeds, ok := m.seedSets()
	if !ok || !m.mayFreeEnough() {
		return nil, false
	}
	set, _ := defrag.Choose(m.units, seeds, &m, defrag.Bounds{Worth: worth, Most: moveMost, Work: moveWork})
	if set == nil {
		return nil, false
	}
	x = &Proposal{For: e.id, At: at, Claims: m.claims}
	if at == never {
		x.At = 0
	}
	for _, i := range set {
		if r := m.unitRuns[i]; !r.stopping {
			x.Moves = append(x.Moves, Move{Job: r.id, Home: m.homes[i], Lost: m.secondsRedone(r)})
		}
	}
	if len(x.Moves) == 0 {
		return nil, true
	}
	slices.SortFunc(x.Moves, func(a, b Move) int { return cmp.Compare(a.Job, b.Job) })
	return x, false
}

// placeAfterMoves places a job on what is free once those are gone that go for it; nil: it
// does not fit then.
func (p *schedulingCycle) placeAfterMoves(e *queuedJob) *Proposal {
	s := victimSearch{schedulingCycle: p, entry: e, kind: e.class.kind}
	for _, r := range p.runs.ends.allRuns() {
		if r.stopping && r.move.startsJob == e.id {
			p.liftRun(r, -1)
		}
	}
	defer p.undoLifts()
	if claims := s.placeJob(); claims != nil {
		return &Proposal{For: e.id, Claims: claims}
	}
	return nil
}

// expectedStart is when a job that does not fit would start if nothing moved.
func (p *schedulingCycle) expectedStart(e *queuedJob) Instant {
	if look := p.profileOf(e.class.kind); look != nil {
		if at := look.gangStart(); at != never {
			return at
		}
	}
	at, _ := p.firstFittingEnd(e)
	return at
}

// gainOfStart is what is gained if a job starts as soon as others have stopped, in the
// units of loss.
func (p *schedulingCycle) gainOfStart(e *queuedJob, at Instant) int64 {
	if at == never {
		return math.MaxInt64
	}
	waits := int64(at-p.now-Instant(p.defrag.rules.grace)) / int64(time.Second)
	size := int64(0)
	for i := range e.class.kind.shape.Groups {
		g := &e.class.kind.shape.Groups[i]
		size += int64(g.AllDevices)*int64(resource.WholeDevice) + int64(g.All.CPU)/64
	}
	return min(waits, 1<<31) * min(max(size, 1), 1<<31)
}

// secondsRedone is how many seconds of its work a run does again if it moves.
func (s *victimSearch) secondsRedone(r *run) int64 {
	return max(int64(s.now-max(r.began, r.move.savedAt))/int64(time.Second), 0) + restartTime
}

// gatherMovable lists what could be lifted: what ends anyway, and the jobs that may move of
// which each alone costs less than the move is worth.
func (m *moveSearch) gatherMovable(worth int64) {
	type found struct {
		run  *run
		cost int64
	}
	var all []found
	for _, chunk := range m.runs.ends.chunks {
		for _, r := range chunk {
			switch {
			case r.nominee != nil || r.target != nil || r.pause.asked: // what these free is not all of it
			case r.stopping:
				all = append(all, found{r, 1})
			case m.isMovable(r):
				if cost := m.lossOf(r); cost < worth {
					all = append(all, found{r, cost})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.run.id, b.run.id))
	})
	for _, x := range all[:min(len(all), moveUnits)] {
		x.run.search.unit = int32(len(m.unitRuns))
		m.unitRuns = append(m.unitRuns, x.run)
		m.units = append(m.units, victim.Unit{Cost: x.cost, Size: x.run.search.weight})
	}
	m.homes = make([][]fleet.Claim, len(m.unitRuns))
}

// mayFreeEnough compares counters: moving makes no devices, but of parts it makes whole ones.
func (m *moveSearch) mayFreeEnough() bool {
	_, free := m.fleet.cells.Devices()
	have := int64(free) * int64(resource.WholeDevice)
	for _, r := range m.unitRuns {
		for i := range r.claims {
			for _, d := range r.claims[i].Devices {
				if d.Share < resource.WholeDevice || d.Bytes > 0 || r.stopping {
					have += int64(resource.WholeDevice) // with what is free of it
				}
			}
		}
	}
	need := int64(0)
	for i := range m.kind.shape.Groups {
		need += int64(m.kind.shape.Groups[i].AllDevices) * int64(resource.WholeDevice)
	}
	return len(m.unitRuns) > 0 && need <= have
}

// Settles is defrag.Field: it places the job, and then each run that moves on what is
// left, the largest first.
func (m *moveSearch) Settles(lifted []int) bool {
	mark := len(m.preempt.lifted)
	defer func() { m.undoLiftsTo(mark) }()
	claims := m.placeJob()
	m.takeClaims(claims)
	order := slices.Clone(lifted)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.unitRuns[b].search.weight, m.unitRuns[a].search.weight) })
	homes := make([][]fleet.Claim, len(m.unitRuns))
	for _, i := range order {
		r := m.unitRuns[i]
		if r.stopping {
			continue // it needs none, or has one
		}
		home := m.placeTarget(i)
		if home == nil || !m.isNoWorse(r, home) {
			return false
		}
		homes[i] = home
		m.takeClaims(home)
	}
	m.claims, m.homes = claims, homes
	return true
}

// takeClaims takes claims off the state of the moment, until undoLiftsTo.
func (m *moveSearch) takeClaims(claims []fleet.Claim) {
	for i := range claims {
		if pos := m.fleet.table.Find(claims[i].Key()); pos >= 0 {
			m.Core.preempt.lifted = append(m.preempt.lifted, savedRow{int32(pos), *m.fleet.state.Row(pos)})
			m.fleet.state.Change(m.fleet.table, pos, &claims[i], 1)
			m.fleet.cells.Update(pos)
		}
	}
}

// placeTarget places a run anew, in the flavours of quotas that it is counted in.
func (m *moveSearch) placeTarget(i int) []fleet.Claim {
	r := m.unitRuns[i]
	shape, known := m.shapes[i]
	if !known {
		shape = m.runShape(r)
		m.shapes[i] = shape
	}
	if shape == nil {
		return nil
	}
	if place.Regular(shape) {
		if claims, sure := place.NewQuick(m.fleet.table, m.fleet.state, m.fleet.cells, shape, m.fleet.picks).Place(nil); sure {
			return claims
		}
	}
	return place.Gang(m.fleet.table, m.fleet.state, shape)
}

func (m *moveSearch) runShape(r *run) *class.Shape {
	shape := class.Compile(r.spec)
	if r.policy.queue == nil {
		return shape
	}
	var bounds []class.Bound
	for _, f := range m.flavorsNamed(r.flavors) {
		bounds = append(bounds, class.Bound{Features: m.quotas.Flavors[f].Features, Type: m.quotas.Flavors[f].GPUType})
	}
	return class.NewInterner().Restricted(shape, bounds)
}

// isNoWorse reports whether a run is as well off in another place, and takes no more
// there: on as many nodes and leaves at most, with as many tasks at least, as much of
// everything, and devices of the same types. It is another place indeed.
func (m *moveSearch) isNoWorse(r *run, home []fleet.Claim) bool {
	was, is := m.sumClaims(r.claims), m.sumClaims(home)
	return is.nodes <= was.nodes && is.leaves <= was.leaves && is.tasks >= was.tasks &&
		is.take.Sub(was.take).IsZero() && is.devices == was.devices &&
		!slices.ContainsFunc(is.types, func(t string) bool { return !slices.Contains(was.types, t) }) &&
		!slices.EqualFunc(r.claims, home, func(a, b fleet.Claim) bool { return m.fleet.table.Meet(&a, &b) && slices.Equal(a.Devices, b.Devices) })
}

// claimTotals is what claims come to.
type claimTotals struct {
	nodes, leaves, tasks int
	take                 resource.Vector
	devices              int64 // thousandths
	types                []string
}

func (m *moveSearch) sumClaims(claims []fleet.Claim) (s claimTotals) {
	s.nodes = len(nodesOf(claims))
	var leaves []int
	for i := range claims {
		x := &claims[i]
		s.tasks += x.Tasks
		s.take = s.take.Add(x.Take)
		for _, d := range x.Devices {
			s.devices += int64(d.Share)
		}
		pos := m.fleet.table.Find(x.Key())
		if pos < 0 {
			continue
		}
		n := m.fleet.table.Node(pos)
		if k := len(n.Domains); k > 0 && !slices.Contains(leaves, n.Domains[k-1]) {
			leaves = append(leaves, n.Domains[k-1])
		}
		for _, d := range n.Devices {
			held := func(c fleet.DeviceClaim) bool { return c.Index == d.Index }
			if slices.ContainsFunc(x.Devices, held) && !slices.Contains(s.types, d.Type+d.Profile) {
				s.types = append(s.types, d.Type+d.Profile)
			}
		}
	}
	s.leaves = len(leaves)
	return s
}
