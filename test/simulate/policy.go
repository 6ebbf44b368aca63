package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// Two seeds of three have a site's rules, and most of these get others on the way.
// What usage, limits, quotas, licences and reservations are near to is what a few jobs
// of a workload hold. Where an account limits something, no QOS limits the same: which
// of them counts then is for the laws of the core to judge (sched/limit).

// rulings are the times at which the rules of a seed are set.
func (w *World) rulings(span time.Duration) (acts []Act) {
	s := w.dice.stream("rulings", "")
	if !s.one(65) {
		return nil
	}
	for i := range 1 + s.n(3) {
		name := fmt.Sprintf("p%d", i+1)
		at := s.between(0, span)
		if i == 0 {
			at = time.Duration(s.n(3)) * time.Second
		}
		rules := w.rules(w.dice.stream("rules", name))
		w.further(rules, w.dice.stream("further rules", name))
		acts = append(acts, Act{Name: name + " sets rules", At: at, Do: func(w *World) { w.rule(name, rules) }})
	}
	return acts
}

// rule asks for rules.
func (w *World) rule(name string, rules *account.Policy) {
	w.ask(name, model.Request{Verb: model.Rule, Text: name}, func(ctx context.Context, c *control.Control, a *answered) {
		_, a.err = c.SetPolicy(ctx, user, control.PolicyChange{Rules: rules, Text: name})
	})
}

// rules makes the rules of a site: a lab with two groups in it, two QOS, one licence.
func (w *World) rules(d *stream) *account.Policy {
	few := func(from, more int) *int64 {
		n := int64(from + d.n(more))
		return &n
	}
	cpus := func(from, more int) resource.Amount { return resource.CPUs(from + d.n(more)) }
	p := &account.Policy{
		FairShare: account.FairShare{HalfLife: -1, Period: account.Duration(pick(d, 10, 30, 60)) * account.Duration(time.Second)},
		Accounts:  []account.Account{{Name: "lab"}, {Name: "x", Parent: "lab"}, {Name: "y", Parent: "lab"}},
		QOS:       []account.QOS{{Name: "hi", Priority: 10}, {Name: "lo"}},
		Licenses:  []account.License{{Name: "l", Count: int64(1 + d.n(2))}},
		Backfill:  account.Backfill{Reservations: pick(d, 0, 0, 1, 3)},
	}
	if p.Backfill.Reservations == 1 {
		p.Placement = account.PlaceLearned
	}
	if d.one(50) {
		p.Priority = account.Weights{Age: 10, FairShare: 1000, QOS: 100}
	}
	if d.one(50) {
		p.Accounts[0].Limits.GroupJobs = few(2, 4)
	}
	if d.one(40) {
		p.Accounts[1].Limits.Group = account.TRES{"cpu": cpus(3, 4)}
	}
	if d.one(40) {
		p.QOS[1].Limits.UserJobs = few(1, 3)
	}
	if d.one(30) {
		p.QOS[d.n(2)].Limits.Job = account.TRES{"cpu": cpus(3, 5)}
	}
	switch d.n(4) {
	case 0, 1:
		p.QOS[0].Preempts = []string{"lo"}
		p.Preemption.By = []string{"qos"}
	case 2:
		w.lends(p, d)
		p.Preemption.By = []string{"quota"}
	case 3:
		if d.one(50) {
			w.lends(p, d)
		}
	}
	p.Preemption.Mode = pick(d, "", account.PreemptRequeue, account.PreemptCancel, account.PreemptCheckpoint)
	p.Preemption.Grace = account.Duration(pick(d, 0, 5*time.Second))
	if d.one(40) {
		p.Reservations = append(p.Reservations, w.reservation(d))
	}
	return p
}

// further draws rules of jobs that share what they have in turns.
func (w *World) further(p *account.Policy, d *stream) {
	if d.one(35) {
		p.Preemption.Mode = account.PreemptSuspend
	}
	if d.one(25) {
		p.Partitions = []account.Partition{{Name: "shared", TimeSlice: account.Duration(d.between(2*time.Second, 20*time.Second).Truncate(time.Second))}}
	}
}

// lends gives both groups quotas, of which they lend each other.
func (w *World) lends(p *account.Policy, d *stream) {
	p.Flavors = []account.Flavor{{Name: "any"}}
	for i := 1; i <= 2; i++ {
		r := account.ResourceQuota{Name: "cpu", Nominal: resource.CPUs(2 + d.n(5))}
		if d.one(40) {
			a := resource.CPUs(d.n(4))
			r.Borrow = &a
		}
		if d.one(40) {
			a := resource.CPUs(d.n(3))
			r.Lend = &a
		}
		p.Accounts[i].Quota = &account.Quota{
			Flavors: []account.FlavorQuota{{Flavor: "any", Resources: []account.ResourceQuota{r}}},
			Within:  pick(d, account.NoVictims, account.LowerPriority), Reclaim: pick(d, account.NoVictims, account.AnyVictims, account.AnyVictims),
			Order: pick(d, account.OrderAbove, account.BestEffort, account.Strict),
		}
	}
}

// reservation keeps one node, or all, for a while: for a group, or for nobody.
func (w *World) reservation(d *stream) account.Reservation {
	r := account.Reservation{
		Name: "r", Start: w.start.Add(time.Duration(d.n(200)) * time.Second).UTC().Format(time.RFC3339),
		Duration: account.Duration(d.between(20*time.Second, 90*time.Second).Truncate(time.Second)),
	}
	if d.one(70) {
		r.Nodes = []string{w.machine.nodes[d.n(len(w.machine.nodes))].Name}
	}
	if d.one(60) {
		r.Accounts = []string{pick(d, "x", "y")}
	}
	return r
}

// whose says for whom a job is, as the rules know them.
func (w *World) whose(spec *job.Spec, name string) {
	d := w.dice.stream("whose", name)
	spec.Account = pick(d, "", "x", "x", "y", "y")
	spec.QOS = pick(d, "", "hi", "lo", "lo")
	if d.one(12) {
		spec.Licenses = pick(d, "l", "l:2")
	}
	if d.one(6) {
		spec.Reservation = "r"
	}
	if w.dice.stream("shared", name).one(40) {
		spec.Partitions = []string{"shared"}
	}
}
