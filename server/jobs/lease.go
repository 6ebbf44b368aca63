package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func (s *Service) registerLease() {
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/jobs/{job}/lease", Verb: auth.Lease, ID: "lease", Tag: "jobs", Owned: true,
		Summary: "Renew the lease of an allocation",
		About: "An allocation that was submitted with a lease ends when nobody has renewed it for that long, in the queue or on its nodes. " +
			"A restart of the server begins every lease anew. Renewals are not written to the journal.",
	}, func(c *call, in *JobPath) (*api.Lease, error) { return s.renewLease(c, in.Job) })
}

// renewLease begins the lease of an allocation anew.
func (s *Service) renewLease(c *call, name string) (*api.Lease, error) {
	v, err := c.findJob(name, auth.Lease)
	if err != nil {
		return nil, err
	}
	p := v.Job.Spec.Program
	switch {
	case v.Job.State.Final():
		return nil, fault.New(fault.Conflict, "job %s has ended: it is %s%s", v.Job.Name(), v.Job.State, because(v.Message)).Advise("cox show %s", v.Job.Name())
	case p.Kind != job.BareAllocation || p.Lease == 0:
		return nil, fault.New(fault.Invalid, "job %s has no lease: it ends by itself, at its time limit or when it is cancelled", v.Job.Name()).Advise("only an allocation that was submitted with a lease needs it renewed")
	}
	s.leases.grantLease(v.Job.ID, p.Lease)
	return &api.Lease{Seconds: int64(p.Lease / time.Second), State: v.Job.State.String()}, nil
}

// because is a message behind the words that it explains.
func because(message string) string {
	if message == "" {
		return ""
	}
	return ", " + message
}

// leaseKeeper ends allocations whose client was not heard of for the time of their lease, and
// those that nobody used for the site's idle limit. What it knows is in memory: a server that
// starts gives every allocation its whole time again.
type leaseKeeper struct {
	plane  Plane
	log    *slog.Logger
	now    func() time.Time
	idle   time.Duration // after which an unused allocation ends; 0: never
	cancel context.CancelFunc
	done   chan struct{}
	wake   chan struct{} // has room for one

	mu   sync.Mutex
	kept map[job.ID]*keptAllocation
}

// keptAllocation is one allocation that has not ended.
type keptAllocation struct {
	lease    time.Duration // 0: it has none
	until    time.Time     // when its lease ends
	commands int           // that run in it through the API
	used     time.Time     // when the last of them ended, or it was first seen
}

// leaseLook is how often allocations are looked at for their idle limit, and after an ending
// that failed.
const leaseLook = 2 * time.Second

// newLeaseKeeper begins to watch over the allocations that there are.
func newLeaseKeeper(p Plane, log *slog.Logger, now func() time.Time, idle time.Duration) *leaseKeeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &leaseKeeper{plane: p, log: log, now: now, idle: idle, cancel: cancel, done: make(chan struct{}), wake: make(chan struct{}, 1), kept: map[job.ID]*keptAllocation{}}
	k.plane.Scan(query.Filter{Live: true}, func(v *state.View) bool {
		k.keepSubmitted(v.Job.ID, &v.Job.Spec.Program)
		return true
	})
	go k.main(ctx)
	return k
}

func (k *leaseKeeper) close() {
	k.cancel()
	<-k.done
}

// keepSubmitted watches over a job that was just accepted, if it is an allocation.
func (k *leaseKeeper) keepSubmitted(id job.ID, p *job.Program) {
	if p.Kind == job.BareAllocation && (p.Lease > 0 || k.idle > 0) {
		k.grantLease(id, p.Lease)
	}
}

// grantLease begins a lease, or begins it anew.
func (k *leaseKeeper) grantLease(id job.ID, lease time.Duration) {
	k.mu.Lock()
	now := k.now()
	a := k.kept[id]
	if a == nil {
		a = &keptAllocation{used: now}
		k.kept[id] = a
	}
	a.lease, a.until = lease, now.Add(lease)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// beginUse counts a command in an allocation, until the returned function is called.
func (k *leaseKeeper) beginUse(id job.ID) (end func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.kept[id]
	if a == nil {
		return func() {}
	}
	a.commands++
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		a.commands--
		a.used = k.now()
	}
}

