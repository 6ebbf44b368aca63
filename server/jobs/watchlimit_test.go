package jobs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestOneUserCannotTakeEveryWatch: the one too many is refused with the limit and what to do; others and
// the server's own user may watch meanwhile, and the user may again when one has ended.
func TestOneUserCannotTakeEveryWatch(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 1, "anna", 2001, nil)
	r := start(t, p, nil)
	r.jobs.watches.most = 3
	secret, ben := r.Token(t, "anna", nil), r.Token(t, "ben", nil)
	watch := func(secret string) (end func()) {
		ctx, stop := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL+"/v1/watch?after=0", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		return func() { stop(); _ = resp.Body.Close() }
	}
	var end []func()
	for range 3 {
		end = append(end, watch(secret))
	}
	resp, text := r.Ask(t, http.MethodGet, "/v1/watch?after=0", secret, "")
	servertest.CheckRefusal(t, "a fourth", resp, text, http.StatusServiceUnavailable, fault.Unavailable, "user anna has 3 watches open")
	end = append(end, watch(ben))
	for range 4 {
		conn, _ := r.DialWatch(t, "/v1/watch?after=0")
		end = append(end, func() { _ = conn.Close() })
	}
	end[0]()
	servertest.WaitUntil(t, "one has ended", func() bool {
		r.jobs.watches.mu.Lock()
		defer r.jobs.watches.mu.Unlock()
		return r.jobs.watches.of[2001].n == 2
	})
	end[0] = watch(secret)
	for _, f := range end {
		f()
	}
	servertest.WaitUntil(t, "nobody is counted", func() bool {
		r.jobs.watches.mu.Lock()
		defer r.jobs.watches.mu.Unlock()
		return len(r.jobs.watches.of) == 0
	})
}

// countedChanges is a journal from a number on, that says how often and how much at once it is read.
type countedChanges struct {
	first, newest         uint64 // events that are kept
	reads, now, most, out atomic.Int64
}

func (c *countedChanges) LastEvent() uint64 { return c.newest }

func (c *countedChanges) Events(_ context.Context, after uint64) (evs []state.Event, last uint64, gap bool, err error) {
	c.reads.Add(1)
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for old := c.most.Load(); n > old && !c.most.CompareAndSwap(old, n); old = c.most.Load() {
	}
	if after+1 < c.first {
		return nil, c.newest, true, nil
	}
	for last = after; last < c.newest && len(evs) < 3*pageEvents; {
		last++
		evs = append(evs, state.Event{Seq: last, Job: job.ID(last)})
	}
	c.out.Add(int64(len(evs)))
	return evs, last, false, nil
}

// TestPastEventsAreReadOnce lets five hundred read the whole of a journal of 100 pages: each page
// is read once or, if it was given up meanwhile, a few times; two at a time; and a few are kept.
func TestPastEventsAreReadOnce(t *testing.T) {
	readers, pages, each := 500, uint64(100), 20
	if testing.Short() { // under the race detector
		readers, pages, each = 50, 20, 4
	}
	c := &countedChanges{first: 1, newest: pages * pageEvents}
	p := newPastPages(c)
	var all sync.WaitGroup
	round := make(chan struct{})
	texts := make([][]byte, readers)
	for i := range texts {
		all.Go(func() {
			<-round
			items, last, _, err := p.eventsAfter(t.Context(), uint64(i))
			if err != nil || last != pageEvents || len(items) != pageEvents-i || items[0].Seq != uint64(i)+1 {
				t.Errorf("after %d: %d events up to %d, %v", i, len(items), last, err)
				return
			}
			texts[i] = items[len(items)-1].eventText()
		})
	}
	close(round)
	all.Wait()
	if n := c.reads.Load(); n != 1 {
		t.Errorf("%d watches read the page %d times", readers, n)
	}
	for after := uint64(0); after < c.newest; {
		_, last, _, err := p.eventsAfter(t.Context(), after)
		if err != nil {
			t.Fatal(err)
		}
		after = last
	}
	if n := c.reads.Load(); n != int64(pages) || len(p.pages) > keptPages {
		t.Errorf("%d pages were read %d times, %d are kept", pages, n, len(p.pages))
	}
	for range 50 {
		all.Go(func() {
			for range each {
				_, _, _, _ = p.eventsAfter(t.Context(), rand.Uint64N(c.newest))
			}
		})
	}
	all.Wait()
	if n := c.most.Load(); n > pagesAtOnce || len(p.pages) > keptPages {
		t.Errorf("%d pages were read at once, %d are kept", n, len(p.pages))
	}
}

// TestPastEventsAreWhole compares pages with the journal itself, also where it was purged, and where it
// has grown since the page was read: nothing is missing, doubled, or told to be gone that is there.
func TestPastEventsAreWhole(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	c := &countedChanges{first: 1, newest: 1}
	p := newPastPages(c)
	for i := range 5000 {
		c.newest += rnd.Uint64N(200)
		if rnd.IntN(10) == 0 {
			c.first += rnd.Uint64N(c.newest - c.first + 1)
		}
		after := rnd.Uint64N(c.newest)
		items, last, gap, err := p.eventsAfter(t.Context(), after)
		what := fmt.Sprintf("%d: after %d of %d to %d", i, after, c.first, c.newest)
		if err != nil || len(items) == 0 != gap || gap && after+1 >= c.first {
			t.Fatalf("%s: %d events, gap %v, %v", what, len(items), gap, err)
		}
		for k, it := range items {
			if it.Seq != after+1+uint64(k) {
				t.Fatalf("%s: event %d is %d", what, k, it.Seq)
			}
		}
		if !gap && last != after+uint64(len(items)) {
			t.Fatalf("%s: %d events up to %d", what, len(items), last)
		}
	}
}

// TestTheLastEventsBeforeAWindow: the newest of them are on the next page. Of events of which some are gone there
// are none.
//
// Seen to fail with the first page alone.
func TestTheLastEventsBeforeAWindow(t *testing.T) {
	p := newPastPages(&countedChanges{first: 1, newest: 2300})
	items, err := p.eventsUpTo(t.Context(), 700, 1200)
	if err != nil || len(items) < 500 || items[0].Seq != 701 || items[499].Seq != 1200 {
		t.Errorf("%d events, %v", len(items), err)
	}
	p = newPastPages(&countedChanges{first: 600, newest: 2300})
	if items, err := p.eventsUpTo(t.Context(), 500, 1200); err != nil || len(items) != 0 {
		t.Errorf("%d events, %v", len(items), err)
	}
}

// TestAReaderThatGoesTakesNobodyAlong: who waits for a page of somebody who has gone reads it himself.
func TestAReaderThatGoesTakesNobodyAlong(t *testing.T) {
	c := &countedChanges{first: 1, newest: 10}
	p := newPastPages(c)
	gone, stop := context.WithCancel(t.Context())
	stop()
	for range pagesAtOnce {
		p.reading <- struct{}{}
	}
	if _, _, _, err := p.eventsAfter(gone, 3); err == nil {
		t.Error("who has gone has read")
	}
	for range pagesAtOnce {
		<-p.reading
	}
	if items, last, gap, err := p.eventsAfter(t.Context(), 3); len(items) != 7 || last != 10 || gap || err != nil {
		t.Errorf("%d events up to %d, gap %v, %v", len(items), last, gap, err)
	}
}
