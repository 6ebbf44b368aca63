package demand

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// plan is a decision that is being made.
type plan struct {
	in    *Input
	pools map[string]*pool
	order []*pool // as in the rules
	out   Output
	wait  string // why the pool that is looked at gets nothing
}

// Decide decides which machines are handed over now. It returns the same for the same input.
func Decide(in *Input) Output {
	p := &plan{in: in, pools: map[string]*pool{}}
	p.out.Memory.Lacks = maps.Clone(in.Memory.Lacks)
	if p.out.Memory.Lacks == nil {
		p.out.Memory.Lacks = map[string]time.Time{}
	}
	p.out.Memory.Needs = map[string][]Need{}
	p.collectPools()
	p.noteLacks()
	for {
		best := p.bestChoice()
		if best == nil {
			break
		}
		p.makeMoves(best)
	}
	for i, x := range p.order {
		if x.gave {
			delete(p.out.Memory.Lacks, x.rules.Name)
		}
		p.explainStanding(&p.out.Pools[i], x)
	}
	return p.out
}

// collectPools sorts machines and wants into the pools of the rules.
func (p *plan) collectPools() {
	for i := range p.in.Rules.Pools {
		x := &pool{rules: &p.in.Rules.Pools[i], needs: p.in.Memory.Needs[p.in.Rules.Pools[i].Name]}
		p.pools[x.rules.Name] = x
		p.order = append(p.order, x)
	}
	machines := make([]*Machine, len(p.in.Machines))
	for i := range p.in.Machines {
		machines[i] = &p.in.Machines[i]
	}
	slices.SortStableFunc(machines, func(a, b *Machine) int { return cmp.Compare(a.Name, b.Name) })
	for _, m := range machines {
		switch {
		case m.To == "":
			if x := p.pools[m.Pool]; x != nil {
				x.machines = append(x.machines, m)
			}
		case p.pools[m.To] != nil:
			p.pools[m.To].coming = append(p.pools[m.To].coming, m)
		}
	}
	for i := range p.in.Waiting {
		if x := p.pools[p.in.Waiting[i].Pool]; x != nil {
			x.wants = append(x.wants, &p.in.Waiting[i])
		}
	}
}

// noteLacks notes since when pools lack machines.
func (p *plan) noteLacks() {
	for name := range p.out.Memory.Lacks {
		if p.pools[name] == nil {
			delete(p.out.Memory.Lacks, name)
		}
	}
	for _, x := range p.order {
		l := x.findLack(StepsTake)
		x.noteNeed(p.in.Now, l.units)
		p.out.Memory.Needs[x.rules.Name] = x.needs
		s := Standing{Pool: x.rules.Name, Machines: x.machineCount(), Lacks: l.units}
		for _, m := range x.machines {
			if len(m.Runs) == 0 && !m.Away {
				s.Idle++
			}
		}
		if since, ok := p.out.Memory.Lacks[x.rules.Name]; !p.isShort(x, &l) {
			delete(p.out.Memory.Lacks, x.rules.Name)
		} else if !ok || since.After(p.in.Now) {
			p.out.Memory.Lacks[x.rules.Name] = p.in.Now
		}
		s.Since = p.out.Memory.Lacks[x.rules.Name]
		p.out.Pools = append(p.out.Pools, s)
	}
}

// isShort reports whether a pool has fewer machines than its minimum, or more work than room with what
// comes.
func (p *plan) isShort(x *pool, l *lack) bool {
	return x.machineCount() < x.rules.Min || l.worthOf(x.comingUnits()+l.units, x.rules.StaysFor()) > l.worthOf(x.comingUnits(), x.rules.StaysFor())
}

// choice is machines that could go to a pool.
type choice struct {
	to         *pool
	machines   []candidate
	gain, cost int64
	least      bool // so that it has its minimum
	lack       lack
}

func (c *choice) netGain() int64 { return c.gain - c.cost }

