package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
)

// MostGroups bounds the rows of a report. Jobs of further groups are counted in one row, whose names
// are Others.
const MostGroups = 10_000

// Others is the name of the groups beyond MostGroups.
const Others = "(others)"

// Bytes and seconds in the units of reports.
const (
	gib  = 1 << 30
	hour = 3600
)

// Builder makes a report. It is not safe for concurrent use.
type Builder struct {
	q             Query
	from, to, now int64
	groups        map[group]*sums
	total         sums
	over          *timeline // nil: of kinds without one
}

// group is what rows are told apart by. Keys that the report is not by are empty.
type group struct {
	account, user, qos, pool, service string
	size                              int8
}

// NewBuilder begins a report.
func NewBuilder(q Query) *Builder {
	b := &Builder{q: q, from: q.From.Unix(), to: q.To.Unix(), now: q.Now.Unix(), groups: map[group]*sums{}}
	if q.Kind == Usage || q.Kind == Efficiency || q.Kind == Cost {
		b.over = newTimeline(b.from, b.to, q.Kind == Cost)
	}
	return b
}

// sizes are the classes of size, by devices and nodes asked for.
var sizes = []string{"1 node, no GPU", "2+ nodes, no GPU", "1 GPU or less", "2–8 GPUs", "9–64 GPUs", "65+ GPUs"}

// sizeOf is the class of a job, as a position in sizes.
func sizeOf(a *Amounts) int8 {
	switch gpus := a.GPUs(); {
	case gpus == 0 && a.Nodes < 2:
		return 0
	case gpus == 0:
		return 1
	case gpus <= 1:
		return 2
	case gpus <= 8:
		return 3
	case gpus <= 64:
		return 4
	}
	return 5
}

// groupOf is the group of a job.
func (b *Builder) groupOf(r *Record) (g group) {
	for _, k := range b.q.By {
		switch k {
		case ByAccount:
			g.account = r.Account
		case ByUser:
			g.user = r.User
		case ByQOS:
			g.qos = r.QOS
		case ByPool:
			g.pool = r.Pool
		case ByService:
			g.service = r.Service
		}
	}
	switch b.q.Kind {
	case Waits:
		g.size = sizeOf(&r.Asked)
	case Fairness: // shares are of accounts, and of users in them
		g.account = r.Account
	}
	return g
}

// otherGroup is the group that stands for those beyond MostGroups.
func (b *Builder) otherGroup(g group) group {
	for _, k := range []*string{&g.account, &g.user, &g.qos, &g.pool, &g.service} {
		if *k != "" {
			*k = Others
		}
	}
	return g
}

// sumsOf are the sums of a group.
func (b *Builder) sumsOf(g group) *sums {
	s := b.groups[g]
	if s == nil && len(b.groups) >= MostGroups {
		g = b.otherGroup(g)
		s = b.groups[g]
	}
	if s == nil {
		s = &sums{}
		b.groups[g] = s
	}
	return s
}

// Add counts a job.
func (b *Builder) Add(r *Record) {
	if b.q.Kind == Waits {
		b.addWait(r)
		return
	}
	var s *sums
	for i := range r.Attempts {
		a := &r.Attempts[i]
		in, ok := a.spanWithin(b.from, b.to, b.now)
		if !ok {
			continue
		}
		if s == nil {
			s = b.sumsOf(b.groupOf(r))
			s.jobs++
			b.total.jobs++
		}
		s.addAttempt(r, a, in)
		b.total.addAttempt(r, a, in)
		var c costs
		if b.q.Kind == Cost {
			c = costOf(&b.q.Prices, r.Pool, a, in)
			s.addCost(c)
			b.total.addCost(c)
		}
		if b.over != nil {
			b.over.add(a, in, c.gpu+c.cpu+c.memory)
		}
	}
}

func (b *Builder) addWait(r *Record) {
	seconds, started := r.waited(b.now)
	if !r.Waits && (started < b.from || started >= b.to) || r.Waits && r.Submitted >= b.to {
		return
	}
	for _, s := range []*sums{b.sumsOf(b.groupOf(r)), &b.total} {
		if !r.Waits {
			s.waits.add(seconds)
			continue
		}
		s.waiting++
		s.waitingFor = max(s.waitingFor, float64(seconds))
	}
}

// addAttempt adds the part of an attempt that is in the window.
func (s *sums) addAttempt(r *Record, a *Attempt, in span) {
	hours, asked := in.held/hour, in.held/hour // a job without a limit asked what it held
	gpus, memory := a.Held.GPUs(), float64(a.Held.Memory)/gib
	askedGPUs, askedCPUs := gpus, a.Held.CPUs
	if r.Limit > 0 {
		asked = float64(r.Limit) * in.part / hour
		askedGPUs, askedCPUs = r.Asked.GPUs(), r.Asked.CPUs
		if a.Ended != 0 && !a.CutShort {
			s.timeAsked += asked
			s.timeRan += hours
			s.gpuOver += max(asked-hours, 0) * gpus
		}
	}
	s.gpuAsked += askedGPUs * asked
	s.cpuAsked += askedCPUs * asked
	s.gpuHeld += gpus * hours
	s.cpuHeld += a.Held.CPUs * hours
	s.memoryHeld += memory * hours
	if a.Lost {
		s.gpuLost += gpus * hours
		s.cpuLost += a.Held.CPUs * hours
	}
	s.addUse(a, in)
}

// costs is what a part of an attempt costs, and the GPU-hours that have no price.
type costs struct{ gpu, cpu, memory, unpriced float64 }

