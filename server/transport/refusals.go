package transport

import (
	"strconv"
	"strings"
	"sync"
	"time"
)

// refusals bounds the log lines about requests that were refused because of who asked: one line
// for each source and minute. All callers without an identity on TCP are one source.
type refusals struct {
	now func() time.Time

	mu sync.Mutex
	of map[refusalSource]*refusalCount
}

// refusalSource is a user with a way of asking, or everybody without an identity.
type refusalSource struct{ via, name string }

// otherSources is the source of refusals beyond maxRefusalSources.
var otherSources = refusalSource{via: "others"}

type refusalCount struct {
	at time.Time // of the last line
	n  uint64    // refused since then, without a line
}

const (
	refusalInterval   = time.Minute
	maxRefusalSources = 256     // those beyond share one
	maxLoggedPath     = 256     // bytes of a request's path in the log
	maxLoggedReason   = 1 << 10 // bytes of why it was refused
)

func newRefusals(now func() time.Time) *refusals {
	return &refusals{now: now, of: map[refusalSource]*refusalCount{}}
}

// countRefusal counts a refused request. logged says that a line is due; unlogged is how many
// requests of the source had no line since the last one.
func (l *refusals) countRefusal(s refusalSource) (unlogged uint64, logged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c := l.of[s]
	if c == nil && len(l.of) >= maxRefusalSources {
		l.forgetOld(now)
		if len(l.of) >= maxRefusalSources {
			s = otherSources
			c = l.of[s]
		}
	}
	if c == nil {
		l.of[s] = &refusalCount{at: now}
		return 0, true
	}
	if gone := now.Sub(c.at); gone >= 0 && gone < refusalInterval {
		c.n++
		return 0, false
	}
	unlogged = c.n
	c.at, c.n = now, 0
	return unlogged, true
}

// forgetOld removes sources whose interval is over. Refusals of theirs without a line go to the
// count of the other sources.
func (l *refusals) forgetOld(now time.Time) {
	var owed uint64
	for s, c := range l.of {
		if s != otherSources && now.Sub(c.at) >= refusalInterval {
			owed += c.n
			delete(l.of, s)
		}
	}
	if owed == 0 {
		return
	}
	if l.of[otherSources] == nil {
		l.of[otherSources] = &refusalCount{}
	}
	l.of[otherSources].n += owed
}

// logRefusal notes that a caller was refused.
func (c *Call) logRefusal(detail string) {
	c.s.Metrics.Refused.Add(1)
	source := refusalSource{c.ID.Via, c.ID.Name}
	from := c.ID.From
	if o, _ := c.Ctx().Value(originKey{}).(*origin); o != nil && !c.ID.Known() {
		from = o.from
		source.via, _, _ = strings.Cut(from, " ")
		if o.socket {
			from += " uid " + strconv.FormatUint(uint64(o.cred.UID), 10)
			source.name = from
		}
	}
	unlogged, logged := c.s.refusals.countRefusal(source)
	if !logged {
		return
	}
	c.s.Log.Info("refused", "user", c.ID.Name, "uid", c.ID.UID, "from", from, "method", shortenLogged(c.R.Method, 16),
		"path", shortenLogged(WithoutTokens(c.R.URL.Path), maxLoggedPath), "why", shortenLogged(WithoutTokens(detail), maxLoggedReason), "unlogged", unlogged)
}

// shortenLogged is the beginning of a text that a caller has sent.
func shortenLogged(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
