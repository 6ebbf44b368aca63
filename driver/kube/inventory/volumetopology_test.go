package inventory

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestWhereVolumesCanBe: a volume's node affinity is read as Kubernetes documents it: one of the
// terms holds, and all of its requirements; a term without any holds nowhere. Labels of zones,
// which older volumes have in its place, hold where a node says in which zone it is.
func TestWhereVolumesCanBe(t *testing.T) {
	node := &corev1.Node{}
	node.Name, node.Labels = "n1", map[string]string{"zone": "a", "gen": "7", "topology.kubernetes.io/zone": "z1"}
	for text, want := range map[string]bool{
		`{}`: true,
		`{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}}}`:                                                                            true,
		`{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["c"]}]}]}}}}`:                                                                                false,
		`{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["c"]}]},{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}}}}`:      true,
		`{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]},{"key":"none","operator":"Exists"}]}]}}}}`:                                             false,
		`{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"Exists"},{"key":"none","operator":"DoesNotExist"},{"key":"none","operator":"NotIn","values":["x"]}]}]}}}}`: true,
		`{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}]}]}}}}`:                                                                             false,
		`{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"gen","operator":"Gt","values":["6"]},{"key":"gen","operator":"Lt","values":["8"]}]}]}}}}`:                                    true,
		`{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"gen","operator":"Gt","values":["7"]}]}]}}}}`:                                                                                 false,
		`{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n2"]}]}]}}}}`:                                                                           false,
		`{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{}]}}}}`:                                                                                                                                                  false,
		`{"metadata":{"labels":{"topology.kubernetes.io/zone":"z1"}}}`:                                                                                                                                                       true,
		`{"metadata":{"labels":{"topology.kubernetes.io/zone":"z2__z1"}}}`:                                                                                                                                                   true,
		`{"metadata":{"labels":{"failure-domain.beta.kubernetes.io/zone":"z1"}}}`:                                                                                                                                            true,
		`{"metadata":{"labels":{"topology.kubernetes.io/zone":"z2"}}}`:                                                                                                                                                       false,
		`{"metadata":{"labels":{"topology.kubernetes.io/zone":"z1","topology.kubernetes.io/region":"r"}}}`:                                                                                                                   false,
	} {
		var v corev1.PersistentVolume
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if got := placeOf(&v).containsNode(node); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	var v corev1.PersistentVolume
	v.Labels = map[string]string{"topology.kubernetes.io/zone": "z2"}
	if !placeOf(&v).containsNode(&corev1.Node{}) {
		t.Error("a node that says nothing of zones is kept from a volume that does")
	}
}
