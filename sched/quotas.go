package sched

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/fold"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// This file counts what runs against the quotas of a policy (sched/quota). The account
// of a job, or the nearest one above it that has a quota, is its queue. What runs is
// charged to its queue in the flavours that it was placed in. stake.go says what a
// waiting job asks of its queue and what waits there, turn.go whose turn it is.

// quotas is what is held of the quotas of a policy.
type quotas struct {
	*quota.State
	queues  []*queue // by node; nil: a cohort
	trees   []*tree
	parents map[string]string // of accounts
	later   *quota.State      // of then; nil: to be made
	stirred bool              // something runs or runs no longer since retry
	changes uint64            // raised when something is charged or given back
	alone   []int32           // each flavour, by number
	names   [][]string        // the same, by name
	used    []quota.Need      // scratch of taken
	over    bool              // a line may rest because its job took more than there was
	led     []*queue          // with leaders
	ranked  uint64            // raised when lines may stand in another order
	behind  []*queue          // with lines that are looked at behind the head, and some that had
	rallied bool              // lines may go on because another one no longer stands before them
}

// queue is an account that holds jobs.
type queue struct {
	node   int32
	tree   *tree
	strict bool
	choice bool    // it has flavours that are alternatives
	falls  bool    // it goes on to the next one where one has no room
	bold   bool    // it may rather stop others than go on to the next one
	lines  []*line // of its jobs
	cuts   int     // of these, those whose jobs may do with fewer tasks

	heads   ownHeads     // of these, those that could lead the queue
	order   order        // of these, those that are looked at behind the head
	behind  bool         // it stands in quotas.behind
	demands []*demand    // of its lines
	asks    []quota.Need // of each of these, a need by which most are passed over at once; nothing: it has to be looked at
	leader  *line        // that was let go on and has not been looked at; the others follow it
	byShape map[*class.Shape]*demand
}

// demand is what the jobs of one shape ask of a queue.
type demand struct {
	shape *class.Shape
	index int          // in queue.demands
	uses  int          // lines
	needs []quota.Need // of one job
	cuts  bool         // it may do with fewer tasks

	got     bid    // as of …
	changes uint64 // … quotas.changes
	fleet   uint64 // … and Core.fleet

	waiting []*line // that rest for the quota, and some that did
	best    *line   // no job of these goes before its first one; nil: not known
	ranked  uint64  // quotas.ranked then
}

// noteNeed notes what a demand needs.
func (q *queue) noteNeed(d *demand) {
	q.asks[d.index] = quota.Need{}
	if !d.cuts && len(d.needs) > 0 {
		q.asks[d.index] = d.needs[0]
	}
}

// demandOf returns the demand of jobs of a shape, for one line more.
func (q *queue) demandOf(shape *class.Shape) *demand {
	d := q.byShape[shape]
	if d == nil {
		d = &demand{shape: shape, index: len(q.demands)}
		q.byShape[shape] = d
		q.demands, q.asks = append(q.demands, d), append(q.asks, quota.Need{})
	}
	d.uses++
	return d
}

// releaseDemand is demandOf for one line less.
func (q *queue) releaseDemand(d *demand) {
	if d.uses--; d.uses == 0 {
		n := len(q.demands) - 1
		last := q.demands[n]
		q.demands[d.index], q.asks[d.index], last.index = last, q.asks[n], d.index
		q.demands, q.asks = q.demands[:n], q.asks[:n]
		delete(q.byShape, d.shape)
	}
}

// listForQuota lists a line that rests for its quota where it is found when that may reach.
// One that took more than there was where it was placed is not among them, though its
// quota may reach: retry finds it, once something else runs than now.
func (l *line) listForQuota() {
	s := l.stake
	if l.over {
		return
	}
	if !s.listed {
		s.listed = true
		s.demand.waiting = append(s.demand.waiting, l)
	}
	l.offerAsBest()
}

// offerAsBest makes a line that waits the best of its demand if it goes before that one.
func (l *line) offerAsBest() {
	if b := l.stake.demand.best; b != nil && b != l && hasJobs(l) && (!hasJobs(b) || l.goesBefore(b)) {
		l.stake.demand.best = l
	}
}

// updateBest notes that a line's first job is another one.
func (l *line) updateBest() {
	switch {
	case l.stake == nil:
	case l.stake.demand.best == l:
		l.stake.demand.best = nil
	case l.waitsForQuota():
		l.offerAsBest()
	}
}

