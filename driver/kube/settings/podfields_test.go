package settings_test

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestPermits: what reaches beyond a job is asked for where the pool allows it, and nowhere
// else. Seen to fail with: an allowance left out of asked.
func TestPermits(t *testing.T) {
	all := &job.Pod{
		SharedMemory: 1, HostNetwork: true, LockMemory: true, ServiceAccount: "a", RuntimeClass: "a", PriorityClass: "a",
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b c"}, NodeSelector: map[string]string{"a": "b"}, Tolerations: []string{"a"},
	}
	for _, a := range settings.FieldAllowances() {
		some := []string{}
		for _, b := range settings.Allowances() {
			if b != a {
				some = append(some, b)
			}
		}
		terms := settings.Terms{Allow: some}
		if err := terms.CheckPodFields(all); fault.KindOf(err) != fault.Permission || !strings.Contains(err.Error(), a+":") || fault.Remedy(err) == "" {
			t.Errorf("without %s: %v", a, err)
		}
	}
	terms := settings.Terms{Allow: settings.Allowances()}
	if err := terms.CheckPodFields(all); err != nil {
		t.Error(err)
	}
	terms = settings.Terms{}
	if err := terms.CheckPodFields(&job.Pod{SharedMemory: 1, NodeSelector: map[string]string{"a": "b"}}); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]struct {
		placed bool
		pod    job.Pod
	}{
		"node_selector: Coxswain chooses": {true, job.Pod{NodeSelector: map[string]string{"a": "b"}}},
		"tolerations: Coxswain chooses":   {true, job.Pod{Tolerations: []string{"a"}}},
		`tolerations: "a=b:Never"`:        {false, job.Pod{Tolerations: []string{"a=b:Never"}}},
		`"coxswain.sh/pool": nodes with`:  {false, job.Pod{Tolerations: []string{"coxswain.sh/pool"}}},
		`runtime_class: "A"`:              {false, job.Pod{RuntimeClass: "A"}},
		`labels: a: "b c"`:                {false, job.Pod{Labels: map[string]string{"a": "b c"}}},
		"annotations: coxswain.sh/job":    {false, job.Pod{Annotations: map[string]string{"coxswain.sh/job": "1"}}},
		`node_selector: "a b"`:            {false, job.Pod{NodeSelector: map[string]string{"a b": "b"}}},
	} {
		terms := settings.Terms{Allow: settings.Allowances(), Placed: c.placed}
		if err := terms.CheckPodFields(&c.pod); err == nil || !strings.Contains(err.Error(), want) || fault.Remedy(err) == "" {
			t.Errorf("%s: %v", want, err)
		}
	}
}
