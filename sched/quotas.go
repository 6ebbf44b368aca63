package sched

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// This file counts what runs against the quotas of a policy (sched/quota). The account
// of a job, or the nearest one above it that has a quota, is its queue. What runs is
// charged to its queue in the flavours that it was placed in. quota_demand.go says what a
// waiting job asks of its queue and what waits there, queue_order.go whose turn it is.

// quotas is what is held of the quotas of a policy.
type quotas struct {
	*quota.State
	queues  []*quotaQueue // by node; nil: a cohort
	trees   []*quotaTree
	parents map[string]string // of accounts
	later   *quota.State      // of afterReleases; nil: to be made
	stirred bool              // something runs or runs no longer since retryOverQuotaOverQuota
	changes uint64            // raised when something is charged or given back
	alone   []int32           // each flavour, by number
	names   [][]string        // the same, by name
	used    []quota.Need      // scratch of amountsTaken
	over    bool              // a class may rest because its job took more than there was
	led     []*quotaQueue     // with leaders
	ranked  uint64            // raised when classes may stand in another order
	behind  []*quotaQueue     // with classes that are looked at behind the head, and some that had
	rallied bool              // classes may go on because another one no longer stands before them
	most    []resource.Amount // scratch: of each resource that a queue could be given
	turns   []*jobClass       // scratch: that could have the turn …
	wanted  []quota.Entry     // … and what they would be charged
}

// quotaQueue is an account that holds jobs.
type quotaQueue struct {
	node            int32
	tree            *quotaTree
	strict          bool
	choice          bool        // it has flavours that are alternatives
	triesNextFlavor bool        // it goes on to the next one where one has no room
	preemptsFirst   bool        // it may rather stop others than go on to the next one
	classes         []*jobClass // of its jobs
	cuts            int         // of these, those whose jobs may do with fewer tasks

	heads   ownHeads       // of these, those that could lead the queue
	order   order          // of these, those that are looked at behind the head
	behind  bool           // it stands in quotas.behind
	demands []*shapeDemand // of its classes
	asks    []quota.Need   // of each of these, a need by which most are passed over at once; nothing: it has to be looked at
	leader  *jobClass      // that was let go on and has not been looked at; the others follow it
	byShape map[*class.Shape]*shapeDemand
}

// shapeDemand is what the jobs of one shape ask of a queue.
type shapeDemand struct {
	shape *class.Shape
	index int          // in quotaQueue.demands
	uses  int          // classes
	needs []quota.Need // of one job
	cuts  bool         // it may do with fewer tasks

	got     quotaBid // as of …
	changes uint64   // … quotas.changes
	fleet   uint64   // … and fleetState.version

	waiting []*jobClass // that rest for the quota, and some that did
	best    *jobClass   // no job of these goes before its first one; nil: not known
	ranked  uint64      // quotas.ranked then
}

// noteNeed notes what a demand needs.
func (q *quotaQueue) noteNeed(d *shapeDemand) {
	q.asks[d.index] = quota.Need{}
	if !d.cuts && len(d.needs) > 0 {
		q.asks[d.index] = d.needs[0]
	}
}

// demandOf returns the demand of jobs of a shape, for one class more.
func (q *quotaQueue) demandOf(shape *class.Shape) *shapeDemand {
	d := q.byShape[shape]
	if d == nil {
		d = &shapeDemand{shape: shape, index: len(q.demands)}
		q.byShape[shape] = d
		q.demands, q.asks = append(q.demands, d), append(q.asks, quota.Need{})
	}
	d.uses++
	return d
}

// releaseDemand is demandOf for one class less.
func (q *quotaQueue) releaseDemand(d *shapeDemand) {
	if d.uses--; d.uses == 0 {
		n := len(q.demands) - 1
		last := q.demands[n]
		q.demands[d.index], q.asks[d.index], last.index = last, q.asks[n], d.index
		q.demands, q.asks = q.demands[:n], q.asks[:n]
		delete(q.byShape, d.shape)
	}
}

// listForQuota lists a class that rests for its quota where it is found when that may reach.
// One that took more than there was where it was placed is not among them, though its
// quota may reach: retryOverQuota finds it, once something else runs than now.
func (l *jobClass) listForQuota() {
	s := l.quotaDemand
	if l.exceededQuota {
		return
	}
	if !s.listed {
		s.listed = true
		s.demand.waiting = append(s.demand.waiting, l)
	}
	l.offerAsBest()
}

