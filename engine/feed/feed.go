// Package feed is the part of engine.Engine that tells what happened: the last
// report of every attempt and the latest events, for any number of watchers.
//
// A driver publishes reports; a feed numbers them, so that versions and cursors of
// one epoch only grow. The epoch is the driver's: it must grow with every restart,
// so that what two incarnations say is never compared wrongly. Nothing is durable.
package feed

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

// How much can be resumed from; who is further behind gets the present reports
// instead. At twice that many events, or tasks and nodes in them, half is dropped.
const (
	keptEvents = 4096
	keptParts  = 1 << 16
)

// Feed holds the last report of every attempt and the latest events. A cursor is
// EPOCH.SEQ, a version both in one number. It is safe for concurrent use.
type Feed struct {
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

// New returns an empty feed; epoch must be larger than that of any feed before it.
func New(epoch uint64) *Feed {
	return &Feed{epoch: epoch, latest: map[engine.Ref]numbered{}, grown: make(chan struct{})}
}

// Publish gives the report its version and makes it an event.
func (f *Feed) Publish(r engine.Report) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq++
	r.Version = f.epoch<<32 | f.seq
	f.latest[r.Ref] = numbered{f.seq, r}
	if f.parts += parts(&r); len(f.recent) >= 2*keptEvents || f.parts >= 2*keptParts {
		f.recent = slices.Delete(f.recent, 0, (len(f.recent)+1)/2)
		f.parts = parts(&r)
		for i := range f.recent {
			f.parts += parts(&f.recent[i].Report)
		}
	}
	f.recent = append(f.recent, engine.Event{Cursor: f.cursor(f.seq), Report: r})
	close(f.grown)
	f.grown = make(chan struct{})
}

func parts(r *engine.Report) int { return len(r.Tasks) + len(r.Nodes) }

func (f *Feed) cursor(seq uint64) string { return fmt.Sprintf("%d.%d", f.epoch, seq) }

// Last returns the last report of an attempt.
func (f *Feed) Last(ref engine.Ref) (engine.Report, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.latest[ref]
	return n.report, ok
}

// Forget drops an attempt; its events stay until newer ones take their place.
func (f *Feed) Forget(ref engine.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.latest, ref)
}

// present returns the last event of every attempt, in order, and the number up
// to which that is everything. The caller holds the lock.
func (f *Feed) present() []engine.Event {
	all := make([]numbered, 0, len(f.latest))
	for _, n := range f.latest {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.seq, b.seq) })
	out := make([]engine.Event, len(all))
	for i, n := range all {
		out[i] = engine.Event{Cursor: f.cursor(n.seq), Report: n.report}
	}
	return out
}

// All returns the last report of every attempt, oldest change first.
func (f *Feed) All() []engine.Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	present := f.present()
	out := make([]engine.Report, len(present))
	for i, ev := range present {
		out[i] = ev.Report
	}
	return out
}

// since returns the events after a cursor, or the present reports if it is not
// known, with the number to go on after, and a channel that is closed when there
// is more.
func (f *Feed) since(seq uint64, known bool) ([]engine.Event, uint64, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := f.seq - uint64(len(f.recent)) // number before the oldest that is kept
	if !known || seq < first || seq > f.seq {
		return f.present(), f.seq, f.grown
	}
	return slices.Clone(f.recent[seq-first:]), f.seq, f.grown
}

// Watch is engine.Engine's: it calls do for events until ctx ends or do fails, and
// returns nil when closed is closed.
func (f *Feed) Watch(ctx context.Context, closed <-chan struct{}, after string, do func(engine.Event) error) error {
	epoch, number, known := strings.Cut(after, ".")
	seq, err := strconv.ParseUint(number, 10, 64)
	known = known && err == nil && epoch == strconv.FormatUint(f.epoch, 10)
	for {
		evs, upTo, grown := f.since(seq, known)
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
