package notify

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// deadHosts is an outlet of which only the host "good" answers; it counts who waits for the others.
type deadHosts struct {
	free chan struct{}
	good chan string // users whose messages came

	mu      sync.Mutex
	waiting map[string]int
	most    map[string]int
	begun   chan struct{}
}

func (*deadHosts) events(*job.Job) *job.Mail { return nil }

func (*deadHosts) hostOf(o *occasion) string { return o.job.Spec.Notify.Webhook }

func (d *deadHosts) deliver(_ context.Context, o *occasion) (bool, error) {
	host := d.hostOf(o)
	if host == "good" {
		d.good <- o.job.Spec.Owner.User
		return true, nil
	}
	d.mu.Lock()
	d.waiting[host]++
	d.most[host] = max(d.most[host], d.waiting[host])
	d.mu.Unlock()
	d.begun <- struct{}{}
	<-d.free
	d.mu.Lock()
	d.waiting[host]--
	d.mu.Unlock()
	return false, fmt.Errorf("%s: %w", host, errLater)
}

// TestDeadReceiversDelayNobodyElse: with the bounds of the webhooks of jobs, 60 users whose receivers
// do not answer delay no message of another user, and of 30 users who write to one dead host no more
// than its share of the senders wait for it.
//
// Seen to fail with: four senders; no bound of a host.
func TestDeadReceiversDelayNobodyElse(t *testing.T) {
	for name, hostOf := range map[string]func(i int) string{
		"a host each": func(i int) string { return fmt.Sprint("dead", i) },
		"one host":    func(int) string { return "dead" },
	} {
		t.Run(name, func(t *testing.T) {
			d := &deadHosts{free: make(chan struct{}), good: make(chan string), waiting: map[string]int{}, most: map[string]int{}, begun: make(chan struct{}, 100)}
			n := startNotifier(Config{Workers: jobSenders, Queue: 1024, Timeout: time.Minute, PerUser: userMessages, PerHost: hostSenders}, d, nil, slog.New(slog.DiscardHandler))
			send := func(user, host string) {
				n.mu.Lock()
				defer n.mu.Unlock()
				n.enqueueMessage(occasion{job: job.Job{ID: 7, Spec: &job.Spec{Owner: job.Owner{User: user}, Notify: &job.Notify{Webhook: host}}}})
			}
			users, wait := jobSenders-4, jobSenders-4
			if name == "one host" {
				users, wait = 3*jobSenders, hostSenders
			}
			for i := range users {
				send(fmt.Sprint("user", i), hostOf(i))
			}
			for range wait {
				await(t, d.begun)
			}
			send("ben", "good")
			if got := await(t, d.good); got != "ben" {
				t.Errorf("a message of %s came", got)
			}
			close(d.free)
			if err := n.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for host, most := range d.most {
				if most > hostSenders {
					t.Errorf("%d messages waited for %s at once", most, host)
				}
			}
			if s := n.Stats(); s.Sent != 1 || s.Failed+s.Dropped != uint64(users) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// await receives within a minute.
func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
