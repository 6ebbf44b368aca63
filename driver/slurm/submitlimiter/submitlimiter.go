// Package submitlimiter bounds how many submissions go on at once, and shares that out among the
// users as whom they are made: each may have a way in of his own, which can hang alone.
//
// The model. A submission has a lane. A user has no more lanes than are left for the others.
// A user whose last submission hung has one at a time, of lanes that are for such users alone,
// until one is answered. Users that wait take turns.
//
// Guarantees: whoever hangs takes no lane from those who are answered.
// The user "", as whom everybody's submissions go, is never set aside.
//
// It neither submits nor ends a call that hangs: the caller says so when it gives a lane back.
package submitlimiter

import (
	"context"
	"slices"
	"sync"
)

// Limiter shares lanes out among users. It is safe for concurrent use.
type Limiter struct {
	mu    sync.Mutex
	free  int
	aside int // free ones of those for users whose way in hangs
	users map[string]*userQueue
	turns []string // users that wait, the next one first
}

// userQueue is a user's part.
type userQueue struct {
	held  int
	hangs bool
	queue []*turn // the next one first
}

// turn is one submission's.
type turn struct {
	ready chan struct{} // closed when it may begin
	aside bool
}

// New makes a Limiter of 2*each lanes, of which one user alone has at most each, and of as many
// as each for users whose way in hangs.
func New(each int) *Limiter {
	return &Limiter{free: 2 * each, aside: each, users: map[string]*userQueue{}}
}

// Acquire waits for a lane, which leave gives back: it is told whether the call hung. ok is false
// when the context, which all callers share, ends first, or quit is closed: then it waits no
// more.
func (l *Limiter) Acquire(ctx context.Context, user string, quit <-chan struct{}) (leave func(hung bool), ok bool) {
	t := &turn{ready: make(chan struct{})}
	l.mu.Lock()
	u := l.users[user]
	if u == nil {
		u = &userQueue{}
		l.users[user] = u
	}
	if u.queue = append(u.queue, t); len(u.queue) == 1 {
		l.turns = append(l.turns, user)
	}
	l.grantTurns()
	l.mu.Unlock()
	select {
	case <-t.ready:
		return func(hung bool) { l.releaseTurn(user, t, hung) }, true
	case <-quit:
		return l.withdrawTurn(user, t)
	case <-ctx.Done(): // of the engine: the others stop waiting too
		return nil, false
	}
}

// withdrawTurn takes back who waits, unless it is his turn by now.
func (l *Limiter) withdrawTurn(user string, t *turn) (leave func(hung bool), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.users[user]
	i := -1
	if u != nil {
		i = slices.Index(u.queue, t)
	}
	if i < 0 { // it is
		return func(hung bool) { l.releaseTurn(user, t, hung) }, true
	}
	if u.queue = slices.Delete(u.queue, i, i+1); len(u.queue) == 0 {
		l.turns = slices.DeleteFunc(l.turns, func(name string) bool { return name == user })
		if u.held == 0 && !u.hangs {
			delete(l.users, user)
		}
	}
	return nil, false
}

func (l *Limiter) releaseTurn(user string, t *turn, hung bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.aside {
		l.aside++
	} else {
		l.free++
	}
	u := l.users[user]
	u.held--
	u.hangs = hung && user != "" // else the way in is everybody's
	l.grantTurns()
	if u.held == 0 && len(u.queue) == 0 && !u.hangs {
		delete(l.users, user)
	}
}

// grantTurns has those begin who may. The caller holds the lock.
func (l *Limiter) grantTurns() {
	for passed := 0; passed < len(l.turns); {
		user := l.turns[0]
		l.turns = l.turns[1:]
		u := l.users[user]
		switch t := u.queue[0]; {
		case !u.hangs && u.held < l.free:
			l.free--
			u.beginTurn(t)
			passed = 0
		case u.hangs && u.held == 0 && l.aside > 0:
			l.aside--
			t.aside = true
			u.beginTurn(t)
			passed = 0
		default:
			passed++
		}
		if len(u.queue) > 0 {
			l.turns = append(l.turns, user)
		}
	}
}

func (u *userQueue) beginTurn(t *turn) {
	u.queue = u.queue[1:]
	u.held++
	close(t.ready)
}
