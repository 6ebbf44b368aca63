package sched

import (
	"slices"
	"sort"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// Blocker is a running job that has what a waiting one needs.
type Blocker struct {
	Job   job.ID
	Until Instant // when its limit ends it; 0: no limit
	Nodes []string
}

// Blockers lists the running jobs that stand on the nodes which a waiting job would
// get if running jobs ended in the order of their limits, those that end first
// first; nil if it fits now, or not even then.
func (c *Core) Blockers(id job.ID) []Blocker {
	e := c.queue.jobs[id]
	if e == nil {
		return nil
	}
	c.rebuildFleet()
	nodes, ends := c.findBlockers(e)
	var out []Blocker
	for _, r := range ends {
		if r.nominee != nil && r.nominee.entry == e {
			continue // it is held for the job itself
		}
		h := Blocker{Job: r.id &^ targetBit, Until: orZero(r.until)}
		for i := range r.claims {
			if pos := r.at[i]; pos >= 0 && nodes[pos] && !slices.Contains(h.Nodes, r.claims[i].Node) {
				h.Nodes = append(h.Nodes, r.claims[i].Node)
			}
		}
		if h.Nodes != nil {
			out = append(out, h)
		}
	}
	return out
}

// findBlockers is the positions of the nodes that a waiting job would get, and what runs until then in the
// order of its limits.
func (c *Core) findBlockers(e *queuedJob) (nodes map[int32]bool, ends []*run) {
	nodes = map[int32]bool{}
	if look := c.profileOf(e.class.kind); look != nil {
		at := look.gangStart()
		if at == 0 {
			return nil, nil
		}
		if at != never {
			for _, pos := range look.tellableNodes() {
				nodes[pos] = true
				for _, h := range c.fleet.nodes[pos].held {
					if h.run.until <= look.when[pos] {
						ends = append(ends, h.run)
					}
				}
			}
			slices.SortFunc(ends, (*run).compareEnds)
			return nodes, slices.Compact(ends)
		}
	}
	return c.searchBlockers(e.class.kind.shape)
}

// searchBlockers is findBlockers for a shape whose start does not depend on a number of
// alike nodes alone, or on jobs without a limit.
func (c *Core) searchBlockers(shape *class.Shape) (map[int32]bool, []*run) {
	ends := c.runs.ends.allRuns()
	after := func(n int) []fleet.Claim {
		s := c.fleet.state.Clone()
		for _, r := range ends[:n] {
			s.Release(c.fleet.table, r.claims)
		}
		return place.Gang(c.fleet.table, s, shape)
	}
	n := sort.Search(len(ends)+1, func(n int) bool { return after(n) != nil })
	if n == 0 || n > len(ends) {
		return nil, nil
	}
	nodes := map[int32]bool{}
	for _, claim := range after(n) {
		nodes[int32(c.fleet.table.Find(claim.Key()))] = true
	}
	return nodes, ends[:n]
}

// nameHolder names who has a port that is missing: on the first node of those on which it is taken.
func (c *Core) nameHolder(why reason.Reason) reason.Reason {
	if why.Code != reason.Resources || !strings.HasPrefix(why.Resource, reason.PortResource) {
		return why
	}
	for pos := range c.fleet.nodes {
		for _, h := range c.fleet.nodes[pos].held {
			if claim := &h.run.claims[h.claim]; claim.Take.Get(why.Resource) > 0 {
				why.Job, why.Want = uint64(h.run.id&^targetBit), claim.Node
				return why
			}
		}
	}
	return why
}
