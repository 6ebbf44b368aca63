package sched_test

import (
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
)

// shared is a policy by which past usage alone orders, of two accounts with a user each
// and one that is open to everybody.
func shared() *account.Policy {
	return &account.Policy{
		Priority: account.Weights{FairShare: 1000},
		Accounts: []account.Account{{Name: "a", Users: []account.User{{Name: "u"}}}, {Name: "b", Users: []account.User{{Name: "v"}}}, {Name: "guests"}},
	}
}

func of(acct, user string, s *job.Spec) *job.Spec {
	s.Account, s.Owner.User = acct, user
	return s
}

// promisedTo is who was promised a start last.
func promisedTo(out []sched.Decision) (id job.ID) {
	for _, d := range out {
		if p, ok := d.(sched.Promise); ok && len(p.Nodes) > 0 {
			id = p.Job
		}
	}
	return id
}

// TestTickChangesTheHead: u's job runs, so after a while v's job goes before u's next
// one although that came first; the core wants to be stepped for it, and says what is
// to be kept. A core that is told what was kept orders alike.
//
// Seen to fail with: classes that are not put in order at a tick.
func TestTickChangesTheHead(t *testing.T) {
	at := func(minutes int) sched.Instant {
		return sched.Instant(time.Hour) + sched.Instant(minutes)*sched.Instant(time.Minute)
	}
	c := sched.New(sched.Config{})
	one := sched.Submitted{Job: 1, Spec: of("a", "u", gang(1, 8, 1, 3*time.Hour))}
	two := sched.Submitted{Job: 2, Spec: of("a", "u", gang(1, 8, 1, time.Hour)), At: 2}
	three := sched.Submitted{Job: 3, Spec: of("b", "v", gang(1, 8, 1, time.Hour)), At: 3}
	out := c.Step(at(0), sched.PolicySet{Policy: shared()}, sched.NodeSet{Node: node("n", 8)}, one, two, three)
	began := out[1].(sched.Start) // after the word that usage is counted from now on
	if got := promisedTo(out); got != 2 {
		t.Fatalf("at first job %d has the promise, want job 2: %+v", got, out)
	}
	if next := c.Next(); next != at(5) {
		t.Fatalf("the core wants to be stepped at %d, want %d", next, at(5))
	}
	out = c.Step(at(5))
	if got := promisedTo(out); got != 3 {
		t.Fatalf("after a tick job %d has the promise, want job 3: %+v", got, out)
	}
	if u, ok := out[0].(sched.Used); !ok || u.At != int64(at(5))/int64(time.Second) {
		t.Errorf("usage is not told first: %+v", out)
	}
	second, entries := c.Usage()
	seconds := 300 * 8 * powerOf(fair.Remains(0), 300) // 8 CPUs
	for _, e := range entries {
		if e.Account != "root" && e.Account != "a" || e.Raw/seconds < 0.999999 || e.Raw/seconds > 1.000001 {
			t.Errorf("%+v has used that, want %v of root, a and u", e, seconds)
		}
	}
	if len(entries) != 3 {
		t.Errorf("%d entries: %+v", len(entries), entries)
	}
	if s, _ := c.Shares(); s[2].Factor != 1.0/2 || s[4].Factor != 1 {
		t.Errorf("shares %+v", s)
	}

	d := sched.New(sched.Config{})
	d.Step(at(6), sched.PolicySet{Policy: shared()}, sched.NodeSet{Node: node("n", 8)}, sched.UsageSet{At: second, Entries: entries})
	d.Step(at(6), sched.Restored{Job: 1, Spec: one.Spec, Claims: began.Claims, Until: began.Until, Began: at(0)}, two, three)
	if next := d.Next(); next != at(10) {
		t.Errorf("the restarted core wants to be stepped at %d, want %d", next, at(10))
	}
	for _, id := range []job.ID{2, 3} {
		was, _ := c.Priority(id)
		if is, ok := d.Priority(id); !ok || is != was {
			t.Errorf("restarted, job %d has priority %d, it had %d", id, is, was)
		}
	}
	c.Step(at(10))
	d.Step(at(10))
	_, x := c.Usage()
	_, y := d.Usage()
	if string(encode(x)) != string(encode(y)) {
		t.Errorf("%s was used, and where it restarted %s", encode(x), encode(y))
	}
}