// offerAsBest makes a class that waits the best of its demand if it goes before that one.
func (l *jobClass) offerAsBest() {
	if b := l.quotaDemand.demand.best; b != nil && b != l && hasJobs(l) && (!hasJobs(b) || l.goesBefore(b)) {
		l.quotaDemand.demand.best = l
	}
}

// updateBest notes that a class's first job is another one.
func (l *jobClass) updateBest() {
	switch {
	case l.quotaDemand == nil:
	case l.quotaDemand.demand.best == l:
		l.quotaDemand.demand.best = nil
	case l.waitsForQuota():
		l.offerAsBest()
	}
}

// firstWaiting is the class whose first job goes first of those that wait; nil: none does.
func (q *quotas) firstWaiting(d *shapeDemand) *jobClass {
	if b := d.best; b != nil && d.ranked == q.ranked && b.waitsForQuota() {
		return b
	}
	d.best, d.ranked = nil, q.ranked
	var least *queueRank
	d.waiting = slices.DeleteFunc(d.waiting, func(l *jobClass) bool {
		switch {
		case !l.waitsForQuota():
			l.quotaDemand.listed = false
			return true
		case !hasJobs(l):
			d.best = cmp.Or(d.best, l)
		default:
			if r := l.firstRank(); d.best == nil || !hasJobs(d.best) || r.isBefore(least) {
				d.best, least = l, r
			}
		}
		return false
	})
	return d.best
}

// waitsForQuota reports whether a class rests for a quota that does not reach.
func (l *jobClass) waitsForQuota() bool {
	return l.waiting == forQuota && l.members > 0 && !l.exceededQuota
}

// stillWaiting lists the classes that wait of those that did.
func (d *shapeDemand) stillWaiting() []*jobClass {
	d.waiting = slices.DeleteFunc(d.waiting, func(l *jobClass) bool {
		l.quotaDemand.listed = l.waitsForQuota()
		return !l.quotaDemand.listed
	})
	return d.waiting
}

// quotaTree is what the queues below one root have in common.
type quotaTree struct {
	queues []*quotaQueue
	freed  bool   // something was given back since classes were woken for it last
	moved  bool   // something was taken or given back since choices were looked at last
	single bool   // one class of all its queues is let go on at a time
	calm   uint64 // quotas.changes when none of its classes could go on
}

// newQuotas compiles the quotas of a policy; nil: it has none. One that contradicts
// itself, which is refused where policies are set, has none either.
func newQuotas(p *account.Policy) *quotas {
	t, err := quota.New(p)
	if t == nil || err != nil {
		return nil
	}
	q := &quotas{State: t.NewState(), queues: make([]*quotaQueue, t.Len()), parents: map[string]string{}, changes: 1}
	for f := range t.Flavors {
		q.alone = append(q.alone, int32(f))
		q.names = append(q.names, []string{t.Flavors[f].Name})
	}
	below := make([]*quotaTree, t.Len())
	for n := range int32(t.Len()) {
		if t.Parent(n) == quota.None {
			below[n] = &quotaTree{}
			q.trees = append(q.trees, below[n])
		}
		if len(t.Children(n)) == 0 {
			of := below[t.Root(n)]
			q.queues[n] = &quotaQueue{node: n, tree: of, strict: t.Strict(n), choice: t.Choice(n), byShape: map[*class.Shape]*shapeDemand{}}
			r := t.Rules(n)
			q.queues[n].triesNextFlavor, q.queues[n].preemptsFirst = triesNextFlavor(r, t.Choice(n)), preemptsFirst(r, t.Choice(n))
			of.queues = append(of.queues, q.queues[n])
		}
	}
	for i := range p.Accounts {
		q.parents[p.Accounts[i].Name] = p.Accounts[i].Parent
	}
	return q
}

// queueOf returns the queue of an account; nil: none.
func (q *quotas) queueOf(account string) *quotaQueue {
	for q != nil && account != "" {
		if n := q.Find(account); n != quota.None {
			return q.queues[n]
		}
		account = q.parents[account]
	}
	return nil
}

