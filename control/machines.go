package control

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

// MoveMachine keeps the next step of a machine's hand-over; it is durable when MoveMachine returns, and
// placement goes by it from then on. It is a compare and set: the step has to follow the record of the
// machine (fleet.MachineOwner.CheckNext), with the epoch of that, or one more for fleet.StepAsked. At
// fleet.StepAdmit the new pool becomes the owner with the same record. Pool, Last and At are filled in.
//
// It decides nothing beyond that order, but for two things: fleet.StepAsked needs a pool that is there, and
// fleet.StepAdmit is refused while the ledger holds work of another pool on the machine. The errors are
// fault.Conflict, fault.Invalid, and fault.NotFound for a machine without a record and for such a pool.
func (c *Control) MoveMachine(ctx context.Context, by job.Actor, next fleet.MachineOwner) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		if err := l.checkMove(&next, by); err != nil {
			l.refuseWhenLeading(answer, err)
			return
		}
		l.claiming[next.Machine] = true
		req := &request{answer: func(err error) { delete(l.claiming, next.Machine); answer(err) }}
		l.stageFor(req, state.KindOwner, 0, by, state.OwnersSet{Owners: []fleet.MachineOwner{next}}, func() { l.ownersChanged(next.Machine) })
	})
}

// checkMove checks a step of a hand-over, and completes it.
func (l *loop) checkMove(next *fleet.MachineOwner, by job.Actor) error {
	now := l.state.Owners.Of(next.Machine)
	switch {
	case now == nil:
		return fault.New(fault.NotFound, "machine %.70s has no owner", next.Machine).Advise("machines have owners where there are several pools: cox pool list")
	case l.claiming[next.Machine]:
		return fault.New(fault.Conflict, "machine %s: its record is being changed", next.Machine).Advise("try again")
	}
	next.At = l.cfg.Clock.Now().UTC()
	if next.Step == fleet.StepAdmit && now.Step == fleet.StepProve && next.Next == now.Next {
		next.Pool, next.Last = now.Next, now.Pool
	}
	if next.By == "" {
		next.By = now.By
		if next.Step == fleet.StepAsked {
			next.By = by.Name
		}
	}
	if err := now.CheckNext(next); err != nil {
		return err
	}
	switch {
	case !next.Moving() && next.Step == "" && next.Pool != now.Pool:
		return l.checkTaken(next, now)
	case !next.Moving() && !now.Moving() && (next.Pool != now.Pool || next.Last != now.Last || next.Fenced == now.Fenced && next.Open == now.Open):
		return fault.New(fault.Conflict, "machine %s changes its pool by a hand-over only", next.Machine)
	case next.Step == fleet.StepAsked && next.Epoch != now.Epoch && l.pools.IsGone(next.Next):
		return l.pools.NoSuchPool(next.Next)
	case next.Step == fleet.StepAdmit && now.Step != fleet.StepAdmit:
		for pool := range l.poolsWithWork(next.Machine)[next.Machine] {
			if pool != next.Pool {
				return fault.New(fault.Conflict, "machine %s: work of pool %s holds it still", next.Machine, pool)
			}
		}
	}
	return nil
}

// checkTaken checks a record by which another pool has a machine without a proof: its pool has to have answered and to
// report no node there, and the ledger to hold no work there but of the pool that gets it.
func (l *loop) checkTaken(next, now *fleet.MachineOwner) error {
	on := func(pool string) bool {
		return slices.ContainsFunc(l.state.OnMachines.On(next.Machine), func(k fleet.NodeKey) bool { return k.Pool == pool && l.realNode(k) != nil })
	}
	switch {
	case next.Last != now.Pool || !next.Fenced:
		return fault.New(fault.Conflict, "machine %s changes its pool by a hand-over only", next.Machine)
	case on(now.Pool):
		return fault.New(fault.Conflict, "pool %s, which owns machine %s, reports a node there", now.Pool, next.Machine).Advise("hand the machine over, without --force")
	case !on(next.Pool):
		return fault.New(fault.Conflict, "pool %s reports no node on machine %s", next.Pool, next.Machine)
	}
	for _, k := range l.state.OnMachines.On(next.Machine) { // its first hand-over closes those of third pools, this does not
		if n := l.realNode(k); k.Pool != next.Pool && n != nil && n.Fence == 0 {
			return fault.New(fault.Conflict, "pool %s reports node %s on machine %s, and could start work there", k.Pool, k.Name, next.Machine).
				Advise("close it first: cox node fence %s --reason TEXT", next.Machine)
		}
	}
	for pool := range l.poolsWithWork(next.Machine)[next.Machine] {
		if pool != next.Pool {
			return fault.New(fault.Conflict, "machine %s: work of pool %s holds it still", next.Machine, pool)
		}
	}
	return nil
}

