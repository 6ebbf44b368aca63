package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/account"
	"github.com/coxswain-sched/coxswain/resource"
	"github.com/coxswain-sched/coxswain/spec"
)

func TestParse(t *testing.T) {
	got, err := Parse("queues.yaml", []byte(`
priority: {age: 1000, max_age: 14d}
accounts:
  - root-lab
  - name: nlp
    parent: root-lab
    shares: 30
    limits:
      group: {cpu: 64, memory: 1.5TiB, gpu: 8, "gpu:h100": 4, license/matlab: 2}
      group_minutes: {gpu: 100h}
      jobs: 0
      wall: 1d12h
    users: [anna, {name: ben, default: true}]
    quota:
      flavors:
        - flavor: h100
          resources:
            - {name: gpu, nominal: 8, borrow: 0}
            - {name: memory, nominal: 2TiB}
qos:
  - {name: high, priority: 10, usage_factor: 0.5}
licenses:
  - {name: matlab, count: 5}
`))
	if err != nil {
		t.Fatal(err)
	}
	none, wall, half, zero := int64(0), account.Duration(36*time.Hour), 0.5, resource.Amount(0)
	want := &account.Policy{
		Priority: account.Weights{Age: 1000, MaxAge: account.Duration(14 * 24 * time.Hour)},
		Accounts: []account.Account{
			{Name: "root-lab"},
			{
				Name: "nlp", Parent: "root-lab", Shares: 30,
				Limits: account.Limits{
					Group:        account.TRES{"cpu": 64000, "memory": 3 << 39, "gpu": 8000, "gpu:h100": 4000, "license/matlab": 2},
					GroupMinutes: account.TRES{"gpu": 6_000_000},
					Jobs:         &none, Wall: &wall,
				},
				Users: []account.User{{Name: "anna"}, {Name: "ben", Default: true}},
				Quota: &account.Quota{Flavors: []account.FlavorQuota{{Flavor: "h100", Resources: []account.ResourceQuota{
					{Name: "gpu", Nominal: 8000, Borrow: &zero}, {Name: "memory", Nominal: 2 << 40},
				}}}},
			},
		},
		QOS:      []account.QOS{{Name: "high", Priority: 10, UsageFactor: &half}},
		Licenses: []account.License{{Name: "matlab", Count: 5}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestErrorsNamePlaceAndRemedy(t *testing.T) {
	tests := []struct{ in, place, want string }{
		{"acounts: []\n", "1:1", "acounts: no such field; did you mean accounts?"},
		{"accounts:\n  - name: a\n    limit: {}\n", "3:5", "accounts[0].limit: no such field; did you mean limits?"},
		{"accounts:\n  - name: a\n    limits:\n      group: {cpus: 3}\n", "4:15", "did you mean cpu?"},
		{"accounts: [{name: a, limits: {group: {gres/gpu:h100: 3}}}]\n", "1:39", "did you mean gpu:h100?"},
		{"accounts: [{name: a, limits: {group: {memory: 64}}}]\n", "1:47", "has no unit"},
		{"accounts: [{name: a, limits: {group: {gpu: -1}}}]\n", "1:44", "is no amount"},
		{"accounts: [{name: a, limits: {group: {cpu: 99999999999999999999}}}]\n", "1:44", "is more than can be counted"},
		{"accounts: [{name: a, limits: {jobs: many}}]\n", "1:37", "is not a whole number"},
		{"accounts: [{name: a, limits: {jobs: }}]\n", "", "has no value"},
		{"accounts: [{name: a, limits: {wall: 3x}}]\n", "1:37", "is no duration"},
		{"priority: {age: 5000000000}\n", "1:17", "is not between 0 and 4294967295"},
		{"priority: {favor_small: yes}\n", "1:25", "is neither true nor false"},
		{"- a\n", "1:1", "a list where the rules of a site are expected"},
		{"accounts: {name: a}\n", "", "begin each entry with a dash"},
		{"a: &x 1\n", "1:", "anchors (&) are not read"},
	}
	for _, tt := range tests {
		_, err := Parse("q.yaml", []byte(tt.in))
		var e *spec.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "q.yaml:"+tt.place) || !strings.Contains(err.Error(), tt.want) || e.Line == 0 {
			t.Errorf("%q: %v, want %s … %s", tt.in, err, tt.place, tt.want)
		}
	}
	_, err := Parse("q.yaml", []byte("a: 1\nb: 2\npriority: {age: x}\n"))
	if err == nil || strings.Count(err.Error(), "q.yaml:") != 3 {
		t.Errorf("not all errors are told: %v", err)
	}
}
