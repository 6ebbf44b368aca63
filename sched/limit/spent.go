package limit

import (
	"math"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Budget is a limit on what is used up: GrpTRESMins, GrpWall. What was used before is
// kept and decays elsewhere (model/account/fair); Spend tells the book of it.
type Budget struct {
	QOS     bool
	Name    string // of the QOS or account
	User    string // of a user's association with the account; empty: the account's
	TRES    string // empty: wall time
	counter int32
	falls   int32 // the counter whose waiters it lets pass when it falls
}

// Budgets lists those that some rules ask about.
func (b *Book) Budgets() []Budget { return b.budgets }

// Spend says how much of a budget was used: amounts times seconds, in the units of
// account.TRES.
func (b *Book) Spend(x *Budget, used float64) {
	if x.TRES == "memory" || x.TRES == "disk" {
		used /= float64(resource.MiB)
	}
	level := tooMuch
	if used = math.Ceil(used); used < float64(tooMuch) {
		level = resource.Amount(used)
	}
	if level < b.level[x.counter] {
		b.noteFallen(x.falls)
	}
	b.level[x.counter] = level
}

func (b *Book) budgetFor(h holder, tres string, counter, falls int32) int32 {
	for i := range b.budgets {
		if b.budgets[i].counter == counter {
			return counter
		}
	}
	b.budgets = append(b.budgets, Budget{QOS: h.kind == 'q', Name: h.name, User: h.user, TRES: tres, counter: counter, falls: falls})
	return counter
}

// groupWall resolves the limits on wall time that is used up.
func (r *resolver) groupWall() {
	list := r.chain
	for _, o := range r.qos {
		if o.limits.GroupWall != nil {
			r.wallUsed(o, 1)
			return
		}
	}
	for _, o := range list {
		if o.limits.GroupWall != nil {
			r.wallUsed(o, 0)
		}
	}
}

func (r *resolver) wallUsed(o owner, qos int) {
	c := r.counterNumber(o.holder, spentWall, 0)
	r.budgetFor(o.holder, "", c, c)
	seconds := resource.Amount(*o.limits.GroupWall / account.Duration(1e9))
	r.out.Checks = append(r.out.Checks, Check{Counter: c, spent: -1, Bound: seconds, need: once, fixed: true, Why: wallReason(plainWords["group wall"][qos], o.holder.String(), int64(seconds))})
}
