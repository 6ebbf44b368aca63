package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec"
)

func TestParse(t *testing.T) {
	got, err := Parse("queues.yaml", []byte(`
flavors: [{name: h100, gpu_type: h100}]
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
		Flavors:  []account.Flavor{{Name: "h100", GPUType: "h100"}},
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
		{"accounts: [{name: a, limits: {wall: 3x}}]\n", "1:37", "is not a length of time"},
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
	for _, tt := range contradictions {
		_, err := Parse("q.yaml", []byte(tt.in))
		var e *spec.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "q.yaml:"+tt.place) || !strings.Contains(err.Error(), tt.want) || e.Line == 0 || len(e.Others) > 0 {
			t.Errorf("%q: %v, want %s … %s", tt.in, err, tt.place, tt.want)
		}
	}
	_, err := Parse("q.yaml", []byte("a: 1\nb: 2\npriority: {age: x}\n"))
	if err == nil || strings.Count(err.Error(), "q.yaml:") != 3 {
		t.Errorf("not all errors are told: %v", err)
	}
}

// contradictions are documents that make no sense together, each for one reason.
var contradictions = []struct{ in, place, want string }{
	{"accounts: [a, b, a]\n", "1:18", "accounts[2].name: a is there twice"},
	{"accounts:\n  - {name: a, parent: x}\n", "2:23", `accounts[0].parent: there is no account "x"`},
	{"accounts: [{name: a, parent: root}]\n", "1:30", "leave the parent out"},
	{"accounts: [root, a]\n", "1:18", "write parent: root"},
	{"accounts:\n  - {name: a, parent: c}\n  - {name: b, parent: a}\n  - {name: c, parent: b}\n", "2:23", "the tree is a circle: a > b > c > a"},
	{"accounts: [{name: a, parent: a}]\n", "1:30", "the tree is a circle: a > a"},
	{"accounts: [{name: a, users: [u, v, u]}]\n", "1:36", "u is in account a twice"},
	{"accounts:\n  - {name: a, users: [{name: u, default: true}]}\n  - {name: b, users: [{name: u, default: true}]}\n", "3:42", "u has a as the default account already"},
	{"accounts: [{name: a, qos: [x]}]\n", "1:28", `there is no QOS "x"`},
	{"qos: [x, y]\naccounts: [{name: a, qos: x, default_qos: y}]\n", "2:43", "is not among the QOS that a may use"},
	{"accounts: [{name: a, shares: -5}]\n", "1:30", "is not between"},
	{"accounts: [{name: a, limits: {user: {gpu: 1}}}]\n", "1:31", "only a QOS has such a limit"},
	{"accounts: [{name: a, users: [{name: u, limits: {user_jobs: 1}}]}]\n", "1:60", "only a QOS has such a limit"},
	{"accounts: [{name: a, limits: {group: {license/m: 1}}}]\n", "1:50", `there is no licence "m"`},
	{"qos: [{name: a, preempts: b}, {name: b, preempts: a}]\n", "1:27", "would stop each other for ever"},
	{"qos: [{name: a, preempts: [a]}]\n", "1:28", "a cannot preempt itself"},
	{"qos: [{name: a, usage_threshold: 1.5}]\n", "1:34", "more than any fair-share factor"},
	{"qos: [{name: a, flags: [relative], limits: {group: {billing: 50}}}]\n", "1:", "there is no whole of billing"},
	{"qos: [{name: a, flags: [relative]}]\npartitions: [{name: p, qos: a}, {name: q, qos: a}]\n", "1:", "a is the QOS of partitions p and q"},
	{"priority: {age: 1, flags: [incr_only]}\n", "1:28", "incr_only is not built"},
	{"priority: {age: 1, flags: [calculate_running]}\n", "1:28", "calculate_running is not built"},
	{"priority: {age: 1, max_age: 99999d}\n", "1:29", "longer than can be reckoned"},
	{"reservations: [{name: r, start: \"1800-12-01T08:00:00Z\", duration: 2h}]\n", "1:33", "too far away"},
	{"reservations: [{name: r, start: \"2026-12-01T08:00:00Z\", duration: 20000d}]\n", "1:67", "lasts longer than can be reckoned"},
	{"partitions: [{name: p, min_nodes: 3, max_nodes: 2}]\n", "1:35", "is more than max_nodes"},
	{"partitions: [{name: p, allow_accounts: [x]}]\n", "1:41", `there is no account "x"`},
	{"partitions: [{name: p, qos: x}]\n", "1:29", `there is no QOS "x"`},
	{"qos: [x]\npartitions: [{name: p, allow_qos: x, deny_qos: x}]\n", "2:48", "allow_qos says already"},
	{"licenses: [{name: m, count: 1}, {name: m, count: 2}]\n", "1:40", "m is there twice"},
	{"accounts: [{name: a, quota: {flavors: [{flavor: x, resources: [{name: gpu, nominal: 1}]}]}}]\n", "1:49", `there is no flavour "x"`},
	{"flavors: [x]\naccounts: [{name: a, quota: {flavors: [{flavor: x, resources: [{name: gpu, nominal: 1, lend: 2}]}]}}]\n", "2:94", "more is lent than there is"},
	{"flavors: [x]\naccounts: [{name: a, quota: {flavors: [{flavor: x, resources: [{name: gpu, nominal: 1}, {name: gpu, nominal: 2}]}]}}]\n", "2:96", "gpu is there twice"},
	{"flavors: [x, y]\naccounts:\n  - name: a\n    quota:\n      flavors:\n        - {flavor: x, resources: [{name: gpu, nominal: 1}]}\n        - {flavor: y, resources: [{name: gpu, nominal: 1}, {name: cpu, nominal: 1}]}\n", "7:23", "y has cpu, gpu and x has gpu"},
	{"accounts: [b, {name: a, parent: b, quota: {fair: true}}]\n", "1:50", "is not the root of its tree"},
	{"accounts: [{name: a, quota: {fair: true, strategies: [initial-share, final-share]}}]\n", "1:42", "cannot be combined so"},
	{"accounts: [{name: a, quota: {borrowing: lower-priority}}]\n", "1:41", "nothing is reclaimed"},
	{"accounts: [{name: a, quota: {max_priority: 3}}]\n", "1:44", "it stops nobody"},
	{"accounts: [{name: a, quota: {reclaim: al}}]\n", "1:39", "words: lower-priority, any"},
	{"accounts: [{name: a, quota: {weight: -1}}]\n", "1:38", "is negative"},
	{"preemption: {by: [qso]}\n", "1:19", "did you mean qos?"},
}
