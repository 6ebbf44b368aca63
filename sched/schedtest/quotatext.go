package schedtest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// readFlavor reads "NAME [features=a,b] [type=h100]".
func (r *runner) readFlavor(args []string) error {
	f := account.Flavor{Name: args[0]}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "features":
			f.Features = strings.Split(value, ",")
		case "type":
			f.GPUType = value
		default:
			return fmt.Errorf("a flavor has no %s", key)
		}
	}
	r.buildPolicy().Flavors = append(r.buildPolicy().Flavors, f)
	return nil
}

// readAccount reads "NAME [in=PARENT] [OPTION[=VALUE]]… [FLAVOR:RESOURCE=NOMINAL[+BORROW][-LEND],…]…"
// and replaces the account of that name, if there is one.
func (r *runner) readAccount(args []string) error {
	a := account.Account{Name: args[0], Quota: &account.Quota{}}
	for _, word := range args[1:] {
		if err := readOption(&a, word, r.plain); err != nil {
			return err
		}
	}
	p := r.buildPolicy()
	for i := range p.Accounts {
		if p.Accounts[i].Name == a.Name {
			p.Accounts[i] = a
			return nil
		}
	}
	p.Accounts = append(p.Accounts, a)
	return nil
}

// readOption reads one word of an account; plain: amounts have no unit.
func readOption(a *account.Account, word string, plain bool) error {
	q := a.Quota
	if flavor, amounts, ok := strings.Cut(word, ":"); ok {
		x, err := amountsOf(flavor, amounts, plain)
		q.Flavors = append(q.Flavors, x)
		return err
	}
	key, value, _ := strings.Cut(word, "=")
	var err error
	switch key {
	case "in":
		a.Parent = value
	case "strict", "best-effort":
		q.Order = account.QueueOrder(key)
	case "fair":
		q.Fair = true
		for _, s := range strings.Split(value, ",") {
			if s != "" {
				q.Strategies = append(q.Strategies, account.Strategy(s+"-share"))
			}
		}
	case "weight":
		q.Weight = new(float64)
		*q.Weight, err = strconv.ParseFloat(value, 64)
	case "when-borrow":
		q.Borrow = account.FallOver(value)
	case "when-preempt":
		q.Preempt = account.FallOver(value)
	case "when-full":
		q.Full = account.FallOver(value)
	case "prefer":
		q.Prefer = account.Preference(value)
	case "within":
		q.Within = account.Victims(value)
	case "reclaim":
		q.Reclaim = account.Victims(value)
	case "borrowing":
		q.Borrowing = account.Victims(value)
	case "max-priority":
		q.MaxPriority = new(int64)
		*q.MaxPriority, err = strconv.ParseInt(value, 10, 64)
	default:
		return fmt.Errorf("an account has no %s", key)
	}
	return err
}

// amountsOf reads "RESOURCE=NOMINAL[+BORROW][-LEND],…", devices and CPUs by number,
// memory in GiB.
func amountsOf(flavor, text string, plain bool) (account.FlavorQuota, error) {
	out := account.FlavorQuota{Flavor: flavor}
	if text == "" {
		return out, nil
	}
	for _, part := range strings.Split(text, ",") {
		name, amounts, _ := strings.Cut(part, "=")
		unit := unitOf(name)
		if plain {
			unit = 1000
		}
		x := account.ResourceQuota{Name: name}
		amounts, lend, lends := strings.Cut(amounts, "-")
		nominal, borrow, borrows := strings.Cut(amounts, "+")
		for _, n := range []struct {
			text  string
			given bool
			to    **resource.Amount
		}{{borrow, borrows, &x.Borrow}, {lend, lends, &x.Lend}} {
			if n.given {
				a, err := amountOf(n.text, unit)
				if err != nil {
					return out, err
				}
				*n.to = &a
			}
		}
		var err error
		if x.Nominal, err = amountOf(nominal, unit); err != nil {
			return out, err
		}
		out.Resources = append(out.Resources, x)
	}
	return out, nil
}

func amountOf(text string, unit resource.Amount) (resource.Amount, error) {
	x, err := strconv.ParseFloat(text, 64)
	return resource.Amount(x*float64(unit) + 0.5), err
}

// unitOf is how many of the units of account.TRES one of a resource is.
func unitOf(name string) resource.Amount {
	switch name {
	case "cpu", "gpu":
		return 1000
	case "memory", "disk":
		return resource.GiB
	}
	return 1
}

// buildPolicy is the policy that the core is told before the next step.
func (r *runner) buildPolicy() *account.Policy {
	if r.policy == nil {
		r.policy = &account.Policy{}
	}
	r.told = false
	return r.policy
}
