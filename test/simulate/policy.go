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

// policyActs are the times at which the rules of a seed are set.
func (w *World) policyActs(span time.Duration) (acts []Act) {
	s := w.dice.streamFor("rulings", "")
	if !s.happensIn(65) {
		return nil
	}
	for i := range 1 + s.intBelow(3) {
		name := fmt.Sprintf("p%d", i+1)
		at := s.durationBetween(0, span)
		if i == 0 {
			at = time.Duration(s.intBelow(3)) * time.Second
		}
		rules := w.drawPolicy(w.dice.streamFor("rules", name))
		w.drawTimeSlices(rules, w.dice.streamFor("further rules", name))
		acts = append(acts, Act{Name: name + " sets rules", At: at, Do: func(w *World) { w.askPolicy(name, rules) }})
	}
	return acts
}

// askPolicy asks for rules.
func (w *World) askPolicy(name string, rules *account.Policy) {
	w.sendRequest(name, model.Request{Verb: model.Rule, Text: name}, func(ctx context.Context, c *control.Control, a *answered) {
		_, a.err = c.SetPolicy(ctx, user, control.PolicyChange{Rules: rules, Text: name})
	})
}

// drawPolicy makes the rules of a site: a lab with two groups in it, two QOS, one licence.
func (w *World) drawPolicy(d *stream) *account.Policy {
	few := func(from, more int) *int64 {
		n := int64(from + d.intBelow(more))
		return &n
	}
	cpus := func(from, more int) resource.Amount { return resource.CPUs(from + d.intBelow(more)) }
	p := &account.Policy{
		FairShare: account.FairShare{HalfLife: -1, Period: account.Duration(pickOne(d, 10, 30, 60)) * account.Duration(time.Second)},
		Accounts:  []account.Account{{Name: "lab"}, {Name: "x", Parent: "lab"}, {Name: "y", Parent: "lab"}},
		QOS:       []account.QOS{{Name: "hi", Priority: 10}, {Name: "lo"}},
		Licenses:  []account.License{{Name: "l", Count: int64(1 + d.intBelow(2))}},
		Backfill:  account.Backfill{Reservations: pickOne(d, 0, 0, 1, 3)},
	}
	if p.Backfill.Reservations == 1 {
		p.Placement = account.PlaceLearned
	}
	if d.happensIn(50) {
		p.Priority = account.Weights{Age: 10, FairShare: 1000, QOS: 100}
	}
	if d.happensIn(50) {
		p.Accounts[0].Limits.GroupJobs = few(2, 4)
	}
	if d.happensIn(40) {
		p.Accounts[1].Limits.Group = account.TRES{"cpu": cpus(3, 4)}
	}
	if d.happensIn(40) {
		p.QOS[1].Limits.UserJobs = few(1, 3)
	}
	if d.happensIn(30) {
		p.QOS[d.intBelow(2)].Limits.Job = account.TRES{"cpu": cpus(3, 5)}
	}
	switch d.intBelow(4) {
	case 0, 1:
		p.QOS[0].Preempts = []string{"lo"}
		p.Preemption.By = []string{"qos"}
	case 2:
		w.drawQuotas(p, d)
		p.Preemption.By = []string{"quota"}
	case 3:
		if d.happensIn(50) {
			w.drawQuotas(p, d)
		}
	}
	p.Preemption.Mode = pickOne(d, "", account.PreemptRequeue, account.PreemptCancel, account.PreemptCheckpoint)
	p.Preemption.Grace = account.Duration(pickOne(d, 0, 5*time.Second))
	if d.happensIn(40) {
		p.Reservations = append(p.Reservations, w.drawReservation(d))
	}
	return p
}

// drawTimeSlices draws rules of jobs that share what they have in turns.
func (w *World) drawTimeSlices(p *account.Policy, d *stream) {
	if d.happensIn(35) {
		p.Preemption.Mode = account.PreemptSuspend
	}
	if d.happensIn(25) {
		p.Partitions = []account.Partition{{Name: "shared", TimeSlice: account.Duration(d.durationBetween(2*time.Second, 20*time.Second).Truncate(time.Second))}}
	}
}

// drawQuotas gives both groups quotas, of which they lend each other.
func (w *World) drawQuotas(p *account.Policy, d *stream) {
	p.Flavors = []account.Flavor{{Name: "any"}}
	for i := 1; i <= 2; i++ {
		r := account.ResourceQuota{Name: "cpu", Nominal: resource.CPUs(2 + d.intBelow(5))}
		if d.happensIn(40) {
			a := resource.CPUs(d.intBelow(4))
			r.Borrow = &a
		}
		if d.happensIn(40) {
			a := resource.CPUs(d.intBelow(3))
			r.Lend = &a
		}
		p.Accounts[i].Quota = &account.Quota{
			Flavors: []account.FlavorQuota{{Flavor: "any", Resources: []account.ResourceQuota{r}}},
			Within:  pickOne(d, account.NoVictims, account.LowerPriority), Reclaim: pickOne(d, account.NoVictims, account.AnyVictims, account.AnyVictims),
			Order: pickOne(d, account.OrderAbove, account.BestEffort, account.Strict),
		}
	}
}

// drawReservation keeps one node, or all, for a while: for a group, or for nobody.
func (w *World) drawReservation(d *stream) account.Reservation {
	r := account.Reservation{
		Name: "r", Start: w.start.Add(time.Duration(d.intBelow(200)) * time.Second).UTC().Format(time.RFC3339),
		Duration: account.Duration(d.durationBetween(20*time.Second, 90*time.Second).Truncate(time.Second)),
	}
	if d.happensIn(70) {
		r.Nodes = []string{w.machine.nodes[d.intBelow(len(w.machine.nodes))].Name}
	}
	if d.happensIn(60) {
		r.Accounts = []string{pickOne(d, "x", "y")}
	}
	return r
}

// assignOwner says for whom a job is, as the rules know them.
func (w *World) assignOwner(spec *job.Spec, name string) {
	d := w.dice.streamFor("whose", name)
	spec.Account = pickOne(d, "", "x", "x", "y", "y")
	spec.QOS = pickOne(d, "", "hi", "lo", "lo")
	if d.happensIn(12) {
		spec.Licenses = pickOne(d, "l", "l:2")
	}
	if d.happensIn(6) {
		spec.Reservation = "r"
	}
	if w.dice.streamFor("shared", name).happensIn(40) {
		spec.Partitions = []string{"shared"}
	}
}
