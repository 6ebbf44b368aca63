package kit

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/coxswain-sched/coxswain/engine"
)

// EndpointBoard keeps the endpoints of attempts and answers engine.EndpointWatcher. Nothing of it is
// written anywhere. It is safe for concurrent use.
type EndpointBoard struct {
	mu      sync.Mutex
	version uint64
	changed chan struct{} // closed with the next change
	known   map[engine.Ref]engine.Endpoints
	ended   []engine.Endpoints // the last words of attempts that were dropped, at most mostEnded
}

// mostEnded is how many last words are kept for watchers that are behind.
const mostEnded = 1000

// NewEndpointBoard makes a board whose versions are larger than one that the boards before it had.
func NewEndpointBoard(after uint64) *EndpointBoard {
	return &EndpointBoard{version: after, changed: make(chan struct{}), known: map[engine.Ref]engine.Endpoints{}}
}

// Set takes the present endpoints of an attempt; the version is the board's to give.
func (b *EndpointBoard) Set(e engine.Endpoints) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, ok := b.known[e.Ref]
	e.Version = was.Version
	if ok && reflect.DeepEqual(was, e) {
		return
	}
	b.known[e.Ref] = b.stampVersion(e)
}

// Drop says that an attempt has ended.
func (b *EndpointBoard) Drop(ref engine.Ref) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, ok := b.known[ref]
	if !ok {
		return
	}
	delete(b.known, ref)
	b.ended = append(b.ended, b.stampVersion(engine.Endpoints{Ref: ref, Job: was.Job}))
	if len(b.ended) > mostEnded {
		b.ended = slices.Clone(b.ended[mostEnded/2:])
	}
}

func (b *EndpointBoard) stampVersion(e engine.Endpoints) engine.Endpoints {
	b.version++
	e.Version = b.version
	close(b.changed)
	b.changed = make(chan struct{})
	return e
}

// Of returns the endpoints of an attempt, if there are some.
func (b *EndpointBoard) Of(ref engine.Ref) (engine.Endpoints, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.known[ref]
	return e, ok
}

// Watch is engine.EndpointWatcher's WatchEndpoints. It ends with nil when done is closed.
func (b *EndpointBoard) Watch(ctx context.Context, done <-chan struct{}, f func(engine.Endpoints) error) error {
	for seen := uint64(0); ; {
		news, version, wait := b.after(seen)
		for _, e := range news {
			if err := f(e); err != nil {
				return err
			}
		}
		seen = version
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		case <-done:
			return nil
		}
	}
}

// after lists what changed after a version, oldest first.
func (b *EndpointBoard) after(seen uint64) (news []engine.Endpoints, version uint64, wait <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for e := range maps.Values(b.known) {
		if e.Version > seen {
			news = append(news, e)
		}
	}
	if seen > 0 {
		for _, e := range b.ended {
			if e.Version > seen {
				news = append(news, e)
			}
		}
	}
	slices.SortFunc(news, func(x, y engine.Endpoints) int { return cmp.Compare(x.Version, y.Version) })
	return news, b.version, b.changed
}
