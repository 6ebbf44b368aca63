package limit_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/limit"
)

func number(n int64) *int64 { return &n }

// TestTheFirstDefinitionWins is Slurm's own example: the partition's QOS allows 20
// running jobs, the user's association 4 running and 50 submitted; 20 and 50 hold.
func TestTheFirstDefinitionWins(t *testing.T) {
	p := &account.Policy{
		Accounts:   []account.Account{{Name: "a", Users: []account.User{{Name: "u", Limits: account.Limits{Jobs: number(4), Submitted: number(50)}}}}},
		QOS:        []account.QOS{{Name: "x", Limits: account.Limits{UserJobs: number(20)}}},
		Partitions: []account.Partition{{Name: "p", QOS: "x"}},
	}
	r := limit.New(p, 0).Rules(limit.Key{Account: "a", User: "u", Partition: "p"})
	if len(r.Checks) != 1 || r.Checks[0].Bound != 20 || len(r.Door) != 1 || r.Door[0].Bound != 50 {
		t.Errorf("limits of a start %+v, of a submission %+v", r.Checks, r.Door)
	}
}

// TestAQOSCountsWhatItDoesNotDecide: a job for which the partition's QOS decides
// counts in its own QOS all the same.
func TestAQOSCountsWhatItDoesNotDecide(t *testing.T) {
	cpus := func(n int) account.Limits { return account.Limits{Group: account.TRES{"cpu": resource.CPUs(n)}} }
	p := &account.Policy{
		QOS:        []account.QOS{{Name: "x", Limits: cpus(8)}, {Name: "y", Limits: cpus(2)}},
		Partitions: []account.Partition{{Name: "p", QOS: "x"}},
	}
	b := limit.New(p, 0)
	use := func() *limit.Use {
		u := &limit.Use{Seconds: 1}
		b.Table.Clear(u)
		b.Table.Least(u, 1, resource.Vector{CPU: resource.CPUs(2)}, resource.Vector{CPU: resource.CPUs(2)})
		return u
	}
	both, own := b.Rules(limit.Key{Partition: "p", QOS: "y"}), b.Rules(limit.Key{QOS: "y"})
	if i := b.Blocked(own, own.Needs(nil, use())); i >= 0 {
		t.Errorf("blocked by %+v", own.Checks[i])
	}
	h := b.Hold(both, use(), 1)
	if i := b.Blocked(both, both.Needs(nil, use())); i >= 0 {
		t.Errorf("the limit of its QOS holds in the partition too: %+v", both.Checks[i])
	}
	if b.Blocked(own, own.Needs(nil, use())) < 0 {
		t.Error("QOS y has 2 of 2 CPUs in use, and one more job passes")
	}
	b.Release(h)
	if fell := b.Fell(); len(fell) != 2 || b.Blocked(own, own.Needs(nil, use())) >= 0 {
		t.Errorf("counters %v fell", fell)
	}
}
