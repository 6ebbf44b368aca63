package sched

import (
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/sched/class"
)

// tickPriorities brings usage and priorities up to date if that is due.
func (c *Core) tickPriorities(now Instant) {
	r := c.priority.multifactor
	if r == nil {
		return
	}
	if now >= r.nextTick() {
		c.chargeUsage(wholeSecond(now))
		r.standing, r.at = r.book.Rank(), r.book.At()
		c.priority.usageChanged = r.used
		c.countGrantedAges()
		c.priority.stale = true
	}
	if c.priority.stale {
		c.reorderQueue()
		c.wakeForThreshold()
	}
}

// nextTick is the instant of the next tick.
func (r *multifactor) nextTick() Instant {
	at := r.at + r.period
	if reset := r.book.Reset(); reset > r.at {
		at = min(at, reset)
	}
	return atSecond(at)
}

// tickDue is when the next tick is wanted: none where there is nobody to order and
// nothing to charge.
func (c *Core) tickDue() Instant {
	if c.priority.multifactor == nil || len(c.queue.jobs)+len(c.runs.byJob) == 0 {
		return 0
	}
	return c.priority.multifactor.nextTick()
}

// chargeUsage lets what was used decay up to a second, and charges what runs.
func (c *Core) chargeUsage(now int64) {
	c.priority.multifactor.book.Advance(now)
	for _, chunk := range c.runs.ends.chunks {
		for _, r := range chunk {
			c.billRun(r, now)
		}
	}
	c.priority.multifactor.book.Settle()
}

// billRun charges a job for what it used up to a second.
func (c *Core) billRun(r *run, to int64) {
	if r.nominee != nil || r.waits || c.priority.multifactor == nil {
		return
	}
	if !r.bill.known {
		if r.policy.priority.assoc < 0 && r.policy.priority.qos < 0 {
			return
		}
		r.bill.use, r.bill.known = c.useOf(r), true
	}
	c.priority.multifactor.book.Charge(&r.bill.use, max(wholeSecond(r.began), r.bill.upTo), to)
	c.priority.multifactor.used = true
}

// billEnd is billRun for a job that ended at an instant, not before its start. What it was
// charged for beyond that, because nobody had heard of its end, is given back. Usage is not
// kept anew for that: what is kept is as of a tick, and the record of the end has it.
func (c *Core) billEnd(r *run, ended Instant) {
	to := wholeSecond(max(ended, r.began))
	c.billRun(r, to)
	if r.bill.known && !r.waits && c.priority.multifactor != nil && c.priority.multifactor.book.Return(&r.bill.use, wholeSecond(r.began), max(to, r.bill.upTo)) {
		c.priority.multifactor.used = true
	}
}

// Owes lists what a running job that ended at an instant, not before its start, has used
// and Usage does not have yet; less than nothing where Usage has more than that. Who keeps
// it tells it in UsageSet.Since after a restart.
func (c *Core) Owes(ended Instant, id job.ID) []fair.Entry {
	r := c.runs.byJob[id]
	if r == nil || r.nominee != nil || c.priority.multifactor == nil {
		return nil
	}
	return c.owedUsage(ended, r)
}

// OwesLate is Owes for a job of a pool as a whole that ended before its start was heard of.
func (c *Core) OwesLate(ended Instant, id job.ID, began Instant) []fair.Entry {
	r := c.runs.byJob[id]
	if r == nil || !r.waits || c.priority.multifactor == nil || r.policy.priority.assoc < 0 && r.policy.priority.qos < 0 {
		return nil
	}
	use := c.useOf(r)
	return c.priority.multifactor.book.BillLate(&use, wholeSecond(began), wholeSecond(max(ended, began)))
}

// Late lists what a job of a pool as a whole, which began at an instant, used up to the second
// of the usage that was kept last, which cannot have it; kept 0: there is none, and at is the
// second up to which the core has charged others.
func (c *Core) Late(id job.ID, began Instant, kept int64) (at int64, used []fair.Entry) {
	r := c.runs.byJob[id]
	if r == nil || !r.waits || c.priority.multifactor == nil || r.policy.priority.assoc < 0 && r.policy.priority.qos < 0 {
		return 0, nil
	}
	if kept == 0 {
		kept = c.priority.multifactor.book.At()
	}
	use := c.useOf(r)
	return kept, c.priority.multifactor.book.BillLate(&use, wholeSecond(began), kept)
}

