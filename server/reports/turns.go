package reports

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// Bounds of the reports that are made at the same time: each reads the history of its window.
const (
	atOnce    = 2                // of all users
	ownWait   = 2 * time.Second  // for the end of one's own other report: a page that changed asks again before the last answer
	allWait   = 20 * time.Second // for those of others
	retryTime = 5 * time.Second  // after which a client may ask again
)

// turns says who may make a report: one for each user, and atOnce for all.
type turns struct {
	wait time.Duration // 0: allWait
	all  chan struct{} // holds an element for each report that is being made

	mu sync.Mutex
	of map[uint32]*userTurn // users who make or wait for one
}

// userTurn is one user's part of turns.
type userTurn struct {
	place chan struct{}
	n     int // requests that have the place or wait for it
}

func newTurns(wait time.Duration) *turns {
	return &turns{wait: cmp.Or(wait, allWait), all: make(chan struct{}, atOnce), of: map[uint32]*userTurn{}}
}

// takeTurn waits until the caller may make a report, and returns what ends it. An error is 429 if the caller makes
// another one, and 503 if others do; both say when to ask again.
func (t *turns) takeTurn(c *transport.Call) (end func(), err error) {
	own := t.addUser(c.ID.UID)
	leave := func() { t.removeUser(c.ID.UID, own) }
	defer func() {
		if err != nil {
			leave()
			c.W.Header().Set("Retry-After", strconv.Itoa(int(retryTime/time.Second)))
		}
	}()
	if !awaitPlace(c.Ctx(), own.place, min(ownWait, t.wait)) {
		return nil, transport.WithStatus(http.StatusTooManyRequests, fault.New(fault.Unavailable, "another report of %s is still being made: each user has one at a time", c.ID.Name).
			Advise("ask again when it is there, or for a shorter time: --since, or from and to"))
	}
	if !awaitPlace(c.Ctx(), t.all, t.wait) {
		<-own.place
		return nil, fault.New(fault.Unavailable, "the server makes %d reports of other users, and none was ready within %s", atOnce, t.wait).Advise("ask again in a moment")
	}
	return func() {
		<-t.all
		<-own.place
		leave()
	}, nil
}

// awaitPlace reports whether there was a place in time.
func awaitPlace(ctx context.Context, places chan struct{}, wait time.Duration) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case places <- struct{}{}:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

func (t *turns) addUser(uid uint32) *userTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.of[uid]
	if u == nil {
		u = &userTurn{place: make(chan struct{}, 1)}
		t.of[uid] = u
	}
	u.n++
	return u
}

func (t *turns) removeUser(uid uint32, u *userTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.n--; u.n == 0 {
		delete(t.of, uid)
	}
}
