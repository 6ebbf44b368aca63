package sched

import (
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/share"
)

// Where a job of one node goes: where least stays free (place.Quick), or, with
// account.PlaceLearned, where least becomes useless for what usually arrives. What that
// is is learned from the jobs that are submitted (share.Memory), never from those to
// come. Expected fragmentation is FGD's (Weng et al., Beware of Fragmentation, USENIX
// ATC 2023), what counts as expected, and what is stranded without CPUs, is ours
// (share.Expected).
//
// It decides on which of the nodes that will do a job starts that starts now, and of which
// device a part is taken, there and in what is planned by node; not when or on which nodes
// that is. Where a part would go decides whether a job beside what is planned is in its
// way, and one that would do on another device of the node may wait for it. Rates are worked out once
// for each cell and kind of job, until more has been learned or the fleet changes: that
// is after each eighth more jobs. Jobs of several nodes, and those that place.Regular
// does not know, go where they always do, and count as what arrives.
//
// Where nobody asks for a part of a device it costs nothing, unless the rules ask for it.

// forecastState is what was learned of the jobs that arrive.
type forecastState struct {
	seen     *share.Memory    // what has arrived; nil: nobody learns from it
	expected *place.Foresight // what is expected of that …
	fleet    uint64           // … for this version of the fleet
	learned  bool             // more was learned in this step
}

// arrivalClass is what a group of a kind of job counts as.
type arrivalClass struct {
	seen  share.Seen
	nodes int64
}

// learnArrival learns from a job that was submitted.
func (c *Core) learnArrival(k *kind) {
	if !c.learnsFrom(k) {
		return
	}
	if !k.counted {
		k.counted, k.arrivals = true, arrivalsOf(k.shape)
	}
	changed := false
	for i := range k.arrivals {
		if c.forecast.seen == nil {
			c.forecast.seen = &share.Memory{}
		}
		a := &k.arrivals[i]
		changed = c.forecast.seen.Arrived(a.seen, a.nodes) || changed
	}
	if changed {
		c.forecast.learned = true
		c.wakeForForecast()
	}
}

// learnsFrom reports whether jobs of a kind are learned from: with rules that leave it open,
// from the first on that asks for a part of a device.
func (c *Core) learnsFrom(k *kind) bool {
	if c.policy == nil || c.policy.Compat != "" {
		return false
	}
	switch c.policy.Placement {
	case account.PlaceTight:
		return false
	case account.PlaceLearned:
		return true
	}
	return c.forecast.seen != nil || place.Divides(k.shape)
}

func arrivalsOf(shape *class.Shape) (out []arrivalClass) {
	for i := range shape.Groups {
		if seen, nodes, ok := place.Arrival(shape, i); ok {
			out = append(out, arrivalClass{seen, int64(nodes)})
		}
	}
	return out
}

// expectedArrivals is what is expected to arrive; nil: nothing is known.
func (c *Core) expectedArrivals() *place.Foresight {
	if c.forecast.seen == nil {
		return nil
	}
	if c.forecast.expected == nil || c.forecast.fleet != c.fleet.version {
		c.forecast.expected, c.forecast.fleet = place.Foresee(c.fleet.table, c.forecast.seen), c.fleet.version
	}
	return c.forecast.expected
}

// wakeForForecast wakes the classes whose jobs might be placed elsewhere now, where nothing keeps
// them off: what is expected has changed.
func (c *Core) wakeForForecast() {
	c.forecast.expected = nil
	c.cycleDue = true
	for _, k := range c.queue.kinds {
		k.blockedPlan = 0
		for _, l := range k.classes {
			if l.waiting == forPlan || l.waiting == forLimit && l.moves != 0 || l.waiting == forQuota && l.exceededQuota {
				c.wakeBarred(l)
			}
		}
	}
}

// restoreForecast goes on with what was learned before.
func (c *Core) restoreForecast(m *share.Memory) {
	c.forecast.seen, c.forecast.expected = nil, nil
	if m != nil && c.policy != nil && c.policy.Compat == "" && c.policy.Placement != account.PlaceTight {
		c.forecast.seen = m.Clone()
	}
}

// Learned is what was learned of what arrives, to be kept for Taught; nil: nothing.
func (c *Core) Learned() *share.Memory {
	if c.forecast.seen == nil {
		return nil
	}
	return c.forecast.seen.Clone()
}

// tellLearned says that more was learned.
func (c *Core) tellLearned(out []Decision) []Decision {
	if c.forecast.learned {
		out = append(out, Learned{})
	}
	c.forecast.learned = false
	return out
}