// MachineOwner returns the record of a machine; false: it has none.
func (c *Control) MachineOwner(machine string) (fleet.MachineOwner, bool) {
	c.state.RLock()
	defer c.state.RUnlock()
	if o := c.state.Owners.Of(machine); o != nil {
		return *o, true
	}
	return fleet.MachineOwner{}, false
}

// MachineOwners lists the records of all machines, by name.
func (c *Control) MachineOwners(context.Context) []fleet.MachineOwner {
	c.state.RLock()
	defer c.state.RUnlock()
	out := make([]fleet.MachineOwner, 0, c.state.Owners.Len())
	for _, m := range c.state.Owners.Machines() {
		out = append(out, *c.state.Owners.Of(m))
	}
	return out
}

// MachineNodes lists the nodes that pools report on a machine, in the order of the pools. Those of pools
// with a scheduler of their own are the real ones (Reader.Seen).
func (c *Control) MachineNodes(machine string) []fleet.NodeKey {
	c.state.RLock()
	defer c.state.RUnlock()
	return slices.Clone(c.state.OnMachines.On(machine))
}

// LookAt has a pool's engine asked at once for its nodes and what runs there, beside the loop, as it is
// every half minute. It waits for no answer; a pool that there is not is no error.
func (c *Control) LookAt(ctx context.Context, pool string) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		if p := l.pools.ByName(pool); p != nil {
			l.whileLeading(func() { l.compareEngines(p) })
		}
		answer(nil)
	})
}

// notePools notes which pools there are. The caller holds the lock of the state.
func (l *loop) notePools() {
	s, all := l.state, l.pools
	s.DelegatedPools, s.AddressedPools, s.ManyPools = all.DelegatedNames(), all.AddressedNames(), len(all.AllPools()) > 1
	s.PoolNames = all.ConfiguredNames()
}

// indexMachines finds out anew which nodes are on which machines. The caller holds the lock of the state.
func (l *loop) indexMachines() {
	var nodes []fleet.Node
	byPool := map[string][]fleet.Node{}
	for k, n := range l.state.Nodes.All() {
		byPool[k.Pool] = append(byPool[k.Pool], n)
	}
	for _, p := range l.pools.AllPools() {
		of := byPool[p.Name]
		if p.Delegated {
			of = p.Real.Nodes
		}
		nodes = append(nodes, of...)
	}
	l.state.OnMachines = state.NewNodesByMachine(nodes)
}

// claimMachines records the owners of machines that nodes of some pools are on and that have none, in one
// record. Where there is one pool, none is needed. The first of the pools is taken for the one that was there
// first. A machine whose pool is gone keeps its record: the engine of that may still start work there.
// The caller holds the lock of the state.
func (l *loop) claimMachines(of ...*pools.Member) {
	s := l.state
	if !s.ManyPools {
		return
	}
	var machines []string
	seen := map[string]bool{}
	for _, p := range of {
		l.eachNode(p, func(n *fleet.Node) {
			for _, m := range s.OnMachines.Of(n) {
				if seen[m] || l.claiming[m] {
					continue
				}
				seen[m] = true
				if o := s.Owners.Of(m); o == nil || l.isOutdated(o) {
					machines = append(machines, m)
				}
			}
		})
	}
	if len(machines) == 0 {
		return
	}
	slices.Sort(machines)
	work := l.poolsWithWork(machines...)
	var v state.OwnersSet
	for _, m := range machines {
		pool := l.ownerFor(m, of, work[m])
		if o := s.Owners.Of(m); o != nil {
			pool = o.Pool
		}
		if pool != "" {
			v.Owners = append(v.Owners, l.firstOwner(m, pool))
		}
	}
	l.stageOwners(v, nil)
}

// stageOwners adds a record of owners to the batch. req may be nil.
func (l *loop) stageOwners(v state.OwnersSet, req *request) {
	names := slices.Clone(v.Freed)
	for i := range v.Owners {
		names = append(names, v.Owners[i].Machine)
	}
	if len(names) == 0 {
		return
	}
	for _, m := range names {
		l.claiming[m] = true
	}
	then := func() {
		for _, m := range names {
			delete(l.claiming, m)
		}
		l.ownersChanged(names...)
	}
	if req == nil {
		l.stageRecord(state.KindOwner, 0, job.Actor{}, v, then)
		return
	}
	answer := req.answer
	req.answer = func(err error) {
		for _, m := range names {
			delete(l.claiming, m)
		}
		answer(err)
	}
	l.stageFor(req, state.KindOwner, 0, job.Actor{}, v, then)
}