func powerOf(x float64, n int) float64 {
	p := 1.0
	for range n {
		p *= x
	}
	return p
}

// TestGuestsShareAnOpenAccount: whoever comes has a share of his own from then on, and
// an estimate for somebody else gives nobody one.
func TestGuestsShareAnOpenAccount(t *testing.T) {
	c := sched.New(sched.Config{})
	at := sched.Instant(time.Hour)
	c.Step(at, sched.PolicySet{Policy: shared()}, sched.NodeSet{Node: node("n", 8)},
		sched.Submitted{Job: 1, Spec: of("guests", "x", gang(1, 8, 1, time.Hour))},
		sched.Submitted{Job: 2, Spec: of("guests", "y", gang(1, 8, 1, time.Hour))})
	c.Estimate(at, of("guests", "z", gang(1, 1, 1, time.Hour)), 0)
	list, _ := c.Shares()
	guests := 0
	for _, s := range list {
		if s.Guest {
			guests++
		}
	}
	if guests != 2 {
		t.Errorf("%d guests, want 2: %+v", guests, list)
	}
	c.Step(at + sched.Instant(10*time.Minute)) // x has used something
	list, _ = c.Shares()
	x, y := list[len(list)-2], list[len(list)-1]
	if x.User != "x" || y.User != "y" || y.Factor != 0.5 || x.Factor != 0.25 {
		t.Errorf("x stands %+v, y %+v; u and v, who used nothing, are before both", x, y)
	}
}

// TestNoRulesNoTicks: without rules of order the core never wants to be stepped.
func TestNoRulesNoTicks(t *testing.T) {
	c := sched.New(sched.Config{})
	c.Step(1, sched.PolicySet{Policy: &account.Policy{}}, sched.NodeSet{Node: node("n", 8)}, sched.Submitted{Job: 1, Spec: gang(1, 8, 1, time.Hour), Priority: 7})
	if next := c.Next(); next != 0 {
		t.Errorf("the core wants to be stepped at %d", next)
	}
	if list, _ := c.Shares(); list != nil {
		t.Errorf("shares %+v", list)
	}
}

// TestReadersWriteNothing: several may ask for priorities and shares at once while no
// step is made, also after a tick that has had most classes reckoned anew by nobody.
//
// Seen to fail, by the race detector, with: Priority keeping what it reckons.
func TestReadersWriteNothing(t *testing.T) {
	c := sched.New(sched.Config{})
	events := []sched.Event{sched.PolicySet{Policy: shared()}, sched.NodeSet{Node: node("n", 8)}}
	for id := range 20 {
		s := of([]string{"a", "b"}[id%2], []string{"u", "v"}[id%2], gang(1, 8, 1, time.Duration(id+1)*time.Hour))
		events = append(events, sched.Submitted{Job: job.ID(id + 1), Spec: s, At: sched.Instant(id)}, sched.Blocked{Job: job.ID(id + 1), Why: reason.Reason{Code: reason.HeldUser}})
	}
	at := sched.Instant(time.Hour)
	c.Step(at, events...)
	c.Step(at + sched.Instant(5*time.Minute))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for id := range 20 {
				is, queued := c.Priority(job.ID(id + 1))
				if told, ok := c.Explain(job.ID(id + 1)); ok != queued || told.Priority != is {
					t.Errorf("job %d has priority %d, and %d as it comes about", id+1, is, told.Priority)
				}
			}
			c.Shares()
		})
	}
	all.Wait()
}
