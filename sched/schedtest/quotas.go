package schedtest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Quotas draws accounts with quotas for the devices and CPUs of small fleets, and
// flavours of which some tell nodes apart.
func Quotas(t *rapid.T) (flavors []account.Flavor, accounts []account.Account) {
	flavors = []account.Flavor{{Name: "any"}}
	if rapid.Bool().Draw(t, "two flavours") {
		flavors = []account.Flavor{{Name: "fast", Features: []string{"x"}}, {Name: "slow", Features: []string{"y"}}}
		if rapid.Bool().Draw(t, "and a third") {
			flavors = append(flavors, account.Flavor{Name: "any"})
		}
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "accounts") {
		a := account.Account{Name: fmt.Sprintf("q%d", i)}
		if i > 0 && rapid.IntRange(0, 3).Draw(t, "child") > 0 {
			a.Parent = fmt.Sprintf("q%d", rapid.IntRange(0, i-1).Draw(t, "parent"))
		}
		if rapid.IntRange(0, 5).Draw(t, "quota") > 0 {
			a.Quota = drawQuota(t, flavors)
		}
		accounts = append(accounts, a)
	}
	return flavors, accounts
}

func drawQuota(t *rapid.T, flavors []account.Flavor) *account.Quota {
	q := &account.Quota{
		Order:       rapid.SampledFrom([]account.QueueOrder{account.OrderAbove, account.OrderAbove, account.BestEffort, account.Strict}).Draw(t, "order"),
		Fair:        rapid.IntRange(0, 2).Draw(t, "fair") == 0,
		Strategies:  rapid.SampledFrom([][]account.Strategy{nil, {account.FinalShare}, {account.InitialShare}}).Draw(t, "strategies"),
		Borrow:      rapid.SampledFrom([]account.FallOver{"", account.NextFlavor}).Draw(t, "when borrow"),
		Preempt:     rapid.SampledFrom([]account.FallOver{"", account.StopHere}).Draw(t, "when preempt"),
		Full:        rapid.SampledFrom([]account.FallOver{"", "", account.StopHere}).Draw(t, "when full"),
		Prefer:      rapid.SampledFrom([]account.Preference{account.BorrowFirst, account.PreemptFirst}).Draw(t, "prefer"),
		Within:      rapid.SampledFrom([]account.Victims{account.NoVictims, account.LowerPriority, account.LowerOrNewer}).Draw(t, "within"),
		Reclaim:     rapid.SampledFrom([]account.Victims{account.NoVictims, account.LowerPriority, account.AnyVictims}).Draw(t, "reclaim"),
		Borrowing:   rapid.SampledFrom([]account.Victims{account.NoVictims, account.LowerPriority}).Draw(t, "borrowing"),
		MaxPriority: rapid.SampledFrom([]*int64{nil, new(int64)}).Draw(t, "max priority"),
	}
	if w := rapid.IntRange(0, 4).Draw(t, "weight"); w != 1 {
		x := float64(w) / 2
		q.Weight = &x
	}
	if rapid.IntRange(0, 4).Draw(t, "flavours") == 0 {
		return q
	}
	both := rapid.Bool().Draw(t, "cpu too")
	for _, f := range flavors {
		x := account.FlavorQuota{Flavor: f.Name, Resources: []account.ResourceQuota{drawAmounts(t, "gpu", 1000)}}
		if both {
			x.Resources = append(x.Resources, drawAmounts(t, "cpu", 2000))
		}
		q.Flavors = append(q.Flavors, x)
	}
	return q
}

func drawAmounts(t *rapid.T, name string, unit resource.Amount) account.ResourceQuota {
	limit := func(what string) *resource.Amount {
		n := rapid.IntRange(-3, 3).Draw(t, what)
		if n < 0 {
			return nil
		}
		a := unit * resource.Amount(n)
		return &a
	}
	return account.ResourceQuota{
		Name: name, Nominal: unit * resource.Amount(rapid.IntRange(0, 4).Draw(t, "nominal")),
		Borrow: limit("borrow"), Lend: limit("lend"),
	}
}

// Lending draws limits for accounts that have quotas, small enough that what is lent to
// an elastic job may be what keeps others off, and reservations by name.
func Lending(t *rapid.T, p *account.Policy) {
	for i := range p.Accounts {
		l := &p.Accounts[i].Limits
		switch rapid.IntRange(0, 5).Draw(t, "limit on") {
		case 0, 1:
			l.Group = account.TRES{"cpu": resource.CPUs(rapid.IntRange(2, 10).Draw(t, "CPUs"))}
		case 2:
			l.Group = account.TRES{"gpu": resource.Amount(1000 * rapid.IntRange(1, 6).Draw(t, "GPUs"))}
		case 3:
			l.GroupRunMinutes = account.TRES{"cpu": resource.Amount(100 * rapid.IntRange(1, 20).Draw(t, "CPU-minutes"))}
		}
	}
	p.Backfill.Reservations = rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "reservations")
}
