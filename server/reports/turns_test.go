package reports_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/server/reports"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store"
)

// slowHistory is a plane whose history is not read before somebody lets it.
type slowHistory struct {
	*servertest.Plane

	reads chan struct{} // gets an element as each begins
	gate  chan struct{} // an element: one panics; closed: they end
}

func (p *slowHistory) HistoryInBrief(ctx context.Context, q store.Query, f func(*state.View) bool) error {
	select {
	case p.reads <- struct{}{}:
	case <-ctx.Done():
	}
	select {
	case _, open := <-p.gate:
		if open {
			panic("while a report is made")
		}
	case <-ctx.Done():
	}
	return p.Plane.HistoryInBrief(ctx, q, f)
}

// TestOneReportEach: while a user's report is being made, another one of the same user is refused with 429, and one of
// another user is made. If as many are made as the server makes at once, the next user hears that others make them.
//
// Seen to fail with turns for all users alone: anna's second report is made, and ben's waits; and with turns that do
// not end by a panic.
func TestOneReportEach(t *testing.T) {
	p := &slowHistory{servertest.NewPlane(), make(chan struct{}), make(chan struct{})}
	log, policy := &servertest.Log{}, auth.Policy{}
	s := transport.New(transport.Config{Tokens: p, Policy: policy, Users: &user.Users{Lookup: servertest.Lookup}, Log: log.Logger(), Now: time.Now, Stall: 10 * time.Second, Patience: 10 * time.Second})
	routes := reports.Register(s, reports.Config{Plane: p, Policy: policy, Now: func() time.Time { return now }, Wait: time.Millisecond})
	r := servertest.Listen(t, p.Plane, log, s, s.Serve)
	t.Cleanup(routes.Close)
	anna, ben, carl := r.Token(t, "anna", nil), r.Token(t, "ben", nil), r.Token(t, "carl", nil)
	ask := func(token string) (*http.Response, string) { return r.Ask(t, "GET", "/v1/reports/usage", token, "") }

	var making sync.WaitGroup
	begin := func(token string, status int) {
		ended := make(chan struct{})
		making.Go(func() {
			defer close(ended)
			if resp, text := ask(token); resp.StatusCode != status {
				t.Errorf("a first report: %d %s, want %d", resp.StatusCode, text, status)
			}
		})
		select {
		case <-p.reads:
		case <-ended: // it was refused
		}
	}
	refused := func(token string, status int, words string) {
		t.Helper()
		if resp, text := ask(token); resp.StatusCode != status || resp.Header.Get("Retry-After") != "5" || !strings.Contains(text, words) {
			t.Errorf("%d, Retry-After %q: %s, want %d and %q", resp.StatusCode, resp.Header.Get("Retry-After"), text, status, words)
		}
	}
	begin(anna, http.StatusInternalServerError)
	p.gate <- struct{}{} // her first report panics, and holds nothing up
	making.Wait()
	begin(anna, http.StatusOK)
	refused(anna, http.StatusTooManyRequests, "another report of anna is still being made")
	begin(ben, http.StatusOK)
	refused(carl, http.StatusServiceUnavailable, "2 reports of other users")
	close(p.gate)
	making.Wait()
	begin(anna, http.StatusOK) // her place is free again
	making.Wait()
}
