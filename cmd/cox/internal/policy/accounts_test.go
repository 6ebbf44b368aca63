package policy_test

import (
	"net/http"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
)

func TestShares(t *testing.T) {
	f := newFake(t)
	level := 2.5
	f.Answer("GET /v1/shares", func(*http.Request) (any, error) {
		return api.Shares{Shares: []api.Share{
			{Account: "root", Raw: 1, Norm: 1, Used: 100, Usage: 1, Level: &level},
			{Account: "nlp", Parent: "root", Depth: 1, Raw: 3, Norm: 0.75, Used: 100, Usage: 1},
			{Account: "nlp", User: "anna", Parent: "root", Depth: 2, Raw: -1, Norm: 0.75, Used: 60.4, Usage: 0.6, Factor: 0.5},
			{Account: "nlp", User: "ben", Parent: "root", Depth: 2, Raw: 1, Norm: 0.25, Used: 40, Usage: 0.4, Factor: 0.25},
			{Account: "vision", Parent: "root", Depth: 1, Raw: 1, Norm: 0.25},
		}}, nil
	})
	const head = "ACCOUNT  USER  SHARES  OF SIBLINGS  USED  OF ACCOUNT     LEVEL  FAIR SHARE\n"
	f.Cox(t, "shares").Check(t, 0, head+`root     -          1     1.000000   100    1.000000  2.500000           -
 nlp     -          3     0.750000   100    1.000000       inf           -
  nlp    anna  parent     0.750000    60    0.600000       inf    0.500000
  nlp    ben        1     0.250000    40    0.400000       inf    0.250000
 vision  -          1     0.250000     0    0.000000       inf           -
`, "")
	f.Cox(t, "shares", "-A", "nlp", "-u", "anna").Check(t, 0, head+`root     -          1     1.000000   100    1.000000  2.500000           -
 nlp     -          3     0.750000   100    1.000000       inf           -
  nlp    anna  parent     0.750000    60    0.600000       inf    0.500000
`, "")
	f.Cox(t, "shares", "-u", "ben", "-o", "json").Check(t, 0, "~\"user\": \"ben\"", "")
	f.Cox(t, "shares", "-A", "nobody").Check(t, 0, "", "nobody has a share: the site's rules name no such account (cox policy show)\n")
}

func TestQuota(t *testing.T) {
	f := newFake(t)
	share := 250.0
	list := []api.QuotaAccount{
		{Account: "all", Running: 3, Amounts: []api.QuotaAmount{{Flavor: "h100", Resource: "gpu", Nominal: 16, Held: 12}}},
		{Account: "nlp", Parent: "all", Depth: 1, Running: 2, Pending: 1, Share: &share, Amounts: []api.QuotaAmount{
			{Flavor: "h100", Resource: "gpu", Nominal: 8, Held: 10, Borrowed: 2, Pending: 4, From: []string{"vision"}},
			{Flavor: "h100", Resource: "cpu", Nominal: 64, Held: 20},
		}},
		{Account: "vision", Parent: "all", Depth: 1, Running: 1, Amounts: []api.QuotaAmount{{Flavor: "h100", Resource: "gpu", Nominal: 8, Held: 2, Lent: 6}}},
	}
	f.Answer("GET /v1/quotas", func(*http.Request) (any, error) { return api.Quotas{Accounts: list}, nil })
	f.Cox(t, "quota").Check(t, 0, `ACCOUNT  SHARE  JOBS  FLAVOUR  RESOURCE  NOMINAL  HELD  BORROWED  LENT  PENDING  BORROWS OF
all          -     3  h100     gpu            16    12         -     -        -  -
 nlp       250   2+1  h100     gpu             8    10         2     -        4  vision
 nlp       250   2+1  h100     cpu            64    20         -     -        -  -
 vision      -     1  h100     gpu             8     2         -     6        -  -
`, "")
	f.Cox(t, "quota", "-A", "vision").Check(t, 0, `ACCOUNT  SHARE  JOBS  FLAVOUR  RESOURCE  NOMINAL  HELD  BORROWED  LENT  PENDING  BORROWS OF
all          -     3  h100     gpu            16    12         -     -        -  -
 vision      -     1  h100     gpu             8     2         -     6        -  -
`, "")
	f.Cox(t, "quota", "-o", "yaml").Check(t, 0, "~account: nlp", "")
	f.Cox(t, "quota", "-A", "nobody").Check(t, 0, "", "none of these accounts has a quota (cox quota shows those that have)\n")
	list = nil
	f.Cox(t, "quota").Check(t, 0, "", "no account has a quota: the site's rules name none (cox policy show)\n")
}
