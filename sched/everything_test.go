package sched_test

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// everything is a policy with each part of the rules at work on a fleet of so many
// nodes of 8 GPUs: multifactor priority over usage that decays by Fair Tree; 4
// divisions of 4 teams with quotas that borrow from each other within a division and
// beyond; limits of accounts, users and QOS, some of which are reached; reservations
// for the first job and 10 more; a licence that is scarce; preemption by QOS. Topology
// is that of the nodes: gangs keep to few leaves.
func everything(nodes int) *account.Policy {
	gpus := resource.Amount(nodes) * 8 * 1000
	number := func(n int) *int64 { x := int64(n); return &x }
	p := &account.Policy{
		Priority:   account.Weights{Age: 1000, FairShare: 10000, JobSize: 500, Partition: 1000, QOS: 5000, TRES: map[string]uint32{"gpu": 200}},
		Backfill:   account.Backfill{Reservations: 10},
		Preemption: account.Preemption{By: []string{"qos"}, Mode: account.PreemptRequeue, Exempt: account.Duration(10 * time.Minute), Grace: account.Duration(30 * time.Second)},
		Flavors:    []account.Flavor{{Name: "h100", GPUType: "h100"}},
		Partitions: []account.Partition{{Name: "gpu", Priority: 10}},
		Licenses:   []account.License{{Name: "solver", Count: int64(max(nodes/20, 1))}},
		QOS: []account.QOS{
			{Name: "normal", Priority: 10},
			{Name: "high", Priority: 100, Preempts: []string{"low"}, Limits: account.Limits{User: account.TRES{"gpu": max(gpus/100, 64_000)}}},
			{Name: "low", Limits: account.Limits{Group: account.TRES{"gpu": gpus / 4}}},
		},
		Accounts: []account.Account{{Name: "site", Quota: &account.Quota{}}},
	}
	for d := range 4 {
		division := fmt.Sprintf("division%d", d)
		p.Accounts = append(p.Accounts, account.Account{Name: division, Parent: "site", Shares: account.Shares(d + 1), Quota: &account.Quota{}})
		for t := range 4 {
			team := account.Account{
				Name: fmt.Sprintf("team%d", 4*d+t), Parent: division, Shares: account.Shares(t + 1),
				Limits: account.Limits{Group: account.TRES{"gpu": gpus / 4}, GroupRunMinutes: account.TRES{"gpu": gpus * 60 * 24}},
				Quota: &account.Quota{Flavors: []account.FlavorQuota{
					{Flavor: "h100", Resources: []account.ResourceQuota{{Name: "gpu", Nominal: gpus / 16}}},
				}},
			}
			for u := range 4 {
				team.Users = append(team.Users, account.User{Name: fmt.Sprintf("user%d", 4*(4*d+t)+u), Limits: account.Limits{GroupJobs: number(max(nodes/4, 8))}})
			}
			p.Accounts = append(p.Accounts, team)
		}
	}
	return p
}

// own draws whose a job is.
func (s *steadily) own(k *kindOfSpec) {
	k.user = s.r.IntN(64)
	if s.r.IntN(4) > 0 {
		k.user /= 2 // some have more to do than others
	}
	switch x := s.r.IntN(20); {
	case x == 0:
		k.qos = "high"
	case x < 4:
		k.qos = "low"
	default:
		k.qos = "normal"
	}
	k.licensed = s.r.IntN(50) == 0
}

// name has a job belong to somebody whom everything knows.
func (k kindOfSpec) name(spec *job.Spec) {
	spec.Owner.User, spec.Account, spec.Partitions = fmt.Sprintf("user%d", k.user), fmt.Sprintf("team%d", k.user/4), []string{"gpu"}
	spec.QOS, spec.Requeue = k.qos, true
	if k.licensed {
		spec.Licenses = "solver"
	}
}

// TestSteadilyNobodyIsForgotten runs what the benchmarks measure, smaller, and checks
// the core's invariants and that a second look at the state with nothing remembered
// decides nothing.
func TestSteadilyNobodyIsForgotten(t *testing.T) {
	for _, x := range []struct {
		name   string
		policy *account.Policy
	}{
		{"the head alone", nil},
		{"ten more", &account.Policy{Backfill: account.Backfill{Reservations: 10}}},
		{"everything", everything(64)},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := newSteadily(64, 400, x.policy)
			all := fnv.New64a()
			preempted := 0
			s.watch = func(_ []sched.Event, out []sched.Decision) {
				for _, d := range out {
					if w, ok := d.(sched.Wait); ok && w.Why.Code == reason.Priority {
						w.Why.Ahead, w.Why.Job = 1, 1 // how many are before it is not always counted
						d = w
					}
					fmt.Fprintf(all, "%+v\n", d)
					if _, ok := d.(sched.Preempt); ok {
						preempted++
					}
				}
			}
			s.fill()
			for i := range 600 {
				s.step()
				if i%20 > 0 {
					continue
				}
				if err := s.core.Check(); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				if out := s.core.Recheck(s.now); len(out) > 0 {
					t.Fatalf("step %d: a second look decides %+v", i, out)
				}
			}
			t.Logf("%d starts, %d preempted, decisions %x", s.started, preempted, all.Sum64())
		})
	}
}
