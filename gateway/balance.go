package gateway

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/api"
)

// backend is a replica of a service. Its fields belong to the service's lock, but for those of api.Backend
// and cookie, which do not change once the backend is listed.
type backend struct {
	api.Backend
	cookie string // value of the cookie that leads to it

	ready    bool
	listed   bool // the newest routes have it
	inFlight int
	chosen   uint64       // the service's turn at which it was chosen last
	refused  atomic.Int32 // connections that failed, in a row; written with the lock
	out      time.Time    // it is left out until then; zero: it is not
	meter    *meter
}

// A backend whose connection failed is left out for firstOut, then twice as long each time in a row.
const (
	firstOut = 250 * time.Millisecond
	mostOut  = 10 * time.Second
)

// noteRefused leaves a backend out for a time.
func (b *backend) noteRefused(now time.Time) {
	if b.out.After(now) {
		return // another request has noted the same
	}
	b.out = now.Add(min(firstOut<<min(b.refused.Load(), 10), mostOut))
	b.refused.Add(1)
}

// isUsable says whether a backend gets new requests.
func (b *backend) isUsable(now time.Time) bool {
	return b.ready && b.listed && (b.refused.Load() == 0 || !b.out.After(now))
}

// share is how much of the requests a revision gets. The choice among revisions is a smooth weighted
// round robin: of any 100 requests in a row each has its per cents.
type share struct {
	revision uint32
	weight   int
	credit   int
}

// sharesOf makes the shares of a route, keeping the credit of those that are known.
func sharesOf(weights map[uint32]int, before []share) []share {
	var out []share
	for revision, weight := range weights {
		if weight <= 0 {
			continue
		}
		s := share{revision: revision, weight: weight}
		if i := slices.IndexFunc(before, func(o share) bool { return o.revision == revision && o.weight == weight }); i >= 0 {
			s.credit = before[i].credit
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b share) int { return cmp.Compare(a.revision, b.revision) })
	return out
}

// pickBackend chooses the backend of a request, nil: none is usable. cookie is what the request's
// cookie says; avoid is chosen only if there is no other. The caller has the lock.
func (s *service) pickBackend(now time.Time, cookie string, avoid *backend) *backend {
	if cookie != "" {
		for _, b := range s.backends {
			if b.cookie == cookie && b != avoid && b.isUsable(now) {
				return b
			}
		}
	}
	if len(s.shares) > 0 {
		if revision, ok := s.pickRevision(now); ok {
			if b := s.leastOutstanding(now, avoid, func(b *backend) bool { return b.Revision == revision }); b != nil && b != avoid {
				return b
			}
		}
	}
	return s.leastOutstanding(now, avoid, nil)
}

// pickRevision chooses among the revisions that have a share and a usable backend.
func (s *service) pickRevision(now time.Time) (revision uint32, ok bool) {
	total, best := 0, -1
	for i := range s.shares {
		h := &s.shares[i]
		if !slices.ContainsFunc(s.backends, func(b *backend) bool { return b.Revision == h.revision && b.isUsable(now) }) {
			continue
		}
		total += h.weight
		h.credit += h.weight
		if best < 0 || h.credit > s.shares[best].credit {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	s.shares[best].credit -= total
	return s.shares[best].revision, true
}

// leastOutstanding chooses the usable backend with the fewest requests in flight; backends that have
// equally many take turns.
func (s *service) leastOutstanding(now time.Time, avoid *backend, matches func(*backend) bool) *backend {
	var best *backend
	for _, b := range s.backends {
		if !b.isUsable(now) || matches != nil && !matches(b) {
			continue
		}
		if best == nil || best == avoid || b != avoid && (b.inFlight < best.inFlight || b.inFlight == best.inFlight && b.chosen < best.chosen) {
			best = b
		}
	}
	if best != nil {
		s.turn++
		best.chosen = s.turn
	}
	return best
}