// costOf is what the part of an attempt in a pool that is in the window costs.
func costOf(p *account.Prices, pool string, a *Attempt, in span) (c costs) {
	hours := in.held / hour
	for _, d := range a.Held.Devices {
		if price, ok := p.OfGPU(pool, d.Kind); ok {
			c.gpu += d.Count * hours * price
		} else {
			c.unpriced += d.Count * hours
		}
	}
	if price, ok := p.OfCPU(pool); ok {
		c.cpu = a.Held.CPUs * hours * price
	}
	if price, ok := p.OfMemory(pool); ok {
		c.memory = float64(a.Held.Memory) / gib * hours * price
	}
	return c
}

func (s *sums) addCost(c costs) {
	s.costGPU += c.gpu
	s.costCPU += c.cpu
	s.costMemory += c.memory
	s.gpuUnpriced += c.unpriced
}

// Report is the report of the jobs that were added.
func (b *Builder) Report() *Report {
	out := &Report{
		Kind: b.q.Kind, From: b.q.From.UTC(), To: b.q.To.UTC(), Made: b.q.Now.UTC(), By: b.q.By, Scope: b.q.Scope,
		Rows: []Row{}, Units: map[string]string{},
	}
	if out.Kind == Cost {
		out.Currency = b.q.Prices.Currency
	}
	if out.Kind == Fairness {
		out.Rows = b.fairRows()
	} else {
		for g, s := range b.groups {
			r := g.row(out.Kind)
			s.fill(&r, out.Kind)
			out.Rows = append(out.Rows, r)
		}
		b.addFree(out)
		slices.SortFunc(out.Rows, func(x, y Row) int { return compareRows(out.Kind, &x, &y) })
		out.Total = &Row{}
		b.total.fill(out.Total, out.Kind)
	}
	for _, c := range columnsOf(out) {
		if c.Unit != "" {
			out.Units[c.Name] = c.Unit
		}
	}
	if b.over != nil {
		out.OverTime = b.over.points()
	}
	out.Notes = b.notes(out)
	return out
}

// addFree says of pools what of their devices no job held; pools in which no job ran get a row.
func (b *Builder) addFree(r *Report) {
	if r.Kind != Efficiency || b.q.Devices == nil || len(b.q.By) != 1 || b.q.By[0] != ByPool {
		return
	}
	hours := float64(min(b.to, b.now)-b.from) / hour
	for pool, n := range b.q.Devices {
		i := slices.IndexFunc(r.Rows, func(x Row) bool { return x.Pool == pool })
		if i < 0 {
			i = len(r.Rows)
			r.Rows = append(r.Rows, Row{Pool: pool})
			new(sums).fill(&r.Rows[i], r.Kind)
		}
		r.Rows[i].GPUFree = known(max(float64(n)*hours-*r.Rows[i].GPUHeld, 0))
	}
}

// row is the row of a group, without its numbers.
func (g group) row(kind Kind) Row {
	r := Row{Account: g.account, User: g.user, QOS: g.qos, Pool: g.pool, Service: g.service}
	if kind == Waits {
		r.Size = sizes[g.size]
	}
	return r
}

// compareRows puts the rows with the most first, those of waits by name and size.
func compareRows(kind Kind, x, y *Row) int {
	most := 0
	if kind == Cost {
		most = cmp.Compare(*y.CostAll, *x.CostAll)
	}
	if kind != Waits {
		most = cmp.Or(most, cmp.Compare(*y.GPUHeld, *x.GPUHeld), cmp.Compare(*y.CPUHeld, *x.CPUHeld), cmp.Compare(*y.Jobs, *x.Jobs))
	}
	return cmp.Or(most, strings.Compare(x.Account, y.Account), strings.Compare(x.User, y.User), strings.Compare(x.QOS, y.QOS),
		strings.Compare(x.Pool, y.Pool), strings.Compare(x.Service, y.Service), slices.Index(sizes, x.Size)-slices.Index(sizes, y.Size))
}

// notes says what the numbers leave out.
func (b *Builder) notes(r *Report) (out []string) {
	if r.Scope == ScopeOwn {
		out = append(out, "Only your own jobs are counted: jobs are private here.")
	}
	if t := &b.total; (r.Kind == Usage || r.Kind == Efficiency) && t.gpuHeld > 0 && t.gpuMeasured < t.gpuHeld {
		text := "Nobody measured how these GPUs were used: what was idle is not known."
		if t.gpuMeasured > 0 {
			text = "What of the GPUs was used and idle is of " + hoursText(t.gpuMeasured) + " of the " + hoursText(t.gpuHeld) + " GPU-hours allocated (" +
				percentText(100*t.gpuMeasured/t.gpuHeld) + "): nobody measured the others."
		}
		out = append(out, text)
	}
	if slices.ContainsFunc(r.Rows, func(x Row) bool { return x.GPUFree != nil }) {
		out = append(out, "GPU-hours that no job held are of the devices that pools have now.")
	}
	if b.total.gpuUnpriced > 0 {
		out = append(out, "No rate has a price for "+hoursText(b.total.gpuUnpriced)+" GPU-hours: add one to prices.rates of the site's rules.")
	}
	if r.Kind == Cost && len(b.q.Prices.Rates) == 0 {
		out = append(out, "The site's rules have no prices: nothing costs anything (docs/how-to/report.md).")
	}
	if len(b.groups) > MostGroups {
		out = append(out, "There are too many groups for one report: the rest is counted as "+Others+".")
	}
	return out
}
