package sched

import (
	"slices"
	"sort"

	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// Holder is a running job that has what a waiting one needs.
type Holder struct {
	Job   job.ID
	Until Instant // when its limit ends it; 0: no limit
	Nodes []string
}

// Holders lists the running jobs that stand on the nodes which a waiting job would
// get if running jobs ended in the order of their limits, those that end first
// first; nil if it fits now, or not even then.
func (c *Core) Holders(id job.ID) []Holder {
	e := c.queued[id]
	if e == nil {
		return nil
	}
	c.settle()
	shape, ends := e.line.kind.shape, c.ends.all()
	after := func(n int) []fleet.Claim {
		s := c.state.Clone()
		for _, r := range ends[:n] {
			s.Release(c.table, r.claims)
		}
		return place.Gang(c.table, s, shape)
	}
	n := sort.Search(len(ends)+1, func(n int) bool { return after(n) != nil })
	if n == 0 || n > len(ends) {
		return nil
	}
	wanted := map[string]bool{}
	for _, claim := range after(n) {
		wanted[claim.Node] = true
	}
	var out []Holder
	for _, r := range ends[:n] {
		h := Holder{Job: r.id, Until: orZero(r.until)}
		for i := range r.claims {
			if wanted[r.claims[i].Node] && !slices.Contains(h.Nodes, r.claims[i].Node) {
				h.Nodes = append(h.Nodes, r.claims[i].Node)
			}
		}
		if h.Nodes != nil {
			out = append(out, h)
		}
	}
	return out
}
