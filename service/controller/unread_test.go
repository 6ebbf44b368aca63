package controller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/service/controller"
)

// unreadable is a plane whose documents cannot be read for a while.
type unreadable struct {
	*plane
	until time.Time
}

func (p unreadable) Documents(ctx context.Context) ([]controller.Stored, error) {
	if time.Now().Before(p.until) {
		return nil, errors.New("the store is closed")
	}
	return p.plane.Documents(ctx)
}

// TestRequestsBeforeTheDocumentsAreRead are answered at once, with the reason.
//
// Seen to fail with: Run that does not read requests meanwhile.
func TestRequestsBeforeTheDocumentsAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		r := p.startControllerOn(t, unreadable{p, time.Now().Add(3 * time.Second)})
		defer r.stop()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := r.Submit(ctx, anna, specOf("a", 1), nil); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "the store is closed") {
			t.Errorf("%v", err)
		}
		time.Sleep(4 * time.Second) // of the bubble
		r.submit(specOf("a", 1))
	})
}
