package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/fault"
)

// kept is how many events can be resumed from; who is further behind gets the
// present reports instead.
const kept = 4096

// events holds the last report of every attempt and the latest events. A cursor
// is EPOCH.SEQ; the epoch grows with every engine on the same root, so that
// versions and cursors of two engines never compare wrongly.
type events struct {
	epoch uint64

	mu     sync.Mutex
	seq    uint64
	recent []engine.Event // ends with number seq
	latest map[engine.Ref]numbered
	grown  chan struct{} // closed at the next event
}

type numbered struct {
	seq    uint64
	report engine.Report
}

func newEvents(epoch uint64) *events {
	return &events{epoch: epoch, latest: map[engine.Ref]numbered{}, grown: make(chan struct{})}
}

// nextEpoch reads, increments and writes the number in a file.
func nextEpoch(name string) (uint64, error) {
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	n, _ := strconv.ParseUint(string(b), 10, 32)
	n++
	return n, attempt.WriteFile(name, []byte(strconv.FormatUint(n, 10)), 0o600)
}

// publish gives the report its version and makes it an event.
func (l *events) publish(r engine.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	r.Version = l.epoch<<32 | l.seq
	l.latest[r.Ref] = numbered{l.seq, r}
	if len(l.recent) == 2*kept {
		l.recent = slices.Delete(l.recent, 0, kept)
	}
	l.recent = append(l.recent, engine.Event{Cursor: l.cursor(l.seq), Report: r})
	close(l.grown)
	l.grown = make(chan struct{})
}

func (l *events) cursor(seq uint64) string { return fmt.Sprintf("%d.%d", l.epoch, seq) }

func (l *events) last(ref engine.Ref) (engine.Report, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.latest[ref]
	return n.report, ok
}

func (l *events) forget(ref engine.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.latest, ref)
}

// present returns the last event of every attempt, in order, and the number up
// to which that is everything. The caller holds the lock.
func (l *events) present() []engine.Event {
	all := make([]numbered, 0, len(l.latest))
	for _, n := range l.latest {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b numbered) int { return int(a.seq) - int(b.seq) })
	out := make([]engine.Event, len(all))
	for i, n := range all {
		out[i] = engine.Event{Cursor: l.cursor(n.seq), Report: n.report}
	}
	return out
}

func (l *events) all() []engine.Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	present := l.present()
	out := make([]engine.Report, len(present))
	for i, ev := range present {
		out[i] = ev.Report
	}
	return out
}

// since returns the events after a cursor, or the present reports if it is not
// known, with the number to go on after, and a channel that is closed when there
// is more.
func (l *events) since(seq uint64, known bool) ([]engine.Event, uint64, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.seq - uint64(len(l.recent)) // number before the oldest that is kept
	if !known || seq < first || seq > l.seq {
		return l.present(), l.seq, l.grown
	}
	return slices.Clone(l.recent[seq-first:]), l.seq, l.grown
}

// watch calls f for events until a context ends or f fails.
func (l *events) watch(ctx, closed context.Context, after string, f func(engine.Event) error) error {
	epoch, number, known := strings.Cut(after, ".")
	seq, err := strconv.ParseUint(number, 10, 64)
	known = known && err == nil && epoch == strconv.FormatUint(l.epoch, 10)
	for {
		evs, upTo, grown := l.since(seq, known)
		for _, ev := range evs {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(ev); err != nil {
				return err
			}
		}
		seq, known = upTo, true
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		case <-closed.Done():
			return fault.New(fault.Unavailable, "the local engine is closed")
		}
	}
}