// candidate is a machine that could go.
type candidate struct {
	*Machine
	from *pool
	drained
	loss int64 // what the pool that has it loses
	own  int64 // what else the move costs
}

func (c *candidate) cost() int64 { return c.loss + c.own }

// bestChoice is the choice of all pools that gains most; nil: none gains anything.
func (p *plan) bestChoice() *choice {
	var best *choice
	for i, x := range p.order {
		since, short := p.out.Memory.Lacks[x.rules.Name]
		if !short || x.gave {
			continue
		}
		c := p.choiceFor(x, since)
		p.out.Pools[i].Why = p.wait
		switch {
		case c == nil:
		case best == nil, c.least && !best.least, c.least == best.least && c.netGain() > best.netGain():
			best = c
		}
	}
	return best
}

// choiceFor is the machines that gain most for a pool; nil: none, and wait says why.
func (p *plan) choiceFor(to *pool, since time.Time) *choice {
	p.wait = ""
	if due := since.Add(to.rules.LacksFor()); due.After(p.in.Now) {
		p.wait = fmt.Sprintf("it has lacked machines for %s, and gets one after %s", shortTime(p.in.Now.Sub(since)), shortTime(to.rules.LacksFor()))
		p.wakeAt(due)
		return nil
	}
	space := len(p.in.Machines)
	if to.rules.Max > 0 {
		if space = to.rules.Max - to.machineCount(); space <= 0 {
			p.wait = fmt.Sprintf("it has its maximum of %s", countOf(to.rules.Max, "machine"))
			return nil
		}
	}
	all, why := p.candidatesFor(to)
	if len(all) == 0 {
		p.wait = why
		return nil
	}
	if missing := to.rules.Min - to.machineCount(); missing > 0 {
		c := &choice{to: to, machines: all[:min(missing, len(all), space)], least: true}
		c.sumCosts()
		return c
	}
	return p.weighNumbers(to, all[:min(space, len(all))])
}

// sumCosts reckons the costs of all machines together: each that leaves a pool makes the next dearer.
func (c *choice) sumCosts() {
	c.cost = 0
	gone := map[*pool][]*Machine{}
	for i := range c.machines {
		m := &c.machines[i]
		gone[m.from] = append(gone[m.from], m.Machine)
		c.cost += m.own
	}
	for from, list := range gone { // a sum: the order does not matter
		c.cost += from.lossOf(list)
	}
}

// weighNumbers finds how many of the cheapest candidates gain most.
func (p *plan) weighNumbers(to *pool, all []candidate) *choice {
	var best, dearest *choice
	units, takes := 0, time.Duration(0)
	for k := range all {
		units += all[k].Units
		takes = max(takes, all[k].takes)
		c := &choice{to: to, machines: all[:k+1], lack: to.findLack(StepsTake + takes)}
		c.gain = to.worthMore(&c.lack, units)
		c.sumCosts()
		if best == nil || c.netGain() > best.netGain() {
			best = c
		}
		if dearest = c; c.gain >= to.worthMore(&c.lack, c.lack.units+units) {
			break // more machines add nothing
		}
	}
	if best.netGain() <= 0 {
		p.wait = fmt.Sprintf("the best move, of %s from %s, gains %d %s-seconds and costs %d", best.machines[0].Name, best.machines[0].from.rules.Name, best.gain, p.in.Unit, best.cost)
		if best.gain == 0 {
			p.wait = fmt.Sprintf("%s would not help: %s", countOf(len(dearest.machines), "machine"), "what waits would start before, or needs more of them")
		}
		return nil
	}
	return best
}

