package sched_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// TestTheFirstLicenceThatIsFree: of alternatives a job has the first one, the next where
// that is taken, none where a limit on it says so; it waits for all of them, and starts
// with the one that comes back. A restart knows which one it has.
//
// Seen to fail with: the first alternative held whichever was chosen, only the first
// counter looked at, License left out of Restored.
func TestTheFirstLicenceThatIsFree(t *testing.T) {
	p := &account.Policy{
		Licenses: []account.License{{Name: "a", Count: 1}, {Name: "b", Count: 2}, {Name: "c", Count: 9}},
		QOS:      []account.QOS{{Name: "x", Limits: account.Limits{Group: account.TRES{"license/c": 0}}}},
	}
	at := func(second int) sched.Instant { return sched.Instant(second) * sched.Instant(time.Second) }
	c := sched.New(sched.Config{})
	spec := gang(1, 1, 1, time.Hour)
	spec.Licenses, spec.QOS = "c|a|b:2", "x"
	submit := func(id job.ID) sched.Event { return sched.Submitted{Job: id, Spec: spec, At: sched.Instant(id)} }
	starts := func(now sched.Instant, events ...sched.Event) (got []sched.Start) {
		t.Helper()
		for _, d := range c.Step(now, events...) {
			if s, ok := d.(sched.Start); ok {
				got = append(got, s)
			}
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := starts(at(0), sched.PolicySet{Policy: p}, sched.NodeSet{Node: node("n", 8)}, submit(1), submit(2), submit(3))
	if len(got) != 2 || got[0].License != "a" || got[1].License != "b:2" {
		t.Fatalf("starts %+v, want 1 with a and 2 with b", got)
	}
	second := got[1]
	if got = starts(at(1), sched.Released{Job: 2}); len(got) != 1 || got[0].Job != 3 || got[0].License != "b:2" {
		t.Fatalf("starts %+v when b comes back, want 3 with b", got)
	}
	third := got[0]
	c = sched.New(sched.Config{})
	got = starts(at(2), sched.PolicySet{Policy: p}, sched.NodeSet{Node: node("n", 8)}, submit(4),
		sched.Restored{Job: 3, Spec: spec, Claims: third.Claims, Until: third.Until, Began: at(1), License: third.License})
	if len(got) != 1 || got[0].License != "a" {
		t.Fatalf("after a restart starts %+v, want 4 with a", got)
	}
	c = sched.Load(c.Snapshot().Sort())
	if got = starts(at(3), submit(5), submit(6)); len(got) != 0 {
		t.Fatalf("with all licences held starts %+v", got)
	}
	if got = starts(at(4), sched.Released{Job: 3}); len(got) != 1 || got[0].License != second.License {
		t.Fatalf("starts %+v when b comes back", got)
	}
}

// TestPartsOfTheFleet: a QOS with relative limits bounds parts of what there is, of the
// partition whose QOS it is, cut off to whole devices, and follows the fleet.
//
// Seen to fail with: the cluster taken for the partition, limits that stay as they were
// when the fleet grows.
func TestPartsOfTheFleet(t *testing.T) {
	half := account.Limits{Group: account.TRES{"gpu": 50_000}}
	p := &account.Policy{
		QOS:        []account.QOS{{Name: "x", Flags: []string{account.FlagRelative}, Limits: half}, {Name: "y", Flags: []string{account.FlagRelative}, Limits: half}},
		Partitions: []account.Partition{{Name: "p", QOS: "x"}},
	}
	c := sched.New(sched.Config{})
	in := func(name string, gpus int, parts ...string) sched.Event {
		n := node(name, gpus)
		n.Parts = parts
		return sched.NodeSet{Node: n}
	}
	one := func(qos string, parts ...string) *job.Spec {
		s := gang(1, 1, 1, time.Hour)
		s.QOS, s.Partitions = qos, parts
		return s
	}
	id := job.ID(0)
	started := func(n int, spec *job.Spec, events ...sched.Event) (starts int) {
		t.Helper()
		for range n {
			id++
			events = append(events, sched.Submitted{Job: id, Spec: spec, At: sched.Instant(id)})
		}
		for _, d := range c.Step(sched.Instant(id)*sched.Instant(time.Second), events...) {
			if _, ok := d.(sched.Start); ok {
				starts++
			}
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		return starts
	}
	if n := started(9, one("", "p"), sched.PolicySet{Policy: p}, in("a", 5, "p"), in("b", 9, "q")); n != 2 {
		t.Errorf("%d jobs of one GPU start in p, which has 5: half of that is 2", n)
	}
	if n := started(9, one("y")); n != 7 {
		t.Errorf("%d jobs of one GPU start with QOS y: half of 14 is 7", n)
	}
	if n := started(0, nil, in("c", 4, "p")); n != 2+2 { // 4 of 9 in p, 9 of 18 in all
		t.Errorf("%d more start when p grows to 9 GPUs", n)
	}
}
