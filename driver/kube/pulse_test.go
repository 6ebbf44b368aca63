package kube

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestPulse: an API server that says that it can serve, that has other things to say, or that says
// nothing.
//
// Seen to fail with: who may not be asked taken for silent; what is not there taken for an answer; one
// that shuts down, and serves meanwhile, asked whether it is to be sent more.
func TestPulse(t *testing.T) {
	const shutsDown = -1
	s := newStand(t)
	e := s.open(nil)
	for name, c := range map[string]struct {
		code int // 0: none
		live bool
	}{
		"it serves": {http.StatusOK, true}, "it may not be asked": {http.StatusForbidden, true}, "it does not know the question": {http.StatusNotFound, true},
		"it shuts down in order": {shutsDown, true},
		"it has no storage":      {http.StatusInternalServerError, false}, "nobody is behind it": {http.StatusBadGateway, false}, "it hangs": {0, false},
	} {
		s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.URL.Path != "/readyz":
				return false
			case c.code == shutsDown:
				if code := http.StatusInternalServerError; r.URL.Query().Get("exclude") != "shutdown" {
					answer(w, code, map[string]any{"kind": "Status", "code": code})
				}
			case c.code == 0:
				<-r.Context().Done()
			default:
				answer(w, c.code, map[string]any{"kind": "Status", "code": c.code})
			}
			return true
		})
		within := time.Minute
		if c.code == 0 {
			within = 100 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), within)
		if err := e.Pulse(ctx); (err == nil) != c.live || err != nil && c.code != 0 && fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}
