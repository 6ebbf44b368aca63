package query

import (
	"testing"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// TestQuotasOfWhatIf asks for other quotas of one flavour, of the only one, and of what
// there is not; the rules in force are left as they are.
func TestQuotasOfWhatIf(t *testing.T) {
	gpus := func(flavor string, n resource.Amount) account.FlavorQuota {
		return account.FlavorQuota{Flavor: flavor, Resources: []account.ResourceQuota{{Name: "cpu"}, {Name: "gpu", Nominal: 1000 * n}}}
	}
	p := &account.Policy{Accounts: []account.Account{
		{Name: "one", Quota: &account.Quota{Flavors: []account.FlavorQuota{gpus("h100", 8)}}},
		{Name: "two", Quota: &account.Quota{Flavors: []account.FlavorQuota{gpus("h100", 8), gpus("a100", 4)}}},
		{Name: "cpus", Quota: &account.Quota{Flavors: []account.FlavorQuota{{Flavor: "h100", Resources: []account.ResourceQuota{{Name: "cpu"}}}}}},
		{Name: "free"},
	}}
	for _, c := range []struct {
		name    string
		account int
		flavor  int
	}{{"one", 0, 0}, {"one/h100", 0, 0}, {"two/a100", 1, 1}} {
		next, err := withQuotas(p, map[string]int64{c.name: 64})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := next.Accounts[c.account].Quota.Flavors[c.flavor].Resources[1].Nominal; got != 64000 {
			t.Errorf("%s: nominal %d, want 64000", c.name, got)
		}
		if old := p.Accounts[c.account].Quota.Flavors[c.flavor].Resources[1].Nominal; old == 64000 {
			t.Errorf("%s: the rules in force were written to", c.name)
		}
	}
	for name, kind := range map[string]fault.Kind{"two": fault.Invalid, "two/b200": fault.NotFound, "cpus": fault.Invalid, "free/h100": fault.Invalid, "nobody/h100": fault.NotFound} {
		if _, err := withQuotas(p, map[string]int64{name: 64}); fault.KindOf(err) != kind {
			t.Errorf("%s: %v, want %v", name, err, kind)
		}
	}
}
