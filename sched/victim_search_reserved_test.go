package sched_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// site is two nodes, a and b, with a job of QOS lo on each for 25 minutes, under
// rules by which hi takes from lo.
func site(t *testing.T, p *account.Policy) *sched.Core {
	t.Helper()
	p.QOS = []account.QOS{{Name: "hi", Preempts: []string{"lo"}}, {Name: "mid"}, {Name: "lo"}}
	p.Preemption.By = []string{"qos"}
	c := sched.New(sched.Config{})
	c.Step(atMinute(60), sched.PolicySet{Policy: p}, sched.NodeSet{Node: node("a", 8)}, sched.NodeSet{Node: node("b", 8)},
		sched.Submitted{Job: 1, Spec: as("lo", 25*time.Minute)}, sched.Submitted{Job: 2, Spec: as("lo", 25*time.Minute)})
	return c
}

func atMinute(n int) sched.Instant { return sched.Instant(time.Duration(n) * time.Minute) }

// as is a job of some QOS that takes a whole node.
func as(qos string, limit time.Duration) *job.Spec {
	s := gang(1, 8, 1, limit)
	s.QOS = qos
	return s
}

// victims lists who is taken for whom.
func victims(out []sched.Decision) map[job.ID]job.ID {
	all := map[job.ID]job.ID{}
	for _, d := range out {
		if d, ok := d.(sched.Preempt); ok {
			all[d.Job] = d.For
		}
	}
	return all
}

