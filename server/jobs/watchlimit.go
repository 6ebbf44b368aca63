package jobs

import (
	"context"
	"sync"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Bounds of watches.
const (
	maxUserWatches = 256 // of one user at once; root and the server's own user have as many as they like
	maxBrowsers    = 8   // watches of one user's browsers at once, whoever he is: a browser needs one for all its pages
	maxCatchUps    = 4   // watches of one user that read past events at the same time
	manyEvents     = 256 // a watch that is further behind than this waits for a turn to read past events
)

// watchLimit bounds how many watches each user has, and how many of them read many events at the
// same time: if one user opens a thousand watches from the first event on, they take turns, and
// the server serves others meanwhile. It is safe for concurrent use.
type watchLimit struct {
	most int // watches of one user

	mu sync.Mutex
	of map[uint32]*userWatches
}

// userWatches is one user's part of watchLimit.
type userWatches struct {
	turns    chan struct{} // an element for each watch that reads past events
	n        int
	browsers int // of n
}

func newWatchLimit() *watchLimit {
	return &watchLimit{most: maxUserWatches, of: map[uint32]*userWatches{}}
}

// addWatch counts a watch in, or refuses it. removeWatch counts it out.
func (l *watchLimit) addWatch(id *auth.Identity, bounded bool) (*userWatches, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.of[id.UID]
	if u == nil {
		u = &userWatches{turns: make(chan struct{}, maxCatchUps)}
		l.of[id.UID] = u
	}
	if bounded && u.n >= l.most {
		return nil, fault.New(fault.Unavailable, "user %s has %d watches open, and may have no more at once", id.Name, l.most).
			Advise("end some; one watch follows all jobs, or several of them: cox watch 7 8 9, /v1/watch?jobs=7,8,9")
	}
	if id.Browser {
		if u.browsers >= maxBrowsers {
			return nil, fault.New(fault.Unavailable, "user %s has %d browsers that watch, and may have no more at once", id.Name, maxBrowsers).
				Advise("close the web console in some of them")
		}
		u.browsers++
	}
	u.n++
	return u, nil
}

func (l *watchLimit) removeWatch(id *auth.Identity, u *userWatches) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id.Browser {
		u.browsers--
	}
	if u.n--; u.n == 0 {
		delete(l.of, id.UID)
	}
}

// inTurn waits for one of the user's turns and calls do; it returns false if ctx ends first.
func (u *userWatches) inTurn(ctx context.Context, do func()) bool {
	select {
	case u.turns <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-u.turns }()
	do()
	return true
}
