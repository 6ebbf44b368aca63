package sched_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/limit"
)

// aging is a slow twin of who grows older: it goes through all jobs each time, and asks
// the oracle of limits whether one more job may run, with those that grow older as
// what runs and the limits on growing older as those on running.
type aging struct {
	since   map[job.ID]int64 // second since when; missing: it does not
	shown   map[job.ID]bool  // a tick has seen it
	waiters []waiter
}

// grow follows events, and then the tick if there is one.
func (o *ordered) grow(events []sched.Event, ticked bool) {
	for _, e := range events {
		switch e := e.(type) {
		case sched.Submitted:
			since, had := o.aging.since[e.Job]
			if o.forget(e.Job); !had {
				since = o.second()
			}
			o.waiters = append(o.waiters, waiter{e.Job, e.At, e.Spec})
			o.try(e.Job, e.Spec, since, true)
		case sched.Withdrawn:
			o.forget(e.Job)
		case sched.Blocked:
			o.forget(e.Job)
		case sched.Unblocked:
			if q := o.queue[e.Job]; q.blocked {
				o.waiters = append(o.waiters, waiter{e.Job, q.At, q.Spec})
				o.try(e.Job, q.Spec, o.second(), true)
			}
		case sched.PolicySet:
			old := o.aging
			o.aging = aging{since: map[job.ID]int64{}, shown: map[job.ID]bool{}, waiters: old.waiters}
			o.sortWaiters()
			for _, had := range []bool{true, false} {
				for _, w := range o.waiters {
					if since, has := old.since[w.id]; has == had {
						if !has {
							since = o.second()
						}
						o.try(w.id, w.spec, since, true)
					}
				}
			}
		}
		o.promote()
	}
	if ticked {
		for id := range o.aging.since {
			o.shown[id] = true
		}
	}
}

type waiter struct {
	id   job.ID
	at   sched.Instant
	spec *job.Spec
}

func (o *ordered) sortWaiters() {
	slices.SortFunc(o.waiters, func(a, b waiter) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
}

// leave follows those that have started.
func (o *ordered) leave() {
	for _, w := range slices.Clone(o.waiters) {
		if o.queue[w.id] == nil {
			o.forget(w.id)
		}
	}
	o.promote()
}

func (o *ordered) forget(id job.ID) {
	delete(o.aging.since, id)
	delete(o.shown, id)
	o.waiters = slices.DeleteFunc(o.waiters, func(w waiter) bool { return w.id == id })
}

// promote gives places to those who wait for one.
func (o *ordered) promote() {
	o.sortWaiters()
	for _, w := range o.waiters {
		if _, has := o.aging.since[w.id]; !has {
			o.try(w.id, w.spec, o.second(), false)
		}
	}
}

// try lets a job grow older if the limits allow it.
func (o *ordered) try(id job.ID, spec *job.Spec, since int64, shown bool) {
	s := limit.Slow{Policy: asRunning(o.policy)}
	for _, w := range o.waiters {
		if _, has := o.aging.since[w.id]; has && w.id != id {
			s.Running = append(s.Running, limit.SlowJob{Key: keyOf(w.spec)})
		}
	}
	if o.policy.Priority.Age == 0 || slices.Contains(o.policy.Priority.Flags, "accrue_always") || len(s.Blocked(&limit.SlowJob{Key: keyOf(spec)})) == 0 {
		o.aging.since[id] = since
		if shown {
			o.shown[id] = true
		}
	}
}

// asRunning is a policy whose limits on running jobs are those on growing older.
func asRunning(p *account.Policy) *account.Policy {
	of := func(l account.Limits) account.Limits {
		return account.Limits{GroupJobs: l.GroupAccruing, Jobs: l.Accruing, UserJobs: l.UserAccruing, AcctJobs: l.AcctAccruing}
	}
	out := &account.Policy{}
	for _, x := range p.Partitions {
		out.Partitions = append(out.Partitions, account.Partition{Name: x.Name, QOS: x.QOS})
	}
	for _, a := range p.Accounts {
		a.Limits = of(a.Limits)
		a.Users = slices.Clone(a.Users)
		for i := range a.Users {
			a.Users[i].Limits = of(a.Users[i].Limits)
		}
		out.Accounts = append(out.Accounts, a)
	}
	for _, q := range p.QOS {
		q.Limits = of(q.Limits)
		out.QOS = append(out.QOS, q)
	}
	return out
}

// TestOnlySoManyGrowOlder: of three jobs of one user two grow older; the third does when
// the first has left, from then on, and stands behind until it has.
func TestOnlySoManyGrowOlder(t *testing.T) {
	two := int64(2)
	p := &account.Policy{
		Priority:  account.Weights{Age: 1000, MaxAge: account.Duration(100 * time.Second)},
		FairShare: account.FairShare{Period: account.Duration(time.Second)},
		Accounts:  []account.Account{{Name: "a", Users: []account.User{{Name: "u", Limits: account.Limits{Accruing: &two}}, {Name: "v"}}}},
	}
	c := sched.New(sched.Config{})
	at := sched.Instant(time.Hour)
	submit := func(id job.ID, user string) sched.Event {
		return sched.Submitted{Job: id, At: at, Spec: &job.Spec{Account: "a", Owner: job.Owner{User: user}, Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}}}}
	}
	points := func(want ...int64) {
		t.Helper()
		for i, w := range want {
			if got, ok := c.Priority(job.ID(i + 1)); w != 0 && (!ok || got != w) {
				t.Errorf("at %v job %d has priority %d, want %d", time.Duration(at), i+1, got, w)
			}
		}
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	}
	c.Step(at, sched.PolicySet{Policy: p}, submit(1, "u"), submit(2, "u"), submit(3, "u"), submit(4, "v"))
	at += sched.Instant(10 * time.Second)
	c.Step(at)
	points(100, 100, 1, 100)
	if b, _ := c.Explain(3); b.Ageless != "user u in account a: 2 of 2 waiting jobs grow older" || b.Eligible != 0 {
		t.Errorf("job 3 is said to stand so: %+v", b)
	}
	c.Step(at, sched.Withdrawn{Job: 1})
	at += sched.Instant(10 * time.Second)
	c.Step(at)
	points(0, 200, 100, 200)
}
