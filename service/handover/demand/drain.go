package demand

import "time"

// replicaMoves is how long a drain takes that moves replicas of services to other machines.
const replicaMoves = 5 * time.Minute

// drained is how a machine would become empty.
type drained struct {
	takes   time.Duration
	until   time.Duration // when it is over at the latest
	requeue bool          // what has not ended by then may be requeued, all of it
	forced  bool          // something is expected not to have ended by then
	idle    int64         // unit-seconds without work meanwhile
	lost    int64         // unit-seconds of work of what is requeued
}

// drainOf is how a machine of a pool would become empty within the pool's longest drain; false: it would
// not.
func (p *pool) drainOf(m *Machine, now time.Time) (drained, bool) {
	limit := p.rules.DrainsFor()
	out := drained{requeue: p.rules.Requeue, until: limit}
	var elsewhere *rooms
	for i := range m.Runs {
		r := &m.Runs[i]
		ends := max(r.Ends.Sub(now), 0)
		out.requeue = out.requeue && (r.Requeue || r.Replica)
		switch {
		case r.Replica:
			if elsewhere == nil {
				elsewhere = p.freeRooms(m)
			}
			if !elsewhere.placeWork(r.Units) || replicaMoves > limit {
				return drained{}, false
			}
			out.takes = max(out.takes, replicaMoves)
		case !r.Ends.IsZero() && ends <= limit:
			out.takes = max(out.takes, ends)
		case p.rules.Requeue && r.Requeue:
			out.forced = true
		default:
			return drained{}, false
		}
	}
	if out.forced { // nobody waits longer than for those who end
		out.until = out.takes
	}
	for i := range m.Runs {
		r := &m.Runs[i]
		switch ends := max(r.Ends.Sub(now), 0); {
		case r.Replica:
		case !r.Ends.IsZero() && ends <= limit:
			out.idle += int64(r.Units) * wholeSeconds(out.takes-ends)
		default: // what it does until then is lost too
			out.lost += r.Lost + int64(r.Units)*wholeSeconds(out.takes)
		}
	}
	out.idle += int64(m.freeUnits()) * wholeSeconds(out.takes)
	return out, true
}
