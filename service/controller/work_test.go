package controller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestSubmissionThatHangs: it holds its own service alone, which is said, can be shown and stopped, and
// goes on with the right number of jobs.
//
// Seen to fail with: carryOut on the goroutine of Run; decisions about a service whose work is not done.
func TestSubmissionThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		free := make(chan struct{})
		p.hang = map[string]chan struct{}{"service/slow": free}
		r := p.startController(t)
		defer r.stop()
		slow := specOf("a", 2)
		slow.Name, slow.Account = "slow", ""
		r.submit(slow)
		synctest.Wait()
		r.submit(specOf("a", 2))
		r.until(10*time.Second, settled)
		p.end(1, job.Failed)
		r.until(10*time.Second, settled)
		time.Sleep(5 * time.Second) // of the bubble
		s, err := r.Get(t.Context(), "slow")
		if err != nil || !hasReason(s, "the last changes of its replicas are still being made, since ") || len(s.Replicas) != 2 {
			t.Errorf("%v, %+v, reasons %v", err, s.Replicas, s.Reasons)
		}
		if err := r.Scale(t.Context(), anna, "slow", 1); err != nil {
			t.Error(err)
		}
		close(free)
		time.Sleep(5 * time.Second) // of the bubble
		synctest.Wait()
		if s, err = r.Get(t.Context(), "slow"); err != nil || s.Ready != 1 || len(s.Replicas) != 1 || len(s.Reasons) > 1 {
			t.Errorf("afterwards: %v, %+v, reasons %v", err, s.Replicas, s.Reasons)
		}
	})
}

// TestRouteWithoutDocument: after a restart gateways get the route of a service whose document cannot be
// written.
//
// Seen to fail with: setRoute after the document only.
func TestRouteWithoutDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		r := p.startController(t)
		r.submit(specOf("a", 2))
		r.until(10*time.Second, settled)
		r.stop()
		p.end(1, job.Failed) // so there is something to write
		p.set(func() { p.failDocs = fault.New(fault.Unavailable, "the disk is full") })
		r = p.startController(t)
		defer r.stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var first api.GatewayRoutes
		_ = p.hub.WatchRoutes(ctx, func(routes api.GatewayRoutes) error { first = routes; return context.Canceled })
		if len(first.Services) != 1 || first.Services[0].Host != "chat.localhost" || len(first.Services[0].Backends) != 1 {
			t.Errorf("the first routes are %+v", first)
		}
		if s := r.status(); !hasReason(s, "its document cannot be written") {
			t.Errorf("reasons %v", s.Reasons)
		}
	})
}
