package jobs

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// recentPast is how many events from before the hub's window are looked at.
const recentPast = 500

// RecentEvents lists what changed last, newest first, as far as the caller may watch it: at most so
// many, of the hub's window and the events right before it.
func (s *Service) RecentEvents(c *transport.Call, most int) (out []api.Event) {
	f := s.visibleTo(c)
	take := func(items []*item, to uint64) {
		for _, it := range slices.Backward(items) {
			if len(out) < most && it.Seq <= to && f.matchesItem(it) {
				out = append(out, shownEvent(&it.Event))
			}
		}
	}
	s.hub.mu.Lock()
	items, from := s.hub.items, s.hub.from
	s.hub.mu.Unlock()
	take(items, math.MaxUint64)
	if len(out) == most || from == 0 {
		return out
	}
	past, err := s.past.eventsUpTo(c.Ctx(), from-min(from, recentPast), from)
	if err == nil {
		take(past, from)
	}
	return out
}

// visibleTo is the filter that lets through what the caller may see.
func (s *Service) visibleTo(c *transport.Call) filter {
	f := filter{admin: c.ID.Admin}
	if s.cfg.Policy.Private && !c.ID.Admin {
		f.mine = c.ID.Name
	}
	return f
}

// others counts the events that the filter of a watch leaves out, so that a page knows that its counts
// are old without getting them.
type others struct {
	every time.Duration // at most so often they are told; 0: never
	told  time.Time
	count int    // since then
	last  uint64 // number of the last one
}

// ticks is when to look whether there is something to tell.
func (o *others) ticks() (<-chan time.Time, func()) {
	if o.every <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(max(o.every, 100*time.Millisecond))
	return t.C, t.Stop
}

// writeOthers tells how many events were left out, if there are some and it is time.
func (w *eventWriter) writeOthers(now time.Time) {
	o := &w.others
	if o.count == 0 || now.Sub(o.told) < o.every {
		return
	}
	seq := strconv.FormatUint(o.last, 10)
	w.add([]byte("id: " + seq + "\nevent: others\ndata: {\"seq\":" + seq + ",\"count\":" + strconv.Itoa(o.count) + "}\n\n"))
	o.told, o.count = now, 0
}