// beginBilling has a job charged that its pool's own scheduler began at an instant: also for the
// time before that was heard of. What it is charged for that is to be kept.
func (c *Core) beginBilling(r *run, at Instant) {
	r.waits, r.began, r.pause.turn = false, at, at
	if c.priority.multifactor == nil || r.policy.priority.assoc < 0 && r.policy.priority.qos < 0 {
		return
	}
	r.bill.use, r.bill.known = c.useOf(r), true
	if c.priority.multifactor.book.Late(&r.bill.use, wholeSecond(at)) {
		c.priority.usageChanged = true
	}
	c.priority.multifactor.used = true
}

// OwesFor is Owes for what was added to a job, which ends before the job does.
func (c *Core) OwesFor(ended Instant, m Member) []fair.Entry {
	if r := c.runs.byJob[m.Job]; r != nil && c.priority.multifactor != nil {
		return c.owedUsage(ended, r.additionOn(m.Node))
	}
	return nil
}

func (c *Core) owedUsage(ended Instant, r *run) []fair.Entry {
	if r == nil || r.waits || r.policy.priority.assoc < 0 && r.policy.priority.qos < 0 {
		return nil
	}
	use := r.bill.use
	if !r.bill.known {
		use = c.useOf(r)
	}
	return c.priority.multifactor.book.Bill(&use, wholeSecond(r.began), max(wholeSecond(max(ended, r.began)), r.bill.upTo))
}

// useOf works out what a job is charged for.
func (c *Core) useOf(r *run) fair.Use {
	m := &r.policy.priority
	u := fair.Use{Part: r.of != nil, Assoc: m.assoc, QOS: m.qos, PartQOS: m.partQOS, Factor: m.usageFactor}
	var billed []resource.Amount
	for _, name := range m.bill.Names {
		billed = append(billed, c.heldAmount(r, name))
	}
	u.Billing = m.bill.Units(billed)
	for _, name := range c.priority.multifactor.book.Names {
		if name == "billing" {
			u.TRES = append(u.TRES, u.Billing)
			continue
		}
		u.TRES = append(u.TRES, float64(c.heldAmount(r, name)))
	}
	return u
}

// heldAmount is how much of a thing a job holds.
func (c *Core) heldAmount(r *run, name string) (sum resource.Amount) {
	if lic, ok := strings.CutPrefix(name, "license/"); ok {
		return heldLicenses(r, lic)
	}
	for i := range r.claims {
		claim := &r.claims[i]
		switch name {
		case "cpu":
			sum = sum.Add(claim.Take.CPU)
		case "memory":
			sum = sum.Add(claim.Take.Memory)
		case "disk":
			sum = sum.Add(claim.Take.Disk)
		case "node":
			if !slices.ContainsFunc(r.claims[:i], func(o fleet.Claim) bool { return o.Node == claim.Node }) {
				sum++
			}
			sum = sum.Add(claim.Take.Get(aggregate.Nodes))
		default:
			if kind, typ, typed := strings.Cut(name, ":"); typed || name == "gpu" {
				sum = sum.Add(c.countDevices(claim, kind, typ)).Add(aggregate.Count(claim.Take, name))
			} else {
				sum = sum.Add(claim.Take.Get(name))
			}
		}
	}
	return sum
}

// countDevices counts devices of a kind and a type in thousandths; typ "": any.
func (c *Core) countDevices(claim *fleet.Claim, kind, typ string) (sum resource.Amount) {
	pos := c.fleet.table.Find(claim.Key())
	for _, x := range claim.Devices {
		k, t := "gpu", ""
		if pos >= 0 {
			for _, d := range c.fleet.table.Node(pos).Devices {
				if d.Index == x.Index {
					k, t = d.Kind, d.Type
					break
				}
			}
		}
		if k == kind && (typ == "" || t == typ) {
			sum += resource.Amount(x.Share)
		}
	}
	return sum
}

func heldLicenses(r *run, name string) (sum resource.Amount) {
	if r.spec == nil || r.of != nil {
		return 0
	}
	list, _ := account.ParseLicenses(r.policy.key.licenses) // refused at the door
	for _, l := range list {
		if l.Name == name {
			sum += resource.Amount(l.Count)
		}
	}
	return sum
}

// shapeWants is how much of a thing a shape asks for at least.
func shapeWants(shape *class.Shape, name string) (sum float64) {
	for i := range shape.Groups {
		g := &shape.Groups[i]
		switch name {
		case "cpu":
			sum += float64(g.All.CPU)
		case "memory":
			sum += float64(g.All.Memory)
		case "disk":
			sum += float64(g.All.Disk)
		case "node":
			sum += float64(g.MinNodes) + float64(g.All.Get(aggregate.Nodes))
		default:
			kind, typ, typed := strings.Cut(name, ":")
			if !typed && name != "gpu" {
				sum += float64(g.All.Get(name))
				continue
			}
			tasks := g.Least
			if g.Each > 0 {
				tasks = g.Each * g.MinNodes
			}
			sum += float64(aggregate.Count(g.All, name))
			sum += float64(neededDevices(g.BaseDevices, kind, typ)*g.MinNodes + neededDevices(g.StepDevices, kind, typ)*tasks + neededDevices(g.TotalDevices, kind, typ))
		}
	}
	return sum
}