// TestNobodyIsTakenWhereAReservationKeepsOff: a job takes the place of another one on the
// node that is open to it, and of nobody on one whose reservation begins before it ends;
// what was freed for it and is closed when the other one has gone stays free.
//
// Seen to fail with: closeReservedNodes left out, startNominated starting without looking at reservations.
func TestNobodyIsTakenWhereAReservationKeepsOff(t *testing.T) {
	c := site(t, &account.Policy{Reservations: []account.Reservation{{
		Name: "course", Start: "1970-01-01T01:30:00Z", Duration: account.Duration(time.Hour), Nodes: []string{"a"}, Users: []string{"ann"},
	}}})
	on := map[string]job.ID{}
	for _, h := range c.Snapshot().Running {
		on[h.Claims[0].Node] = h.Job
	}
	out := c.Step(atMinute(61), sched.Submitted{Job: 3, Spec: as("hi", time.Hour), Priority: 1}, sched.Submitted{Job: 4, Spec: as("hi", time.Hour)})
	if got := victims(out); len(got) != 1 || got[on["b"]] != 3 {
		t.Fatalf("taken are %v, want %d on b for 3 alone", got, on["b"])
	}
	out = c.Step(atMinute(62), sched.Withdrawn{Job: 4}, sched.Submitted{Job: 5, Spec: as("hi", 20*time.Minute)})
	if got := victims(out); len(got) != 1 || got[on["a"]] != 5 {
		t.Fatalf("taken are %v, want %d on a for 5, which ends before the reservation begins", got, on["a"])
	}
	if out = c.Step(atMinute(75), sched.Released{Job: on["a"]}); startsNow(out, 5) {
		t.Errorf("job 5 starts on a node that is reserved before it ends: %s", encode(out))
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// TestNobodyIsTakenBeforeOneThatIsPlanned: a job behind the first one takes another's
// place only if it outranks everybody before it for whom a start is planned.
//
// Seen to fail with: outranksPlanned always true.
func TestNobodyIsTakenBeforeOneThatIsPlanned(t *testing.T) {
	for _, outranked := range []bool{true, false} {
		c := site(t, &account.Policy{Backfill: account.Backfill{Reservations: 3}})
		both, second := as("lo", time.Hour), as("lo", time.Hour)
		both.Groups[0] = gang(2, 1, 8, 0).Groups[0]
		if !outranked {
			second.QOS = "mid"
		}
		out := c.Step(atMinute(61), sched.Submitted{Job: 3, Spec: both, Priority: 9}, sched.Submitted{Job: 4, Spec: second, Priority: 8},
			sched.Submitted{Job: 5, Spec: as("hi", time.Hour)})
		if got := victims(out); (len(got) == 1) != outranked {
			t.Errorf("job 5 outranks all that are planned: %v; taken are %v", outranked, got)
		}
	}
}

// TestNobodyIsStartedToBeTakenAtOnce: where starts are planned node by node too, a job that
// outranks the one whose turn it is, and would take its place, starts instead.
//
// Seen to fail with: yield left out of seize.
func TestNobodyIsStartedToBeTakenAtOnce(t *testing.T) {
	c := site(t, &account.Policy{Backfill: account.Backfill{Reservations: 1}})
	out := c.Step(atMinute(61), sched.Released{Job: 1}, sched.Submitted{Job: 3, Spec: as("lo", time.Hour), Priority: 9}, sched.Submitted{Job: 4, Spec: as("hi", time.Hour)})
	if !startsNow(out, 4) || startsNow(out, 3) || len(victims(out)) > 0 {
		t.Errorf("want job 4 to start in the place of job 3: %s", encode(out))
	}
}

// TestAPlanIsNotKeptOnAnotherNode: a start is planned on a node, and that becomes one of
// another kind.
//
// Seen to fail with: shift leaving planned starts alone; for the head alone, leaving its plan.
func TestAPlanIsNotKeptOnAnotherNode(t *testing.T) {
	for _, more := range []int{0, 2} {
		c := sched.New(sched.Config{})
		good, spec := node("a", 8), gang(1, 8, 1, time.Hour)
		good.Features = []string{"good"}
		spec.Groups[0].Constraint.Alternatives = [][]string{{"good"}}
		spec.Groups[0].Contiguous = true // so that it is placed by search
		c.Step(atMinute(60), sched.PolicySet{Policy: &account.Policy{Backfill: account.Backfill{Reservations: more}}}, sched.NodeSet{Node: good}, sched.NodeSet{Node: node("b", 8)},
			sched.Submitted{Job: 1, Spec: spec}, sched.Submitted{Job: 2, Spec: gang(1, 8, 1, 2*time.Hour)}, sched.Submitted{Job: 3, Spec: spec})
		good.Features, good.Capacity.Memory = nil, 0
		better := node("b", 8)
		better.Features = []string{"good"}
		c.Step(atMinute(61), sched.NodeSet{Node: good}, sched.NodeSet{Node: better})
		out := c.Step(atMinute(120), sched.Released{Job: 1})
		if startsNow(out, 3) {
			t.Errorf("%d more: job 3 starts on a node that is not what it asked for: %s", more, encode(out))
		}
		if p := c.Planned(); more > 0 && (len(p) != 1 || p[0].At != atMinute(180)) {
			t.Errorf("%d more: planned is %+v, want job 3 on b", more, p)
		}
	}
}

// stopsFirst is a core with nodes a, b and c, on which job 1 stops on a, job 2 runs on b
// for long, and job 3, of an account that may hold 16 CPUs, waits for two nodes: it
// needs nobody but job 1, and c.
func stopsFirst(t *testing.T, p *account.Policy) *sched.Core {
	t.Helper()
	p.QOS = []account.QOS{{Name: "hi", Preempts: []string{"lo"}}, {Name: "lo"}}
	p.Accounts = []account.Account{{Name: "u", Limits: account.Limits{Group: account.TRES{"cpu": resource.CPUs(16)}}}, {Name: "v"}}
	c := sched.New(sched.Config{})
	held := func(id job.ID, on string, limit time.Duration) sched.Restored {
		s := as("lo", limit)
		s.Requeue = true
		return sched.Restored{Job: id, Spec: s, Claims: []fleet.Claim{{Node: on, Tasks: 1, Take: resource.Vector{CPU: resource.CPUs(8)}}}, Began: atMinute(50), Until: atMinute(60) + sched.Instant(limit), Saved: atMinute(59), Stopping: on == "a"}
	}
	waits := gang(2, 8, 1, 100*time.Minute)
	waits.QOS, waits.Account = "hi", "u"
	c.Step(atMinute(60), sched.PolicySet{Policy: p}, sched.NodeSet{Node: node("a", 8)}, sched.NodeSet{Node: node("b", 8)}, sched.NodeSet{Node: node("c", 8)},
		held(1, "a", 100*time.Minute), held(2, "b", 1000*time.Minute), sched.Submitted{Job: 3, Spec: waits, Priority: 9})
	return c
}

// arrives is what comes then: job 4, short, takes one CPU of c and with it what the limit
// of their account leaves job 3; job 5, of nobody's account, is in the way of job 3 alone.
func arrives() []sched.Event {
	short, long := gang(1, 1, 1, 5*time.Minute), gang(1, 4, 1, 1000*time.Minute)
	short.Account, long.Account = "u", "v"
	return []sched.Event{sched.Submitted{Job: 4, Spec: short}, sched.Submitted{Job: 5, Spec: long}}
}

// TestWhoIsTheFirstNoLongerKeepsNothing: the first job waits for one that goes anyway; one
// behind it uses up what their account may hold. What was planned for the first job is in
// nobody's way then, in the same step.
//
// Seen to fail (job 5 waited) where the reservation was left.
func TestWhoIsTheFirstNoLongerKeepsNothing(t *testing.T) {
	c := stopsFirst(t, &account.Policy{Preemption: account.Preemption{Defrag: account.DefragAutomatic}})
	out := c.Step(atMinute(60)+1, arrives()...)
	if !startsNow(out, 4) || !startsNow(out, 5) {
		t.Errorf("jobs 4 and 5 start: %v, %v; the first one waits for %v", startsNow(out, 4), startsNow(out, 5), c.Reasons(atMinute(60)+1, 3))
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// TestASearchForMovesIsReadAgain: that nothing moved for the first job because those are
// enough who go anyway is known to a core that was read, after others have ended too.
//
// Seen to fail where that was written only as long as nothing had changed.
func TestASearchForMovesIsReadAgain(t *testing.T) {
	c := stopsFirst(t, &account.Policy{Preemption: account.Preemption{Defrag: account.DefragAutomatic}})
	c.Step(atMinute(60)+1, sched.Saved{Job: 2, At: atMinute(60)}) // something has changed, and it is too early for another search
	other := reread(t, c)
	a, b := encode(c.Step(atMinute(60)+2, arrives()...)), encode(other.Step(atMinute(60)+2, arrives()...))
	if !bytes.Equal(a, b) {
		t.Errorf("%s\nand in the core that was read\n%s", a, b)
	}
}