// chargeQuota counts what a run holds.
func (c *Core) chargeQuota(r *run) {
	if c.quotas != nil {
		c.quotas.stirred = true
	}
	q := r.policy.queue
	if q == nil {
		return
	}
	used := c.amountsTaken(r.allClaims())
	if had := c.flavorsNamed(r.flavors); r.flavors == nil || len(had) < len(r.flavors) { // not known, or the rules know some no longer
		flavors := c.quotas.FlavorsOf(q.node, used, had, func(f int32) bool { return c.claimsInFlavor(r.claims, &c.quotas.Flavors[f]) })
		r.flavors = c.flavorNames(flavors)
	}
	r.charges = c.quotas.Charges(q.node, used, c.flavorsNamed(r.flavors))
	if planted.PartsUncounted && r.spec != nil && r.spec.Part != nil {
		r.charges = nil
	}
	q.tree.moved = true
	if r.nominee != nil { // it is counted after that (pending_release.go)
		c.quotas.noteChange()
		q.tree.freed = true
		return
	}
	c.quotas.takeQuota(q.node, r.charges)
}

// creditQuota gives back what a run held.
func (c *Core) creditQuota(r *run) {
	if q := r.policy.queue; q != nil {
		q.tree.moved, q.tree.freed = true, true
		if r.nominee != nil {
			c.quotas.noteChange()
			return
		}
		c.quotas.giveQuota(q.node, r.charges)
	}
}

// flavorsFor is in which flavours a waiting job is placed; nil: it has no quota.
func (c *Core) flavorsFor(e *queuedJob) []string {
	switch {
	case e.nominee != nil:
		return e.nominee.run.flavors
	case e.class.quotaDemand != nil:
		return c.flavorNames(e.class.quotaDemand.got.Flavors)
	}
	return nil
}

func (c *Core) flavorNames(flavors []int32) []string {
	if len(flavors) == 1 {
		return c.quotas.names[flavors[0]]
	}
	out := make([]string, len(flavors))
	for i, f := range flavors {
		out[i] = c.quotas.Flavors[f].Name
	}
	return out
}

func (c *Core) flavorsNamed(names []string) (out []int32) {
	for i := range c.quotas.Flavors {
		if slices.Equal(names, c.quotas.names[i]) {
			return c.quotas.alone[i : i+1 : i+1]
		}
		if slices.Contains(names, c.quotas.Flavors[i].Name) {
			out = append(out, int32(i))
		}
	}
	return out
}

// claimsInFlavor reports whether the nodes of claims are of a flavour, as far as they are
// known.
func (c *Core) claimsInFlavor(claims []fleet.Claim, f *account.Flavor) bool {
	for i := range claims {
		pos := c.fleet.table.Find(claims[i].Key())
		if pos < 0 {
			continue
		}
		n := c.fleet.table.Node(pos)
		if slices.ContainsFunc(f.Features, func(x string) bool { return !slices.Contains(n.Features, x) }) ||
			f.GPUType != "" && !slices.ContainsFunc(n.Devices, func(d fleet.Device) bool { return d.Type == f.GPUType }) && aggregate.Count(n.Capacity, "gpu:"+f.GPUType) == 0 {
			return false
		}
	}
	return true
}

// amountsTaken is how much of each countable thing claims hold. It is good until it is asked
// for again.
func (c *Core) amountsTaken(claims []fleet.Claim) []quota.Need {
	out := c.quotas.used[:0]
	for i, name := range c.quotas.Resources {
		a := resource.Amount(0)
		if name == "job" {
			a = 1
		}
		for k := range claims {
			a = a.Add(claimTakes(&claims[k], name))
		}
		if name == "node" {
			a = a.Add(resource.Amount(countNodes(claims)))
			for k := range claims {
				a = a.Add(claims[k].Take.Get(aggregate.Nodes))
			}
		}
		if a > 0 {
			out = append(out, quota.Need{Resource: int32(i), Amount: a})
		}
	}
	c.quotas.used = out
	return out
}

// countNodes is on how many nodes claims are.
func countNodes(claims []fleet.Claim) (n int) {
	if len(claims) > 16 {
		names := make(map[string]bool, len(claims))
		for i := range claims {
			names[claims[i].Node] = true
		}
		return len(names)
	}
	for i := range claims {
		if !slices.ContainsFunc(claims[:i], func(o fleet.Claim) bool { return o.Node == claims[i].Node }) {
			n++
		}
	}
	return n
}

// claimTakes is how much of a countable thing one claim holds, in the units of
// account.TRES.
func claimTakes(x *fleet.Claim, name string) resource.Amount {
	switch name {
	case "cpu":
		return x.Take.CPU
	case "memory":
		return x.Take.Memory
	case "disk":
		return x.Take.Disk
	case "task":
		return resource.Amount(x.Tasks)
	case "gpu":
		sum := aggregate.Count(x.Take, name)
		for _, d := range x.Devices {
			sum += resource.Amount(d.Share)
		}
		return sum
	}
	return x.Take.Get(name)
}