func neededDevices(needs []class.Need, kind, typ string) (sum int) {
	for _, n := range needs {
		if n.Kind == kind && (typ == "" || n.Type == typ) {
			sum += n.Count * int(n.Share)
		}
	}
	return sum
}

// fleetMeasured forgets what partitions have, because the fleet has changed: sizes are parts
// of it.
func (c *Core) fleetMeasured() {
	if c.priority.multifactor != nil && c.priority.multifactor.rules != nil {
		c.priority.multifactor.all = nil
		for _, l := range c.queue.classes {
			c.computeSize(l)
		}
		c.reorderQueue()
	}
}

// totalsOf is what a partition has; "": all nodes.
func (c *Core) totalsOf(partition string) *partitionTotals {
	r := c.priority.multifactor
	if w := r.all[partition]; w != nil {
		return w
	}
	w := &partitionTotals{tres: make([]float64, len(r.rules.Names))}
	for i := range c.fleet.table.Len() {
		n := c.fleet.table.Node(i)
		if partition != "" && !n.In(partition) {
			continue
		}
		w.nodes++
		w.cpus += float64(n.Capacity.CPU) / 1000
		for k, name := range r.rules.Names {
			w.tres[k] += c.nodeHas(i, name)
		}
	}
	if r.all == nil {
		r.all = map[string]*partitionTotals{}
	}
	r.all[partition] = w
	return w
}

// nodeHas is how much of a thing a node has.
func (c *Core) nodeHas(pos int, name string) (sum float64) {
	n := c.fleet.table.Node(pos)
	switch name {
	case "cpu":
		return float64(n.Capacity.CPU)
	case "memory":
		return float64(n.Capacity.Memory)
	case "disk":
		return float64(n.Capacity.Disk)
	case "node":
		if aggregate.Is(n.Name) {
			return float64(n.Capacity.Get(aggregate.Whole))
		}
		return 1
	}
	sum = float64(aggregate.Count(n.Capacity, name))
	kind, typ, typed := strings.Cut(name, ":")
	if !typed && name != "gpu" {
		return float64(n.Capacity.Get(name))
	}
	for _, d := range n.Devices {
		if d.Kind == kind && (typ == "" || d.Type == typ) {
			sum += float64(resource.WholeDevice)
		}
	}
	return sum
}

// usageNames lists the things whose use in time some limit bounds.
func usageNames(p *account.Policy) []string {
	names := map[string]bool{}
	note := func(l *account.Limits) {
		for name := range l.GroupMinutes {
			names[name] = true
		}
	}
	for i := range p.Accounts {
		note(&p.Accounts[i].Limits)
		for j := range p.Accounts[i].Users {
			note(&p.Accounts[i].Users[j].Limits)
		}
	}
	for i := range p.QOS {
		note(&p.QOS[i].Limits)
	}
	return slices.Sorted(maps.Keys(names))
}

// tellUsed appends that usage was brought up to date.
func (c *Core) tellUsed(out []Decision) []Decision {
	if !c.priority.usageChanged {
		return out
	}
	c.priority.usageChanged, c.priority.multifactor.used = false, false
	return append(out, Used{At: c.priority.multifactor.at})
}

// Usage is what was used up to a second, to be kept for UsageSet.
func (c *Core) Usage() (at int64, entries []fair.Entry) {
	if c.priority.multifactor == nil {
		return 0, nil
	}
	entries = c.priority.multifactor.book.Entries()
	return c.priority.multifactor.book.At(), slices.DeleteFunc(entries, func(e fair.Entry) bool { return e.Raw < trifle && e.Wall < trifle })
}

// trifle is usage that has decayed so far that nobody can tell it from none.
const trifle = 1e-4

// restoreUsage takes over what was used before a restart.
func (c *Core) restoreUsage(u UsageSet) {
	if r := c.priority.multifactor; r != nil && u.At > 0 {
		r.book.Restore(min(u.At, wholeSecond(c.clock.now)), u.Entries)
		r.book.Add(u.Since)
		r.standing, r.at = r.book.Rank(), r.book.At()
		c.priority.stale, c.cycleDue = true, true
	}
}
