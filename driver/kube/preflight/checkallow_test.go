package preflight

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
)

// TestCheckAllowances: the check of a pool says what its jobs may use beyond their pods, and warns of what makes them
// root on their nodes.
func TestCheckAllowances(t *testing.T) {
	for _, c := range []struct {
		allow    []string
		says     string
		warnings int
	}{
		{nil, "nothing beyond their own pods", 0},
		{[]string{"secrets", "volume/nfs"}, "beyond their own pods: secrets, volume/nfs", 0},
		{settings.Allowances(), "host_path", 3},
	} {
		l := scan{terms: settings.Terms{Pool: "k8s", Allow: c.allow}}
		if err := l.checkAllowances(t.Context()); err != nil {
			t.Fatal(err)
		}
		warnings := 0
		for _, f := range l.found {
			if f.State == engine.Warning && f.Mend != "" {
				warnings++
			}
		}
		if !strings.Contains(l.found[0].Text, c.says) || warnings != c.warnings {
			t.Errorf("%v: %+v", c.allow, l.found)
		}
	}
}
