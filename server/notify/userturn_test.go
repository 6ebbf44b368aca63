package notify

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// heldOutlet does not end a message of anna's before it may.
type heldOutlet struct {
	begun, free chan struct{}
	once        sync.Once
	ben         chan struct{}
}

func (*heldOutlet) events(*job.Job) *job.Mail { return nil }

func (h *heldOutlet) deliver(_ context.Context, o *occasion) (bool, error) {
	if o.job.Spec.Owner.User == "ben" {
		h.ben <- struct{}{}
		return true, nil
	}
	h.once.Do(func() { close(h.begun) })
	<-h.free
	return true, nil
}

// TestOneUserCannotHoldEverySender: while a message of anna's is on its way, her others wait, up to their
// bound, and those of ben are sent.
func TestOneUserCannotHoldEverySender(t *testing.T) {
	h := &heldOutlet{begun: make(chan struct{}), free: make(chan struct{}), ben: make(chan struct{}, 1)}
	n := startNotifier(Config{Workers: 2, Queue: 100, Timeout: time.Minute, PerUser: 5}, h, nil, slog.New(slog.DiscardHandler))
	send := func(user string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.enqueueMessage(occasion{job: job.Job{ID: 7, Spec: &job.Spec{Owner: job.Owner{User: user}}}})
	}
	send("anna")
	<-h.begun
	for range 7 {
		send("anna")
	}
	send("ben")
	<-h.ben
	close(h.free)
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := n.Stats(); s.Sent != 7 || s.Dropped != 2 || len(n.users) > 0 {
		t.Errorf("%+v, %d users", s, len(n.users))
	}
}
