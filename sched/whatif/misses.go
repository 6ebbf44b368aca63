package whatif

import (
	"slices"
	"time"
)

// Misses remembers how far estimates of starts were off, as the proportion of the
// real wait to the one that was estimated, each with a minute more, and says from it
// between which instants a start lies in four of five cases. It is bounded, and not
// safe for concurrent use.
type Misses struct {
	list []miss
	next int // where the next one goes once the list is full
}

type miss struct {
	at   int64 // when the job started
	lead int64 // how far ahead the estimate was
	late int64 // how much later it really was; negative: earlier
	part int64 // (real wait + grain) / (estimated wait + grain), in thousandths
}

const (
	missesKept = 4096
	grain      = int64(time.Minute)
	week       = int64(7 * 24 * time.Hour)
	longest    = 52 * week
	fewest     = 20 // estimates before an interval is told
)

// Add notes that a job has started of which it was said at an instant when it would;
// all in nanoseconds.
func (m *Misses) Add(said, estimate, real int64) {
	if said == 0 || estimate < said || real < said || real-said > longest || estimate-said > longest {
		return // nothing was said, or the clock was set
	}
	x := miss{at: real, lead: estimate - said, late: real - estimate}
	x.part = (real - said + grain) / ((estimate - said + grain) / 1000)
	if len(m.list) < missesKept {
		m.list = append(m.list, x)
		return
	}
	m.list[m.next] = x
	m.next = (m.next + 1) % missesKept
}

// Interval is what is to be expected of an estimate.
type Interval struct {
	From, To int64 // the start lies between these in 80 % of cases
	Late     int64 // by how much estimates were late in the median; negative: early
	Known    int   // estimates that this is known from
}

// Around says between which instants the start of a job lies of which it is said now
// that it starts at an instant. Of the past week, estimates that were about as far
// ahead count, or all where these are few. false: too few are known.
func (m *Misses) Around(now, estimate int64) (Interval, bool) {
	lead := max(estimate-now, 0)
	parts, lates := m.missesWhere(now, func(x *miss) bool { return x.lead/4 <= lead+grain && lead/4 <= x.lead+grain })
	if len(parts) < fewest {
		parts, lates = m.missesWhere(now, func(*miss) bool { return true })
	}
	n := len(parts)
	if n < fewest {
		return Interval{}, false
	}
	slices.Sort(parts)
	slices.Sort(lates)
	at := func(q int64) int64 { return max(now+(lead+grain)/1000*q-grain, now) }
	lo, hi := (n+1)/10, (9*(n+1)+9)/10 // of n+1 with the one to come, so many lie at or below
	return Interval{From: at(parts[max(lo-1, 0)]), To: at(parts[min(hi-1, n-1)]), Late: lates[n/2], Known: n}, true
}

func (m *Misses) missesWhere(now int64, is func(*miss) bool) (parts, lates []int64) {
	for i := range m.list {
		if x := &m.list[i]; x.at > now-week && is(x) {
			parts, lates = append(parts, x.part), append(lates, x.late)
		}
	}
	return parts, lates
}
