package preflight

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
)

// TestCheckFindsTheNamespacesOfAccounts: each is looked at, with whose it is.
func TestCheckFindsTheNamespacesOfAccounts(t *testing.T) {
	terms := terms
	terms.Namespaces, terms.ServiceAccounts = map[string]string{"nlp": "team-nlp"}, map[string]string{"nlp": "reader"}
	say := good()
	say["/api/v1/namespaces/cox/resourcequotas"], say["/api/v1/namespaces/cox/limitranges"] = `{"items":[]}`, `{"items":[]}`
	say["/api/v1/namespaces/team-nlp/resourcequotas"] = `{"items":[{"metadata":{"name":"q"},"status":{"hard":{"pods":"7"},"used":{"pods":"1"}}}]}`
	say["/api/v1/namespaces/team-nlp/limitranges"] = `{"items":[]}`
	got := strings.Join(findings(t, surveyOf(t, &answers{say: say, denied: map[string]bool{"create pods": true}}, terms)), "\n")
	for _, want := range []string{
		"found namespace: cox, of the accounts all that have no other", "missing namespace: there is no namespace team-nlp, of the accounts nlp | kubectl create namespace team-nlp",
		"missing rights: create pods in namespace cox: jobs run in pods", "missing rights: create pods in namespace team-nlp: jobs run in pods", `--set 'namespaces={"nlp":"team-nlp"}'`,
		"found quota: namespace team-nlp: q: pods 1 of 7", "found quota: namespace cox has none", "found pull secret: pull in namespace cox", "missing pull secret: there is no pull in namespace team-nlp",
		"found paths: /home is claim home, bound", "missing paths: there is no claim home in namespace team-nlp",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestCheckFindsTheQueuesOfAccounts: Kueue's queue is looked for in each namespace of jobs. Seen to
// fail with the pool's own namespace alone.
func TestCheckFindsTheQueuesOfAccounts(t *testing.T) {
	terms := terms
	terms.Gang, terms.Approximate, terms.Queue = render.Kueue, true, "q"
	terms.Namespaces, terms.OnlyNamed = map[string]string{"nlp": "team-nlp", "law": "team-law"}, true
	say := good()
	say["/apis"] = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"kueue.x-k8s.io"},"versions":[{"version":"v1beta2","resources":[{"resource":"workloads","scope":"Namespaced"}]}]}]}`
	for _, ns := range []string{"team-nlp", "team-law"} {
		say["/api/v1/namespaces/"+ns+"/resourcequotas"], say["/api/v1/namespaces/"+ns+"/limitranges"] = `{"items":[]}`, `{"items":[]}`
	}
	const queues = "/apis/kueue.x-k8s.io/v1beta2/"
	say[queues+"namespaces/team-law/localqueues/q"] = `{"spec":{"clusterQueue":"all"}}`
	say[queues+"clusterqueues/all"] = `{"spec":{"resourceGroups":[{"flavors":[{"name":"plain"}]}]}}`
	say[queues+"resourceflavors/plain"] = `{"spec":{}}`
	got := strings.Join(findings(t, surveyOf(t, &answers{say: say}, terms)), "\n")
	for _, want := range []string{"warning queue: flavor plain of team-law/q has no Topology", "missing queue: nothing begins by team-nlp/q: get localqueues.kueue.x-k8s.io team-nlp/q: not found | kubectl apply a LocalQueue q in namespace team-nlp"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
