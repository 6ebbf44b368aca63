package sched

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

// What a reservation in advance would meet, asked before it is made: jobs that run on
// beyond its beginning, other reservations, starts that were promised; and, where it
// asks for a number of nodes, which ones it would get. Nothing is changed.

// ReserveAsk is a reservation that somebody wants to make or to change.
type ReserveAsk struct {
	account.Reservation
	Count     int      // so many nodes, which are chosen; 0: those that it names, or all
	Partition string   // nodes of it alone are chosen; "": all
	Features  []string // that chosen nodes have
}

// Obstacle keeps a node from a reservation.
type Obstacle struct {
	Node        string
	Job         job.ID  // that runs there beyond the beginning; 0: none
	Until       Instant // when its limit ends it; 0: it has none
	Reservation string  // that has the node then
	Down        bool
}

// Reservable says which nodes a reservation would get, what is in its way, by node,
// and which promised starts would become later. nodes is nil where it asks for more
// than there are free ones. The reservations in force are the caller's: the core learns
// of a change in its next step, and two that are made one after the other must not get
// the same nodes.
//
// Of the nodes that are free for its whole first occurrence those come first on which
// no start is planned then; among these the stretch in node order that is shortest,
// the first of several.
func (c *Core) Reservable(ask *ReserveAsk, inForce []account.Reservation) (nodes []string, way []Obstacle, late []Promise) {
	w, ok := ask.Window()
	if !ok {
		return nil, nil, nil
	}
	b, e, ok := w.Next(int64(c.clock.now))
	begin, end := Instant(b), Instant(e)
	if !ok {
		begin, end = never, never // it is over: nobody is in its way
	}
	busy := c.findObstacles(ask, &w, begin, inForce)
	chosen := make([]bool, c.fleet.table.Len())
	if ask.Count > 0 {
		list := c.chooseReservationNodes(ask, busy, c.promisedNodes(begin, end))
		if list == nil {
			return nil, busyOnly(busy), nil
		}
		for _, pos := range list {
			chosen[pos] = true
			nodes = append(nodes, c.fleet.table.Label(pos))
		}
	} else {
		nodes = ask.Nodes
		for pos := range chosen {
			chosen[pos] = len(nodes) == 0 || slices.ContainsFunc(nodes, c.fleet.table.Node(pos).Is)
			if o := busy[pos]; chosen[pos] && o != nil && !o.Down {
				way = append(way, *o)
			}
		}
	}
	return nodes, way, c.brokenPromises(ask, chosen, begin, end)
}

func busyOnly(busy []*Obstacle) (out []Obstacle) {
	for _, o := range busy {
		if o != nil {
			out = append(out, *o)
		}
	}
	return out
}

// findObstacles is what keeps each node from a reservation that begins at an instant.
func (c *Core) findObstacles(ask *ReserveAsk, w *account.Window, begin Instant, inForce []account.Reservation) []*Obstacle {
	out := make([]*Obstacle, c.fleet.table.Len())
	if begin != never && ask.Ahead == 0 && !ask.Ignore {
		for _, r := range c.runs.ends.allRuns() {
			if r.until <= begin || r.nominee != nil || r.policy.key.reservation == ask.Name {
				continue
			}
			for i := range r.claims {
				id := r.id &^ targetBit
				if pos := c.fleet.table.Find(r.claims[i].Key()); pos >= 0 && (out[pos] == nil || id < out[pos].Job) {
					out[pos] = &Obstacle{Node: c.fleet.table.Label(pos), Job: id, Until: orZero(r.until)}
				}
			}
		}
	}
	for i := range inForce {
		a := &inForce[i]
		window, ok := a.Window()
		if !ok || a.Name == ask.Name || ask.Overlap || a.Overlap {
			continue
		}
		if _, both := w.Overlaps(&window, int64(c.clock.now)); !both {
			continue
		}
		for pos := range out {
			if out[pos] == nil && (len(a.Nodes) == 0 || slices.ContainsFunc(a.Nodes, c.fleet.table.Node(pos).Is)) {
				out[pos] = &Obstacle{Node: c.fleet.table.Label(pos), Reservation: a.Name}
			}
		}
	}
	for pos := range out {
		if n := c.fleet.table.Node(pos); out[pos] == nil && (n.State != fleet.Up || ask.Count > 0 && aggregate.Is(n.Name)) {
			out[pos] = &Obstacle{Node: c.fleet.table.Label(pos), Down: true}
		}
	}
	return out
}

