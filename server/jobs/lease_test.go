package jobs

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestHeldByClient: a lease that is over ends no allocation that its client holds by a connection:
// a client that is stopped renews nothing.
func TestHeldByClient(t *testing.T) {
	p := servertest.NewPlane()
	held := submitAllocation(t, p, time.Minute)
	p.Start(held, "n1")
	p.Mu.Lock()
	p.Get(held).Job.Spec.Program.Client, p.Get(held).Pool = "/run/client", "local"
	p.Mu.Unlock()
	c := &stoodClock{}
	k := newLeaseKeeper(p, slog.New(slog.DiscardHandler), c.now, 0)
	defer k.close()
	k.grantLease(held, time.Minute)
	c.advance(time.Hour)
	k.endOverdue(t.Context())
	if v, err := p.Job(t.Context(), held); err != nil || v.Job.State != job.Running || len(k.candidates()) > 0 {
		t.Errorf("it is %s: %v", v.Job.State, err)
	}
}

// stoodClock is a clock that a test moves.
type stoodClock struct{ at atomic.Int64 }

func (c *stoodClock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *stoodClock) advance(d time.Duration) { c.at.Add(int64(d)) }

// submitAllocation enters an allocation.
func submitAllocation(t *testing.T, p *servertest.Plane, lease time.Duration) job.ID {
	t.Helper()
	id := p.Fill(t, 1, "anna", 2001, nil)
	p.Mu.Lock()
	defer p.Mu.Unlock()
	spec := *p.Get(id).Job.Spec
	spec.Program = job.Program{Kind: job.BareAllocation, Lease: lease}
	p.Get(id).Job.Spec = &spec
	return id
}

// TestLeases: an allocation ends when its client was not heard of for its lease, in the queue or
// while it runs; not one whose lease is renewed, nor one without a lease. A keeper that is made
// anew, as after a restart of the server, gives every lease its whole time.
//
// Seen to fail with: a keeper that renews nothing; one that does not look for allocations first.
func TestLeases(t *testing.T) {
	p := servertest.NewPlane()
	queued, renewed, free := submitAllocation(t, p, time.Minute), submitAllocation(t, p, time.Minute), submitAllocation(t, p, 0)
	p.Start(renewed, "n1")
	c := &stoodClock{}
	k := newLeaseKeeper(p, slog.New(slog.DiscardHandler), c.now, 0)
	defer k.close()
	look := func() { k.grantLease(free, 0) } // which has it look at the clock
	servertest.WaitUntil(t, "the allocations are known", func() bool { k.mu.Lock(); defer k.mu.Unlock(); return len(k.kept) == 2 })
	stateOf := func(id job.ID) (job.State, string) {
		v, err := p.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return v.Job.State, v.Message
	}
	c.advance(59 * time.Second)
	k.grantLease(renewed, time.Minute)
	c.advance(2 * time.Second)
	look()
	servertest.WaitUntil(t, "the first ends", func() bool { st, _ := stateOf(queued); return st.Final() })
	if st, _ := stateOf(renewed); st != job.Running {
		t.Errorf("the renewed one is %s", st)
	}
	again := newLeaseKeeper(p, slog.New(slog.DiscardHandler), c.now, 0)
	defer again.close()
	servertest.WaitUntil(t, "the other is known anew", func() bool { again.mu.Lock(); defer again.mu.Unlock(); return again.kept[renewed] != nil })
	k.close()
	c.advance(59 * time.Second)
	again.endOverdue(t.Context())
	if st, _ := stateOf(renewed); st != job.Running {
		t.Errorf("after a restart it is %s", st)
	}
	c.advance(2 * time.Second)
	again.endOverdue(t.Context())
	if st, _ := stateOf(renewed); !st.Final() {
		t.Errorf("without a client it is %s", st)
	}
	if st, _ := stateOf(free); st.Final() {
		t.Errorf("the one without a lease is %s", st)
	}
}

