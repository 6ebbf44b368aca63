package schedtest

import (
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/priority"
)

// Ranked draws a policy that orders: weights, accounts with users and one that is open
// to everybody, QOS and partitions as Whose and Spec name them. Everything is as short
// as the jobs of Spec.
func Ranked(t *rapid.T) *account.Policy {
	weight := func(name string) uint32 {
		return rapid.SampledFrom([]uint32{0, 0, 1, 10, 1000, 100000}).Draw(t, "weight of "+name)
	}
	number := func(name string) uint32 {
		return rapid.SampledFrom([]uint32{0, 1, 5, 100}).Draw(t, "priority of "+name)
	}
	seconds := func(name string, from, to int) account.Duration {
		return account.Duration(time.Duration(rapid.IntRange(from, to).Draw(t, name)) * time.Second)
	}
	p := &account.Policy{
		Priority: account.Weights{
			Age: weight("age"), Association: weight("association"), FairShare: weight("fair share"), JobSize: weight("size"),
			Partition: weight("partition"), QOS: weight("QOS"), FavorSmall: rapid.Bool().Draw(t, "small"), MaxAge: seconds("max age", 0, 40),
		},
		FairShare: account.FairShare{HalfLife: seconds("half-life", -1, 60), Period: seconds("period", 1, 12), Ties: rapid.SampledFrom([]string{"", "slurm"}).Draw(t, "ties")},
	}
	if rapid.Bool().Draw(t, "TRES") {
		p.Priority.TRES = map[string]uint32{"cpu": weight("CPUs"), "gpu": 1 + weight("GPUs"), "gpu:a": weight("GPUs of a type"), "memory": weight("memory")}
	}
	for _, f := range priority.Flags {
		if rapid.IntRange(0, 5).Draw(t, f) == 0 {
			p.Priority.Flags = append(p.Priority.Flags, f)
		}
	}
	shares := func(name string) account.Shares {
		return account.Shares(rapid.SampledFrom([]int{0, 1, 2, 5, -1, -2}).Draw(t, "shares of "+name))
	}
	few := func(name string) *int64 {
		if !rapid.Bool().Draw(t, name+" is bounded") {
			return nil
		}
		n := int64(rapid.IntRange(0, 4).Draw(t, name))
		return &n
	}
	bounded := rapid.Bool().Draw(t, "growing older is bounded")
	for i, name := range []string{"a", "b", "c"} {
		a := account.Account{Name: name, Shares: shares(name), Priority: number(name)}
		if i > 0 {
			a.Parent = rapid.SampledFrom([]string{"", "a"}).Draw(t, "parent")
		}
		if name != "b" { // which is open, if nothing stands below it
			a.Users = []account.User{{Name: "u", Shares: shares("u"), Priority: number("u")}, {Name: "v", Shares: shares("v")}}
		}
		if bounded {
			a.Limits.GroupAccruing, a.Limits.Accruing = few("all of the account"), few("each user of the account")
			if len(a.Users) > 0 {
				a.Users[0].Limits.Accruing = few("the user")
			}
		}
		p.Accounts = append(p.Accounts, a)
	}
	for _, name := range []string{"x", "y"} {
		q := account.QOS{Name: name, Priority: number(name)}
		if rapid.Bool().Draw(t, "factor") {
			f := rapid.SampledFrom([]float64{0, 0.5, 3}).Draw(t, "usage factor")
			q.UsageFactor = &f
		}
		if rapid.IntRange(0, 3).Draw(t, "threshold of "+name) == 0 {
			f := rapid.SampledFrom([]float64{0.2, 0.5, 0.9}).Draw(t, "threshold")
			q.UsageThreshold = &f
		}
		if bounded {
			q.Limits.GroupAccruing, q.Limits.UserAccruing, q.Limits.AcctAccruing = few("all of the QOS"), few("a user of the QOS"), few("an account of the QOS")
		}
		p.QOS = append(p.QOS, q)
	}
	for _, name := range []string{"p", "q"} {
		part := account.Partition{Name: name, Priority: number(name), Tier: int32(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "tier")), MaxTime: seconds("max time", 0, 5)}
		if rapid.Bool().Draw(t, "billing") {
			part.Billing = map[string]float64{"cpu": 1, "gpu": 4, "memory": 0.25}
			part.BillingRule = rapid.SampledFrom([]string{"", "max", "max_gres"}).Draw(t, "rule")
		}
		p.Partitions = append(p.Partitions, part)
	}
	return p
}
