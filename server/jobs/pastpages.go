package jobs

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Bounds of pages of past events.
const (
	pageEvents  = 1000 // a page begins after a multiple of this number
	keptPages   = 8
	pagesAtOnce = 2 // read from the journal at the same time
)

// pastPages reads the events from the journal that the hub's window no longer has. It reads a page
// once for all watches that want it, and keeps the pages that were used last. It is safe for
// concurrent use.
type pastPages struct {
	plane   Changes
	reading chan struct{}

	mu    sync.Mutex
	pages []*pastPage // the one used last at the end
}

// pastPage is the events from a number on. All but start is valid when done is closed.
type pastPage struct {
	start uint64
	done  chan struct{}
	items []*item
	last  uint64
	gap   bool
	err   error
}

func newPastPages(p Changes) *pastPages {
	return &pastPages{plane: p, reading: make(chan struct{}, pagesAtOnce)}
}

// eventsAfter returns events after a number, as Changes does. The number is not that of the newest event.
func (p *pastPages) eventsAfter(ctx context.Context, after uint64) (items []*item, last uint64, gap bool, err error) {
	start := after - after%pageEvents
	for range 2 { // a kept page may end too early, or the request that reads it may end
		pg, mine := p.findPage(start)
		if mine {
			p.readPage(ctx, pg)
		}
		select {
		case <-pg.done:
		case <-ctx.Done():
			return nil, after, false, ctx.Err()
		}
		if pg.err == nil && !pg.gap && pg.last > after {
			i, _ := slices.BinarySearchFunc(pg.items, after+1, func(it *item, n uint64) int { return cmp.Compare(it.Seq, n) })
			return pg.items[i:], pg.last, false, nil
		}
		p.dropPage(pg)
		if mine {
			break
		}
	}
	// The journal begins within the page, or has changed meanwhile.
	pg := &pastPage{start: after, done: make(chan struct{})}
	p.readPage(ctx, pg)
	return pg.items, pg.last, pg.gap, pg.err
}

// eventsUpTo returns the events after a number, up to at least another one, which may be on several pages. None
// are returned if some of them are gone.
func (p *pastPages) eventsUpTo(ctx context.Context, after, to uint64) (items []*item, err error) {
	for after < to {
		next, last, gap, err := p.eventsAfter(ctx, after)
		if err != nil || gap || last <= after {
			return nil, err
		}
		items, after = append(items, next...), last
	}
	return items, nil
}

// findPage returns a page that another watch reads or has read, or a new one; mine says that the
// caller has to read it.
func (p *pastPages) findPage(start uint64) (pg *pastPage, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.pages, func(pg *pastPage) bool { return pg.start == start })
	if i >= 0 {
		pg = p.pages[i]
		p.pages = append(slices.Delete(p.pages, i, i+1), pg)
		return pg, false
	}
	if len(p.pages) >= keptPages {
		p.pages = slices.Delete(p.pages, 0, 1) // watches that use it still have it
	}
	pg = &pastPage{start: start, done: make(chan struct{})}
	p.pages = append(p.pages, pg)
	return pg, true
}

func (p *pastPages) dropPage(pg *pastPage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages = slices.DeleteFunc(p.pages, func(other *pastPage) bool { return other == pg })
}

// readPage fills a page and closes done. No other goroutine may use the page before that.
func (p *pastPages) readPage(ctx context.Context, pg *pastPage) {
	defer close(pg.done)
	pg.last = pg.start
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		pg.err = ctx.Err()
		return
	}
	evs, last, gap, err := p.plane.Events(ctx, pg.start)
	if pg.last, pg.gap, pg.err = last, gap, err; err != nil || gap {
		return
	}
	if len(evs) > pageEvents { // events in memory come all at once
		evs = evs[:pageEvents]
		pg.last = evs[pageEvents-1].Seq
	}
	pg.items = make([]*item, 0, len(evs))
	for i := range evs {
		pg.items = append(pg.items, newItem(evs[i]))
	}
}
