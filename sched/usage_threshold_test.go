package sched_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
)

// TestAShareBelowTheThresholdWaits: u has used most, so jobs of the QOS with a threshold
// wait for her, though there is room; jobs of others do not wait, nor do hers without the
// QOS. When what she used has become less than what v has, a tick starts the job.
func TestAShareBelowTheThresholdWaits(t *testing.T) {
	least := 0.75
	p := &account.Policy{
		FairShare: account.FairShare{Period: account.Duration(10 * time.Second), HalfLife: account.Duration(20 * time.Second)},
		Accounts:  []account.Account{{Name: "a", Users: []account.User{{Name: "u"}, {Name: "v"}}}},
		QOS:       []account.QOS{{Name: "x", UsageThreshold: &least}},
	}
	c := sched.New(sched.Config{})
	start := sched.Instant(time.Hour)
	at := func(seconds int) sched.Instant { return start + sched.Instant(time.Duration(seconds)*time.Second) }
	submit := func(id job.ID, user, qos string, limit time.Duration) sched.Event {
		spec := of("a", user, gang(1, 1, 1, limit))
		spec.QOS = qos
		return sched.Submitted{Job: id, Spec: spec, At: at(int(id))}
	}
	started := map[job.ID]bool{}
	step := func(seconds int, events ...sched.Event) {
		for _, d := range c.Step(at(seconds), events...) {
			if s, ok := d.(sched.Start); ok {
				started[s.Job] = true
			}
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	step(0, sched.PolicySet{Policy: p}, sched.NodeSet{Node: node("n", 8)}, submit(1, "u", "", time.Hour))
	step(30, sched.Released{Job: 1}, submit(2, "u", "x", time.Hour), submit(3, "u", "", time.Hour), submit(4, "v", "x", time.Hour))
	if started[2] || !started[3] || !started[4] {
		t.Fatalf("started %v, want 3 and 4", started)
	}
	why := c.Reasons(at(30), 2)
	if len(why) == 0 || why[0].Code != reason.Threshold || why[0].Code.Slurm() != "QOSUsageThreshold" ||
		!strings.Contains(why[0].String(), "the fair share of user u in account a is 0.5, QOS x asks for 0.75") {
		t.Errorf("it waits because: %v", why)
	}
	step(31, sched.Released{Job: 3})
	for seconds := 32; !started[2]; seconds++ {
		if next := c.Next(); next == 0 || seconds > 600 {
			t.Fatalf("at %d s nobody will look at job 2 again: %v", seconds, c.Reasons(at(seconds), 2))
		} else if next <= at(seconds) {
			step(seconds)
		}
	}
}
