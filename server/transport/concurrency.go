package transport

import (
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// concurrencyLimit bounds how many requests of one user are worked on at once, from the reading
// of their bodies to the end of their answers: what he sends and asks for fills memory
// only so far, and others get their share of the machine. Requests that last (watch,
// wait, logs, exec) hold little and are not counted.
type concurrencyLimit struct {
	most int // of one user

	mu sync.Mutex
	of map[uint32]*userRequests // users with a request
}

// userRequests is one user's part of concurrencyLimit.
type userRequests struct {
	places chan struct{}
	n      int // requests that have a place or wait for one
}

// maxUserRequests is how many requests of one user have a place. Each may hold a body of
// MaxBody and a page of pageBytes.
const maxUserRequests = 32

func newConcurrencyLimit() *concurrencyLimit {
	return &concurrencyLimit{most: maxUserRequests, of: map[uint32]*userRequests{}}
}

// addRequest counts a request in.
func (t *concurrencyLimit) addRequest(uid uint32) *userRequests {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.of[uid]
	if u == nil {
		u = &userRequests{places: make(chan struct{}, t.most)}
		t.of[uid] = u
	}
	u.n++
	return u
}

// removeRequest counts it out.
func (t *concurrencyLimit) removeRequest(uid uint32, u *userRequests) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.n--; u.n == 0 {
		delete(t.of, uid)
	}
}

// waitForPlace waits until the caller has a place. root and the server's own user need
// none. It is given back when the request has ended.
func (c *Call) waitForPlace() error {
	if c.route.Lasts || c.ID.UID == 0 || c.ID.UID == c.s.Self.UID {
		return nil
	}
	t, uid := c.s.concurrency, c.ID.UID
	u := t.addRequest(uid)
	late := time.NewTimer(3 * c.s.cfg.Patience)
	defer late.Stop()
	select {
	case u.places <- struct{}{}:
		c.over = func() {
			<-u.places
			t.removeRequest(uid, u)
		}
		return nil
	case <-late.C:
	case <-c.Ctx().Done():
	}
	t.removeRequest(uid, u)
	c.W.Header().Set("Connection", "close") // its body is not read
	return fault.New(fault.Unavailable, "user %s has %d requests at once, and none ended within %s", c.ID.Name, t.most, 3*c.s.cfg.Patience).
		Advise("ask again when some have ended; watch tells of changes without asking")
}