// firstWaiting is the line whose first job goes first of those that wait; nil: none does.
func (q *quotas) firstWaiting(d *demand) *line {
	if b := d.best; b != nil && d.ranked == q.ranked && b.waitsForQuota() {
		return b
	}
	d.best, d.ranked = nil, q.ranked
	var least *rung
	d.waiting = slices.DeleteFunc(d.waiting, func(l *line) bool {
		switch {
		case !l.waitsForQuota():
			l.stake.listed = false
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

// waitsForQuota reports whether a line rests for a quota that does not reach.
func (l *line) waitsForQuota() bool { return l.rest == forQuota && l.members > 0 && !l.over }

// stillWaiting lists the lines that wait of those that did.
func (d *demand) stillWaiting() []*line {
	d.waiting = slices.DeleteFunc(d.waiting, func(l *line) bool {
		l.stake.listed = l.waitsForQuota()
		return !l.stake.listed
	})
	return d.waiting
}

// tree is what the queues below one root have in common.
type tree struct {
	queues []*queue
	freed  bool   // something was given back since lines were woken for it last
	moved  bool   // something was taken or given back since choices were looked at last
	single bool   // one line of all its queues is let go on at a time
	calm   uint64 // quotas.changes when none of its lines could go on
}

// newQuotas compiles the quotas of a policy; nil: it has none. One that contradicts
// itself, which is refused where policies are set, has none either.
func newQuotas(p *account.Policy) *quotas {
	t, err := quota.New(p)
	if t == nil || err != nil {
		return nil
	}
	q := &quotas{State: t.NewState(), queues: make([]*queue, t.Len()), parents: map[string]string{}, changes: 1}
	for f := range t.Flavors {
		q.alone = append(q.alone, int32(f))
		q.names = append(q.names, []string{t.Flavors[f].Name})
	}
	below := make([]*tree, t.Len())
	for n := range int32(t.Len()) {
		if t.Parent(n) == quota.None {
			below[n] = &tree{}
			q.trees = append(q.trees, below[n])
		}
		if len(t.Children(n)) == 0 {
			of := below[t.Root(n)]
			q.queues[n] = &queue{node: n, tree: of, strict: t.Strict(n), choice: t.Choice(n), byShape: map[*class.Shape]*demand{}}
			r := t.Rules(n)
			q.queues[n].falls, q.queues[n].bold = triesNextFlavor(r, t.Choice(n)), preemptsFirst(r, t.Choice(n))
			of.queues = append(of.queues, q.queues[n])
		}
	}
	for i := range p.Accounts {
		q.parents[p.Accounts[i].Name] = p.Accounts[i].Parent
	}
	return q
}

// queueOf returns the queue of an account; nil: none.
func (q *quotas) queueOf(account string) *queue {
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
	q := r.terms.queue
	if q == nil {
		return
	}
	used := c.amountsTaken(r.allClaims())
	if had := c.flavorsNamed(r.flavors); r.flavors == nil || len(had) < len(r.flavors) { // not known, or the rules know some no longer
		flavors := c.quotas.FlavorsOf(q.node, used, had, func(f int32) bool { return c.claimsInFlavor(r.claims, &c.quotas.Flavors[f]) })
		r.flavors = c.flavorNames(flavors)
	}
	r.charges = c.quotas.Charges(q.node, used, c.flavorsNamed(r.flavors))
	q.tree.moved = true
	if r.nominee != nil { // it is counted then (later.go)
		c.quotas.noteChange()
		q.tree.freed = true
		return
	}
	c.quotas.takeQuota(q.node, r.charges)
}

// creditQuota gives back what a run held.
func (c *Core) creditQuota(r *run) {
	if q := r.terms.queue; q != nil {
		q.tree.moved, q.tree.freed = true, true
		if r.nominee != nil {
			c.quotas.noteChange()
			return
		}
		c.quotas.giveQuota(q.node, r.charges)
	}
}

// flavorsFor is in which flavours a waiting job is placed; nil: it has no quota.
func (c *Core) flavorsFor(e *entry) []string {
	switch {
	case e.nominee != nil:
		return e.nominee.run.flavors
	case e.line.stake != nil:
		return c.flavorNames(e.line.stake.got.Flavors)
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
		pos := c.table.Find(claims[i].Key())
		if pos < 0 {
			continue
		}
		n := c.table.Node(pos)
		if slices.ContainsFunc(f.Features, func(x string) bool { return !slices.Contains(n.Features, x) }) ||
			f.GPUType != "" && !slices.ContainsFunc(n.Devices, func(d fleet.Device) bool { return d.Type == f.GPUType }) && fold.Count(n.Capacity, "gpu:"+f.GPUType) == 0 {
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
				a = a.Add(claims[k].Take.Get(fold.Nodes))
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
		sum := fold.Count(x.Take, name)
		for _, d := range x.Devices {
			sum += resource.Amount(d.Share)
		}
		return sum
	}
	return x.Take.Get(name)
}