// candidatesFor lists the machines that could go to a pool, the cheapest first; if there is none, it says
// why.
func (p *plan) candidatesFor(to *pool) (all []candidate, why string) {
	found := map[string]int{}
	for _, from := range p.order {
		if !p.in.Rules.Exchanges(from.rules.Name, to.rules.Name) {
			continue
		}
		if from.got || from.gets(to.rules.Name) {
			found[fmt.Sprintf("machines are on the way to %s", from.rules.Name)]++
			continue
		}
		spare := len(from.machines) - from.rules.Min
		if spare <= 0 {
			found[fmt.Sprintf("%s has only its minimum of %s", from.rules.Name, countOf(from.rules.Min, "machine"))]++
			continue
		}
		var own []candidate
		for _, m := range from.machines {
			due, again := m.Came.Add(from.rules.StaysFor()), m.Tried.Add(from.rules.DrainsFor())
			switch {
			case !slices.Contains(m.Could, to.rules.Name):
				found[fmt.Sprintf("%s does not have the machines of %s as nodes", to.rules.Name, from.rules.Name)]++
				continue
			case m.Away:
				found[fmt.Sprintf("machines of %s are drained or do not answer", from.rules.Name)]++
				continue
			case !m.Came.IsZero() && due.After(p.in.Now):
				found[fmt.Sprintf("machines of %s came less than %s ago", from.rules.Name, shortTime(from.rules.StaysFor()))]++
				p.wakeAt(due)
				continue
			case !m.Tried.IsZero() && again.After(p.in.Now):
				found[fmt.Sprintf("hand-overs of machines of %s were walked back", from.rules.Name)]++
				p.wakeAt(again)
				continue
			}
			d, ok := from.drainOf(m, p.in.Now)
			if !ok {
				found[fmt.Sprintf("what runs on machines of %s does not end within %s", from.rules.Name, shortTime(from.rules.DrainsFor()))]++
				continue
			}
			c := candidate{Machine: m, from: from, drained: d}
			c.loss, c.own = from.lossOf([]*Machine{m}), d.lost+from.rules.Cost
			if c.loss > 0 { // somebody there could use it
				c.own += d.idle
			}
			own = append(own, c)
		}
		slices.SortStableFunc(own, compareCandidates)
		all = append(all, own[:min(spare, len(own))]...)
	}
	slices.SortStableFunc(all, compareCandidates)
	if len(all) > 0 {
		return all, ""
	}
	reasons := slices.Sorted(maps.Keys(found))
	slices.SortStableFunc(reasons, func(a, b string) int { return found[b] - found[a] })
	if len(reasons) == 0 {
		return nil, "no other pool has machines that it exchanges with it"
	}
	return nil, strings.Join(reasons, "; ")
}

// compareCandidates orders the cheaper before the dearer, then the sooner, then by name.
func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.cost(), b.cost()), cmp.Compare(a.takes, b.takes), cmp.Compare(a.Name, b.Name))
}

// makeMoves makes the moves of a choice.
func (p *plan) makeMoves(c *choice) {
	rest := c.cost // of losses together, shared evenly
	for i := range c.machines {
		rest -= c.machines[i].own
	}
	for i := range c.machines {
		m := &c.machines[i]
		m.loss = rest / int64(len(c.machines))
		move := Move{
			Machine: m.Name, From: m.from.rules.Name, To: c.to.rules.Name, Drain: m.takes, Until: p.in.Now.Add(m.until), Requeue: m.requeue, Forced: m.forced,
			Gain: c.gain / int64(len(c.machines)), Cost: m.cost(),
		}
		move.Reason = p.reasonOf(c, m)
		p.out.Moves = append(p.out.Moves, move)
	}
	for i := range c.machines {
		m := &c.machines[i]
		m.from.machines = slices.DeleteFunc(m.from.machines, func(x *Machine) bool { return x == m.Machine })
		m.from.gave, m.from.known = true, nil
		c.to.coming = append(c.to.coming, m.Machine)
	}
	c.to.got = true
	l := c.to.findLack(StepsTake)
	if !p.isShort(c.to, &l) {
		delete(p.out.Memory.Lacks, c.to.rules.Name)
	}
}

func (p *plan) wakeAt(t time.Time) {
	if p.out.Next.IsZero() || t.Before(p.out.Next) {
		p.out.Next = t
	}
}