// eachNode calls f with the nodes of a pool, in no order: the real ones of one that is one node to the core.
func (l *loop) eachNode(p *pools.Member, f func(*fleet.Node)) {
	if p.Delegated {
		for i := range p.Real.Nodes {
			f(&p.Real.Nodes[i])
		}
		return
	}
	for k, n := range l.state.Nodes.All() {
		if k.Pool == p.Name {
			f(&n)
		}
	}
}

// ownerFor is the pool that a machine without an owner is given to: one with work there, else the one that
// was there first, of those without our fence. Pools that report it and are not among those that now report were
// there before. Empty: all have our fence, from a journal that is lost, and whose it is nobody can say.
func (l *loop) ownerFor(machine string, now []*pools.Member, work map[string]bool) (first string) {
	if len(work) > 0 {
		return slices.Min(slices.Collect(maps.Keys(work)))
	}
	fences := l.fencesOn(machine)
	for _, k := range l.state.OnMachines.On(machine) {
		switch {
		case fences[k.Pool] != 0:
		case !slices.ContainsFunc(now, func(p *pools.Member) bool { return p.Name == k.Pool }) && !l.pools.IsGone(k.Pool):
			return k.Pool
		case first == "":
			first = k.Pool
		}
	}
	return first
}

// fencesOn has the epochs of our fences on a machine, by pool; of several nodes of a pool, the last one.
func (l *loop) fencesOn(machine string) map[string]uint64 {
	out := map[string]uint64{}
	for _, k := range l.state.OnMachines.On(machine) {
		if n := l.realNode(k); n != nil && n.Fence != 0 {
			out[k.Pool] = max(out[k.Pool], n.Fence)
		}
	}
	return out
}

// firstOwner is the first record of a machine. Its epoch is after that of each fence of ours that is still there,
// from a journal that is lost or a pool that was removed; the fences of other pools are kept.
func (l *loop) firstOwner(machine, pool string) fleet.MachineOwner {
	o := fleet.MachineOwner{Machine: machine, Pool: pool, Epoch: 1}
	for of, epoch := range l.fencesOn(machine) {
		o.Epoch, o.Fenced = max(o.Epoch, epoch+1), o.Fenced || of != pool
	}
	return o
}

// isOutdated reports whether a first record was made before a pool had answered that has a later fence of ours: a
// hand-over of its epochs would come too late for that. The owner is the one without the fence, as before.
func (l *loop) isOutdated(o *fleet.MachineOwner) (later bool) {
	if o.Step != "" || o.Last != "" {
		return false
	}
	for _, k := range l.state.OnMachines.On(o.Machine) {
		n := l.realNode(k)
		switch {
		case n == nil || n.Fence == 0:
		case k.Pool == o.Pool:
			return false
		case n.Fence > o.Epoch:
			later = true
		}
	}
	return later
}

// realNode is a node as its engine reports it; nil: there is none.
func (l *loop) realNode(k fleet.NodeKey) *fleet.Node {
	if n, ok := l.state.Nodes.Get(k); ok {
		return &n
	}
	if p := l.pools.ByName(k.Pool); p != nil {
		return p.RealNode(k.Name)
	}
	return nil
}

// poolsWithWork finds the pools in which the ledger holds something on machines. Of work that a pool's own
// scheduler has placed, it is the nodes where that was seen.
func (l *loop) poolsWithWork(machines ...string) map[string]map[string]bool {
	wanted, out := make(map[string]bool, len(machines)), map[string]map[string]bool{}
	for _, m := range machines {
		wanted[m] = true
	}
	on := map[fleet.NodeKey][]string{} // of the nodes on these machines
	for _, m := range machines {
		for _, k := range l.state.OnMachines.On(m) {
			on[k] = append(on[k], m)
		}
	}
	for _, a := range l.state.Ledger.Live() {
		claims := a.Claims
		if e := l.state.Jobs[a.Job]; state.IsDelegated(claims) && e != nil && e.Last != nil {
			claims = e.Last.NodeClaims()
		}
		for i := range claims {
			of := on[fleet.NodeKey{Pool: a.Pool, Name: claims[i].Node}]
			if of == nil && wanted[claims[i].Node] && !l.isReported(a.Pool, claims[i].Node) {
				of = []string{claims[i].Node} // on which machine it is, nobody says
			}
			for _, m := range of {
				if out[m] == nil {
					out[m] = map[string]bool{}
				}
				out[m][a.Pool] = true
			}
		}
	}
	return out
}

