package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// What is shown of quotas.go: how much each account of a quota tree holds, borrows and
// lends. It is read off the state in which the core decides.

// Holding is an account with a quota, or one that has such below it.
type Holding struct {
	Account          string
	Parent           int  // in the list; -1: a root
	Depth            int  // 0: a root
	Own              bool // the jobs of an account itself that has accounts with quotas below it
	Running, Pending int  // jobs that are charged to it and below it
	Share            quota.Share
	Dominant         string // the resource of Share; "" where nothing is borrowed
	Amounts          []HoldingAmount
}

// HoldingAmount is a resource of a flavour in an account.
type HoldingAmount struct {
	Flavor, Resource string
	Nominal          resource.Amount
	Borrow, Lend     resource.Amount // at most; resource.Unlimited: all there is
	Quota            resource.Amount // nominal, and what the accounts below it lend
	Held             resource.Amount // by running jobs of it and of accounts below it
	Used             resource.Amount // what of that counts here: of accounts below it, what they hold beyond what they never lend
	Borrowed, Lent   resource.Amount
	Pending          resource.Amount // what jobs that wait ask for at least, in the flavour in which they would go
}

// QuotaUsage lists the quotas in the order of their trees, accounts before those below
// them; nil where the rules have none.
func (c *Core) QuotaUsage() []Holding {
	if c.quotas == nil {
		return nil
	}
	q := c.quotas
	out := make([]Holding, q.Len())
	for n := range int32(q.Len()) {
		h := Holding{Account: q.Names[n], Parent: int(q.Parent(n)), Share: q.Share(n)}
		if h.Parent >= 0 {
			h.Depth = out[h.Parent].Depth + 1
			h.Own = q.Own(q.Parent(n)) == n
		}
		if h.Share.Resource != quota.None {
			h.Dominant = q.Resources[h.Share.Resource]
		}
		for fr := range int32(len(q.FRs)) {
			h.Amounts = append(h.Amounts, q.holdingAmount(n, fr))
		}
		out[n] = h
	}
	for _, r := range c.runs.ends.allRuns() {
		if r.policy.queue == nil || r.nominee != nil {
			continue
		}
		for n := r.policy.queue.node; n != quota.None; n = q.Parent(n) {
			out[n].Running++
			for _, x := range r.charges {
				a := &out[n].Amounts[x.FR]
				a.Held = a.Held.Add(x.Amount)
			}
		}
	}
	for _, l := range c.queue.classes { // sums: their order is of no account
		c.addPending(out, l)
	}
	for n := range out {
		out[n].Amounts = slices.DeleteFunc(out[n].Amounts, func(a HoldingAmount) bool {
			return a.Nominal == 0 && a.Quota == 0 && a.Held == 0 && a.Pending == 0
		})
	}
	return out
}

func (q *quotas) holdingAmount(n, fr int32) HoldingAmount {
	a := HoldingAmount{
		Flavor: q.Flavors[q.FRs[fr].Flavor].Name, Resource: q.Resources[q.FRs[fr].Resource],
		Nominal: q.Nominal(n, fr), Quota: q.Subtree(n, fr), Used: q.Used(n, fr), Borrowed: q.Borrowed(n, fr), Lent: q.Lent(n, fr),
	}
	if own := q.Own(n); own != n {
		a.Nominal = q.Nominal(own, fr) // it stands with the account's own jobs
	}
	a.Borrow, a.Lend = q.Limits(n, fr)
	return a
}

// addPending adds what the jobs of a class ask for.
func (c *Core) addPending(out []Holding, l *jobClass) {
	s := l.quotaDemand
	if s == nil {
		return
	}
	charges := s.got.Charges
	if len(charges) == 0 {
		charges = c.quotas.Foremost(s.queue.node, s.needs)
	}
	for n := s.queue.node; n != quota.None; n = c.quotas.Parent(n) {
		out[n].Pending += l.members
		for _, x := range charges {
			a := &out[n].Amounts[x.FR]
			a.Pending = a.Pending.Add(x.Amount.Mul(l.members))
		}
	}
}