// promisedNodes marks the nodes on which a start is promised that would meet a time.
func (c *Core) promisedNodes(begin, end Instant) []bool {
	out := make([]bool, c.fleet.table.Len())
	c.eachPromise(func(p Promise, e *queuedJob) {
		if promiseMeets(p, e, begin, end) {
			for _, name := range p.Nodes {
				if pos := c.fleet.table.Find(fleet.NodeKey{Pool: e.spec.Pool, Name: name}); pos >= 0 {
					out[pos] = true
				}
			}
		}
	})
	return out
}

// eachPromise calls f with what was promised to waiting jobs, in queue order.
func (c *Core) eachPromise(f func(Promise, *queuedJob)) {
	if e := c.queue.jobs[c.promised.Job]; e != nil {
		f(c.promised, e)
	}
	for _, s := range c.backfill.starts {
		if s.e.planned == s && s.told.Job != 0 && s.told.Job != c.promised.Job {
			f(s.told, s.e)
		}
	}
}

// promiseMeets reports whether a promised job would hold its nodes at some time of a
// reservation. One for which no instant could be told might.
func promiseMeets(p Promise, e *queuedJob, begin, end Instant) bool {
	return begin != never && (p.At == 0 || p.At < end && endAfter(p.At, e.class.limit) > begin)
}

// chooseReservationNodes picks nodes by number; nil: there are not enough.
func (c *Core) chooseReservationNodes(ask *ReserveAsk, busy []*Obstacle, awaited []bool) []int {
	var free, all []int // positions
	for pos := range c.fleet.table.Len() {
		n := c.fleet.table.Node(pos)
		switch {
		case busy[pos] != nil, ask.Partition != "" && len(n.Parts) > 0 && !slices.Contains(n.Parts, ask.Partition),
			slices.ContainsFunc(ask.Features, func(f string) bool { return !slices.Contains(n.Features, f) }):
			continue
		case !awaited[pos]:
			free = append(free, pos)
		}
		all = append(all, pos)
	}
	for _, list := range [][]int{free, all} {
		if best := narrowestSpan(list, ask.Count); best != nil {
			return best
		}
	}
	return nil
}

// narrowestSpan is the part of an ascending list with so many numbers that spans least.
func narrowestSpan(list []int, count int) (best []int) {
	for i := 0; i+count <= len(list); i++ {
		if part := list[i : i+count]; best == nil || part[count-1]-part[0] < best[count-1]-best[0] {
			best = part
		}
	}
	return best
}

// brokenPromises lists the promises that a reservation on some nodes would break.
func (c *Core) brokenPromises(ask *ReserveAsk, chosen []bool, begin, end Instant) (late []Promise) {
	if ask.Ahead > 0 {
		begin, end = addDuration(c.clock.now, time.Duration(ask.Ahead)), never
	}
	c.eachPromise(func(p Promise, e *queuedJob) {
		if a := e.class.ownReservation(); a != nil && a.Name == ask.Name || !promiseMeets(p, e, begin, end) {
			return
		}
		if slices.ContainsFunc(p.Nodes, func(name string) bool {
			pos := c.fleet.table.Find(fleet.NodeKey{Pool: e.spec.Pool, Name: name})
			return pos >= 0 && chosen[pos]
		}) {
			late = append(late, p)
		}
	})
	return late
}
