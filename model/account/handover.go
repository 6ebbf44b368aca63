package account

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Handover says how many machines pools have, and when a machine goes from one pool to another on
// demand. Without pools none does.
type Handover struct {
	Pools []HandoverPool `json:"pools,omitempty" yaml:"pools,omitempty" doc:"pools that exchange machines on demand; no other pool gives or gets one"`
}

// HandoverPool is what a pool gives and gets.
type HandoverPool struct {
	Name     string   `json:"name" yaml:"name" doc:"name of the pool"`
	Min      int      `json:"min,omitempty" yaml:"min,omitempty" doc:"the pool gives no machine that would leave it with fewer; if it has fewer, it gets machines without weighing"`
	Max      int      `json:"max,omitempty" yaml:"max,omitempty" doc:"the pool gets no machine that would give it more; left out: no maximum"`
	Cost     int64    `json:"cost,omitempty" yaml:"cost,omitempty" doc:"GPU-seconds that a move away from the pool costs, beside what its drain leaves idle and loses"`
	Weight   *float64 `json:"weight,omitempty" yaml:"weight,omitempty" doc:"how much a GPU-second of work that waits in the pool counts, beside those of other pools; left out: 1"`
	After    Duration `json:"after,omitempty" yaml:"after,omitempty" doc:"how long the pool must have lacked machines before it gets one; left out: 5m"`
	Stay     Duration `json:"stay,omitempty" yaml:"stay,omitempty" doc:"how long a machine that came to the pool stays at least; gain and cost of a move are reckoned over this time; left out: 1h"`
	Drain    Duration `json:"drain,omitempty" yaml:"drain,omitempty" doc:"the longest drain: a machine leaves the pool only if what runs there is expected to end, or may be requeued, within this time; left out: 1h"`
	Requeue  bool     `json:"requeue,omitempty" yaml:"requeue,omitempty" doc:"requeue jobs (if they may be) that have not ended when the drain is over; what they lose counts as cost"`
	Exchange []string `json:"exchange,omitempty" yaml:"exchange,omitempty" doc:"pools that it exchanges machines with; left out: all that are listed and do not leave it out"`
}

// Values of fields of HandoverPool that are left out.
const (
	HandoverAfter = 5 * time.Minute
	HandoverStay  = time.Hour
	HandoverDrain = time.Hour
)

// Pool is the rules of a pool by its name; nil: it has none.
func (h *Handover) Pool(name string) *HandoverPool {
	for i := range h.Pools {
		if h.Pools[i].Name == name {
			return &h.Pools[i]
		}
	}
	return nil
}

// Exchanges reports whether machines may go from one of two pools to the other.
func (h *Handover) Exchanges(a, b string) bool {
	x, y := h.Pool(a), h.Pool(b)
	if x == nil || y == nil || a == b {
		return false
	}
	takes := func(p *HandoverPool, name string) bool {
		return len(p.Exchange) == 0 || slices.Contains(p.Exchange, name)
	}
	return takes(x, b) && takes(y, a)
}

// Factor is the weight of the pool's waiting work.
func (p *HandoverPool) Factor() float64 {
	if p.Weight == nil {
		return 1
	}
	return *p.Weight
}

// LacksFor is how long the pool must have lacked machines before it gets one.
func (p *HandoverPool) LacksFor() time.Duration { return orDefault(p.After, HandoverAfter) }

// StaysFor is how long a machine that came to the pool stays at least.
func (p *HandoverPool) StaysFor() time.Duration { return orDefault(p.Stay, HandoverStay) }

// DrainsFor is the longest drain of a machine of the pool.
func (p *HandoverPool) DrainsFor() time.Duration { return orDefault(p.Drain, HandoverDrain) }

func orDefault(d Duration, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return time.Duration(d)
}

// checkHandover finds bounds that contradict each other, and pools that are not listed.
func (c *check) checkHandover() {
	seen := map[string]bool{}
	for i := range c.p.Handover.Pools {
		p, path := &c.p.Handover.Pools[i], fmt.Sprintf("handover.pools[%d]", i)
		switch {
		case p.Name == "":
			c.addProblem(path+".name", "give the name of a pool: cox pool list", "has no name")
		case seen[p.Name]:
			c.addProblem(path+".name", "keep one of them", "%s is there twice", p.Name)
		}
		seen[p.Name] = true
		switch {
		case p.Min < 0 || p.Max < 0:
			c.addProblem(path, "write numbers of machines", "min and max are not negative")
		case p.Max > 0 && p.Min > p.Max:
			c.addProblem(path+".max", fmt.Sprintf("write at least %d, or lower min", p.Min), "%d is less than min, %d", p.Max, p.Min)
		}
		if p.Cost < 0 {
			c.addProblem(path+".cost", "write GPU-seconds from 0 on", "%d is negative", p.Cost)
		}
		if p.Weight != nil && *p.Weight < 0 {
			c.addProblem(path+".weight", "write a number from 0 on", "%g is negative", *p.Weight)
		}
		for k, name := range p.Exchange {
			at := fmt.Sprintf("%s.exchange[%d]", path, k)
			switch {
			case name == p.Name:
				c.addProblem(at, "leave it out", "%s cannot exchange machines with itself", name)
			case c.p.Handover.Pool(name) == nil:
				c.addProblem(at, fmt.Sprintf("name a pool that is listed in handover.pools, or list %s", name), "there is no pool %q here", name)
			case !c.p.Handover.Exchanges(p.Name, name):
				c.addProblem(at, fmt.Sprintf("add %s to the exchange of %s, or leave it out here", p.Name, name), "%s does not exchange machines with %s", name, p.Name)
			}
		}
	}
	if len(c.p.Handover.Pools) == 1 {
		c.addProblem("handover.pools", "list another pool, or leave handover out", "%s has no pool to exchange machines with", c.p.Handover.Pools[0].Name)
	}
}

// HandoverProblems finds what contradicts the pools that there are. Machines is how many machines each
// pool reports as its own or as one that it could have; total counts each machine once.
func (p *Policy) HandoverProblems(pools []string, machines map[string]int, total int) (out []Problem) {
	least, known := 0, true
	for i := range p.Handover.Pools {
		h, path := &p.Handover.Pools[i], fmt.Sprintf("handover.pools[%d]", i)
		if !slices.Contains(pools, h.Name) {
			out = append(out, Problem{path + ".name", fmt.Sprintf("there is no pool %q", h.Name), "pools: " + strings.Join(pools, ", ") + "; cox pool add adds one"})
			known = false
			continue
		}
		n, said := machines[h.Name]
		if !said {
			known = false // it has not reported its nodes yet
			continue
		}
		if h.Min > n {
			out = append(out, Problem{path + ".min", fmt.Sprintf("%d is more than the %d machines that pool %s could have", h.Min, n, h.Name), fmt.Sprintf("write at most %d, or add machines to the pool", n)})
		}
		least += h.Min
	}
	if known && least > total && len(out) == 0 {
		out = append(out, Problem{"handover.pools", fmt.Sprintf("the minimums are %d machines together, and there are %d", least, total), "lower one of them"})
	}
	return out
}