// isReported reports whether a pool has a node of a name.
func (l *loop) isReported(pool, name string) bool {
	return l.realNode(fleet.NodeKey{Pool: pool, Name: name}) != nil
}

// tellTwins tells of the other nodes on the machines of a node: a drain is theirs too.
func (l *loop) tellTwins(k fleet.NodeKey) {
	if n, ok := l.state.Nodes.Get(k); ok && !aggregate.Is(k.Name) {
		for _, m := range l.state.OnMachines.Of(&n) {
			for _, other := range l.state.OnMachines.On(m) {
				if other != k {
					l.tellNode(other)
				}
			}
		}
	}
}

// ownersChanged tells the core of the nodes on machines whose record has changed.
func (l *loop) ownersChanged(machines ...string) {
	l.state.Lock()
	defer l.state.Unlock()
	told, folded := map[fleet.NodeKey]bool{}, map[string]bool{}
	for _, m := range machines {
		for _, k := range l.state.OnMachines.On(m) {
			p := l.pools.ByName(k.Pool)
			switch {
			case told[k] || p == nil:
			case p.Delegated:
				folded[k.Pool] = true
			default:
				told[k] = true
				l.tellNode(k)
			}
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(folded)) {
		p := l.pools.ByName(pool)
		l.setNodes(p, []fleet.Node{p.AggregateNode(l.state.WhyNotOwned)})
	}
}

// handsOver says which hand-over keeps a pool from being removed; nil: none.
func (l *loop) handsOver(pool string) error {
	if len(l.claiming) > 0 {
		return fault.New(fault.Conflict, "who owns some machines is being recorded").Advise("try again")
	}
	for _, m := range l.state.Owners.Machines() {
		if o := l.state.Owners.Of(m); o.Moving() && (o.Pool == pool || o.Next == pool || o.Last == pool) {
			return fault.New(fault.Conflict, "machine %s is on its way from pool %s to pool %s", m, o.Pool, o.Next).
				Advise("wait until it is there, or take it back; cox node show %s says how far it is", m)
		}
	}
	return nil
}

// leavesOpen says which machines keep a pool from being removed: those that another pool could start work on, or
// has our fence on. nil: there are none. What runs there in the pool that goes, others' work above all, nobody
// would ask for any more.
func (l *loop) leavesOpen(pool string) error {
	var machines, others []string
	for _, m := range l.state.Owners.Machines() {
		o := l.state.Owners.Of(m)
		if o.Pool != pool {
			continue
		}
		heir := l.heirOf(o)
		if heir == "" && !o.Fenced {
			continue
		}
		machines = append(machines, m)
		if heir != "" && !slices.Contains(others, heir) {
			others = append(others, heir)
		}
	}
	if len(machines) == 0 {
		return nil
	}
	slices.Sort(others)
	to := strings.Join(others, ", ")
	if to == "" {
		to = "another pool"
	}
	list := hostlist.Compress(machines)
	return fault.New(fault.Conflict, "pool %s owns %.200s, where %s could start work beside what its engine runs and starts there", pool, list, to).
		Advise("hand them over first (cox node move), or take the other pool's nodes away; cox pool remove %s --force removes it as it is: make sure yourself that its engine starts nothing there any more", pool)
}

// heirOf is the pool that a machine goes to when its owner is removed: one that reports it too, or that had it
// before and whose nodes have our fence. Empty: there is none.
func (l *loop) heirOf(o *fleet.MachineOwner) string {
	for _, k := range l.state.OnMachines.On(o.Machine) {
		if k.Pool != o.Pool && !l.pools.IsGone(k.Pool) {
			return k.Pool
		}
	}
	if o.Fenced && o.Last != "" && o.Last != o.Pool && !l.pools.IsGone(o.Last) {
		return o.Last
	}
	return ""
}

// ownersWithout says who owns the machines of a pool once it is removed: its heir, or nobody.
func (l *loop) ownersWithout(pool string) (v state.OwnersSet) {
	for _, m := range l.state.Owners.Machines() {
		o := l.state.Owners.Of(m)
		if o.Pool != pool {
			continue
		}
		if heir := l.heirOf(o); heir != "" {
			v.Owners = append(v.Owners, o.After(heir))
		} else {
			v.Freed = append(v.Freed, m)
		}
	}
	return v
}