// main ends allocations when their time has come.
func (k *leaseKeeper) main(ctx context.Context) {
	defer close(k.done)
	for {
		pause, some := k.untilNext()
		var due <-chan time.Time
		var t *time.Timer
		if some {
			t = time.NewTimer(pause)
			due = t.C
		}
		select {
		case <-ctx.Done():
		case <-k.wake: // renewals may come faster than any timer ends
			k.endOverdue(ctx)
		case <-due:
			k.endOverdue(ctx)
		}
		if t != nil {
			t.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// untilNext is how long nothing has to be done; false: there is no allocation.
func (k *leaseKeeper) untilNext() (pause time.Duration, some bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	for _, a := range k.kept {
		next := leaseLook
		if a.lease > 0 {
			next = a.until.Sub(now)
		} else if k.idle == 0 {
			continue
		}
		if k.idle > 0 {
			next = min(next, leaseLook)
		}
		if next = max(next, 10*time.Millisecond); !some || next < pause {
			pause, some = next, true
		}
	}
	return pause, some
}

// endOverdue ends the allocations whose lease or idle limit is over, and forgets those that have
// ended.
func (k *leaseKeeper) endOverdue(ctx context.Context) {
	for _, id := range k.candidates() {
		v, err := k.plane.Job(ctx, id)
		switch {
		case fault.KindOf(err) == fault.NotFound, err == nil && v.Job.State.Final():
			k.forget(id)
			continue
		case err != nil:
			continue
		}
		why := k.whyEnd(&v)
		if why == "" {
			continue
		}
		errs, err := k.plane.Change(ctx, job.Actor{}, []job.ID{id}, control.Cancel{Grace: -1, Message: why})
		if err == nil && len(errs) > 0 {
			err = errs[0]
		}
		if err != nil {
			k.log.Warn("an allocation whose time is over could not be ended", "job", v.Job.Name(), "error", err)
			k.postpone(id)
			continue
		}
		k.log.Info("ended an allocation", "job", v.Job.Name(), "why", why)
		k.forget(id)
	}
}

// candidates are the allocations that have to be looked at now.
func (k *leaseKeeper) candidates() (ids []job.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	for id, a := range k.kept {
		if a.lease > 0 && !now.Before(a.until) || k.idle > 0 && a.commands == 0 && now.Sub(a.used) >= k.idle {
			ids = append(ids, id)
		}
	}
	return ids
}

func (k *leaseKeeper) forget(id job.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kept, id)
}

// postpone has an allocation looked at again later.
func (k *leaseKeeper) postpone(id job.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if a := k.kept[id]; a != nil {
		a.until = k.now().Add(leaseLook)
	}
}

// isHeldByClient reports whether an allocation ends with its client by itself: its first node is of
// this machine and connected to the client, which may be stopped (Ctrl-Z) for hours.
func isHeldByClient(v *state.View) bool {
	return v.Job.State == job.Running && v.Job.Spec.Program.Client != "" && v.Pool == "local"
}

// whyEnd says why an allocation is to end now; empty: it is not.
func (k *leaseKeeper) whyEnd(v *state.View) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	a, now := k.kept[v.Job.ID], k.now()
	if a != nil && a.lease > 0 && !now.Before(a.until) && isHeldByClient(v) {
		a.until = now.Add(a.lease)
	}
	switch {
	case a == nil:
		return ""
	case a.lease > 0 && !now.Before(a.until):
		return fmt.Sprintf("its client was not heard of for %s", v.Job.Spec.Program.Lease)
	case k.idle == 0 || a.commands > 0 || v.Job.State != job.Running:
		return ""
	}
	if used, running := lastUse(&v.Report); running {
		a.used = now
	} else if used.After(a.used) {
		a.used = used
	}
	if now.Sub(a.used) < k.idle {
		return ""
	}
	return fmt.Sprintf("nothing ran in it for %s, the idle limit of allocations here", k.idle)
}

// lastUse is when something last ran in an allocation: the end of its newest step, or its start.
func lastUse(r *engine.Report) (at time.Time, running bool) {
	at = r.Started
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Step == engine.BatchStep {
			continue
		}
		if t.Running {
			return at, true
		}
		if t.Ended.After(at) {
			at = t.Ended
		}
	}
	return at, false
}