// TestIdleAllocations: the site's idle limit ends an allocation in which nothing runs; a step or a
// command keeps it.
func TestIdleAllocations(t *testing.T) {
	p := servertest.NewPlane()
	unused, stepped, asked := submitAllocation(t, p, 0), submitAllocation(t, p, 0), submitAllocation(t, p, 0)
	c := &stoodClock{}
	for _, id := range []job.ID{unused, stepped, asked} {
		p.Start(id, "n1")
	}
	report := func(id job.ID, r engine.Report) {
		p.Mu.Lock()
		defer p.Mu.Unlock()
		p.Get(id).Report = r
	}
	report(unused, engine.Report{Tasks: []engine.TaskReport{{Step: engine.BatchStep, Running: true}, {Step: 0, Ended: c.now()}}})
	report(stepped, engine.Report{Tasks: []engine.TaskReport{{Step: 0, Running: true}}})
	k := &leaseKeeper{plane: p, log: slog.New(slog.DiscardHandler), now: c.now, idle: time.Hour, wake: make(chan struct{}, 1), kept: map[job.ID]*keptAllocation{}}
	for _, id := range []job.ID{unused, stepped, asked} {
		k.grantLease(id, 0)
	}
	end := k.beginUse(asked)
	c.advance(61 * time.Minute)
	if why := k.whyEnd(p.Get(unused)); why != "nothing ran in it for 1h0m0s, the idle limit of allocations here" {
		t.Errorf("it ends because %q", why)
	}
	k.endOverdue(t.Context())
	for id, want := range map[job.ID]bool{unused: true, stepped: false, asked: false} {
		if v, _ := p.Job(t.Context(), id); v.Job.State.Final() != want {
			t.Errorf("job %d is %s", id, v.Job.State)
		}
	}
	end()
	c.advance(61 * time.Minute)
	k.endOverdue(t.Context())
	if v, _ := p.Job(t.Context(), asked); !v.Job.State.Final() {
		t.Errorf("job %d is %s after its command", asked, v.Job.State)
	}
}

// TestRenewal: who may renew what, by the API.
func TestRenewal(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, nil)
	anna, ben := r.Token(t, "anna", nil), r.Token(t, "ben", nil)
	resp, text := r.Ask(t, http.MethodPost, "/v1/jobs", anna, `{"form":"allocation","dir":"/","lease":60,"args":["-N2"]}`)
	if resp.StatusCode != http.StatusCreated {
		t.Fatal(resp.Status, text)
	}
	resp, text = r.Ask(t, http.MethodPost, "/v1/jobs/1/lease", anna, "")
	if resp.StatusCode != http.StatusOK || !strings.Contains(text, `"seconds":60`) {
		t.Errorf("%s %s", resp.Status, text)
	}
	resp, text = r.Ask(t, http.MethodPost, "/v1/jobs/1/lease", ben, "")
	servertest.CheckRefusal(t, "another's", resp, text, http.StatusForbidden, fault.Permission, "may not renew the lease of")
	p.Finish(1, job.Cancelled, job.ExitCode{})
	resp, text = r.Ask(t, http.MethodPost, "/v1/jobs/1/lease", anna, "")
	servertest.CheckRefusal(t, "one that has ended", resp, text, http.StatusConflict, fault.Conflict, "has ended: it is CANCELLED")
	p.Fill(t, 1, "anna", 2001, nil)
	resp, text = r.Ask(t, http.MethodPost, "/v1/jobs/2/lease", anna, "")
	servertest.CheckRefusal(t, "no allocation", resp, text, http.StatusBadRequest, fault.Invalid, "job 2 has no lease")
	for body, want := range map[string]string{
		`{"form":"allocation","dir":"/","lease":86401}`:                       "lease: 24h0m1s is not between 1s and 24h0m0s",
		`{"form":"allocation","dir":"/","command":["x"]}`:                     "an allocation runs no command",
		`{"form":"allocation","dir":"/","args":["--array=1-2"]}`:              "an allocation cannot be an array",
		`{"form":"command","dir":"/","command":["x"],"lease":60}`:             "lease goes with the form allocation",
		`{"form":"sbatch","dir":"/","text":"#!/bin/sh\n","client":"/socket"}`: "step, client and kill_on_bad_exit go with the form command",
	} {
		resp, text := r.Ask(t, http.MethodPost, "/v1/jobs", anna, body)
		servertest.CheckRefusal(t, body, resp, text, http.StatusBadRequest, fault.Invalid, want)
	}
	if v := p.Get(1); v.Job.Spec.Program.Lease != time.Minute || v.Job.Spec.Requeue {
		t.Errorf("submitted as %+v", v.Job.Spec)
	}
}
