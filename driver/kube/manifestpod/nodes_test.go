package manifestpod_test

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube/manifestpod"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// TestCheckNodes: a selector of nodes passes where all nodes that Coxswain could choose have what it asks for; else it
// is refused with the constraint that would do.
func TestCheckNodes(t *testing.T) {
	nodes := []manifestpod.PoolNode{
		{Name: "n1", Labels: map[string]string{"gpu": "a100", "disk": "ssd", "count": "8"}, Features: []string{"a100", "amd64"}},
		{Name: "n2", Labels: map[string]string{"gpu": "a100", "count": "8"}, Features: []string{"a100", "amd64"}},
		{Name: "n3", Labels: map[string]string{"gpu": "h100", "count": "4"}, Features: []string{"amd64", "h100"}},
	}
	affinity := func(terms string) string {
		return `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` + terms + `]}}}`
	}
	for _, c := range []struct{ spec, constraint, wrong, mend string }{
		{``, "", "", ""},
		{`"nodeSelector":{"gpu":"a100"}`, "", "spec.nodeSelector: 2 of 3 nodes", "add --constraint=a100"},
		{`"nodeSelector":{"gpu":"a100"}`, "a100", "", ""},
		{`"nodeSelector":{"gpu":"a100"}`, "h100", "none of the 1 nodes", "kubectl get nodes"},
		{`"nodeSelector":{"disk":"ssd"}`, "", "1 of 3 nodes", "setting features"},
		{`"nodeSelector":{"disk":"tape"}`, "", "none of the 3 nodes", "kubectl get nodes"},
		{affinity(`{"matchExpressions":[{"key":"gpu","operator":"In","values":["a100","h100"]},{"key":"count","operator":"Gt","values":["3"]}]}`), "", "", ""},
		{affinity(`{"matchExpressions":[{"key":"gpu","operator":"NotIn","values":["h100"]}]}`), "", "spec.affinity.nodeAffinity: 2 of 3", "--constraint=a100"},
		{affinity(`{"matchExpressions":[{"key":"disk","operator":"Exists"}]},{"matchExpressions":[{"key":"disk","operator":"DoesNotExist"}]}`), "", "", ""},
		{affinity(`{"matchFields":[{"key":"metadata.name","operator":"In","values":["n3"]}]}`), "", "1 of 3", "--constraint=h100"},
		{affinity(`{}`), "", "none of the 3", ""},
		{affinity(`{"matchExpressions":[{"key":"count","operator":"Lt","values":["5"]}]}`), "h100", "", ""},
	} {
		var spec *job.Spec
		_, w, err := attemptOf(t, podWith(c.spec), &settings.Terms{Placed: true}, func(_ *podspec.Set, s *job.Spec) {
			if spec = s; c.constraint != "" {
				s.Groups[0].Constraint.Alternatives = [][]string{{c.constraint}}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		err = w.CheckNodes(spec, nodes)
		if (err == nil) != (c.wrong == "") || err != nil && (!strings.Contains(err.Error(), c.wrong) || !strings.Contains(fault.Remedy(err), c.mend)) {
			t.Errorf("%s with %q: %v (%s)", c.spec, c.constraint, err, fault.Remedy(err))
		}
	}
}
