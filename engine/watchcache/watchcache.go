// Package watchcache keeps the last report of every attempt and the latest events, and serves
// the watches of engine.Engine from them, for any number of watchers.
//
// A driver publishes reports; the cache numbers them, so that the versions and cursors of one
// epoch only grow. The driver supplies the epoch, which must grow with every restart: two
// incarnations of a driver must never be compared wrongly. Nothing is durable.
package watchcache

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/engine"
)

// Watchers that are at most this far behind resume from their cursor; the others get the present
// reports instead. At twice that many events, or tasks and nodes in them, half is dropped.
const (
	keptEvents = 4096
	keptParts  = 1 << 16
)

// Cache holds the last report of every attempt and the latest events. A cursor is
// EPOCH.SEQ, a version both in one number. It is safe for concurrent use.
type Cache struct {
	epoch uint64

	mu     sync.Mutex
	seq    uint64
	recent []engine.Event // ends with number seq
	parts  int            // tasks and nodes in the reports of recent
	latest map[engine.Ref]numbered
	grown  chan struct{} // closed at the next event
}

type numbered struct {
	seq    uint64
	report engine.Report
}

// New returns an empty cache; epoch must be larger than that of any cache before it.
func New(epoch uint64) *Cache {
	return &Cache{epoch: epoch, latest: map[engine.Ref]numbered{}, grown: make(chan struct{})}
}

// Publish gives the report its version and makes it an event.
func (c *Cache) Publish(r engine.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	r.Version = c.epoch<<32 | c.seq
	c.latest[r.Ref] = numbered{c.seq, r}
	if c.parts += countParts(&r); len(c.recent) >= 2*keptEvents || c.parts >= 2*keptParts {
		c.recent = slices.Delete(c.recent, 0, (len(c.recent)+1)/2)
		c.parts = countParts(&r)
		for i := range c.recent {
			c.parts += countParts(&c.recent[i].Report)
		}
	}
	c.recent = append(c.recent, engine.Event{Cursor: c.formatCursor(c.seq), Report: r})
	close(c.grown)
	c.grown = make(chan struct{})
}

func countParts(r *engine.Report) int { return len(r.Tasks) + len(r.Nodes) }

func (c *Cache) formatCursor(seq uint64) string { return fmt.Sprintf("%d.%d", c.epoch, seq) }

// Last returns the last report of an attempt.
func (c *Cache) Last(ref engine.Ref) (engine.Report, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.latest[ref]
	return n.report, ok
}

// Forget drops an attempt; its events stay until newer ones take their place.
func (c *Cache) Forget(ref engine.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.latest, ref)
}

// presentEvents returns the last event of every attempt, in order. The caller holds the lock.
func (c *Cache) presentEvents() []engine.Event {
	all := make([]numbered, 0, len(c.latest))
	for _, n := range c.latest {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.seq, b.seq) })
	out := make([]engine.Event, len(all))
	for i, n := range all {
		out[i] = engine.Event{Cursor: c.formatCursor(n.seq), Report: n.report}
	}
	return out
}

// All returns the last report of every attempt, oldest change first.
func (c *Cache) All() []engine.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	present := c.presentEvents()
	out := make([]engine.Report, len(present))
	for i, ev := range present {
		out[i] = ev.Report
	}
	return out
}

// eventsSince returns the events after a cursor, or the present reports if it is not
// known, with the number to go on after, and a channel that is closed when there
// is more.
func (c *Cache) eventsSince(seq uint64, known bool) ([]engine.Event, uint64, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.seq - uint64(len(c.recent)) // number before the oldest that is kept
	if !known || seq < first || seq > c.seq {
		return c.presentEvents(), c.seq, c.grown
	}
	return slices.Clone(c.recent[seq-first:]), c.seq, c.grown
}

// Watch is engine.Engine's: it calls do for events until ctx ends or do fails, and
// returns nil when closed is closed.
func (c *Cache) Watch(ctx context.Context, closed <-chan struct{}, after string, do func(engine.Event) error) error {
	epoch, number, known := strings.Cut(after, ".")
	seq, err := strconv.ParseUint(number, 10, 64)
	known = known && err == nil && epoch == strconv.FormatUint(c.epoch, 10)
	for {
		evs, upTo, grown := c.eventsSince(seq, known)
		for _, ev := range evs {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := do(ev); err != nil {
				return err
			}
		}
		seq, known = upTo, true
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		case <-closed:
			return nil
		}
	}
}
