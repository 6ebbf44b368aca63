package manifestpod

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// PoolNode is what a template can ask for of a node of the pool.
type PoolNode struct {
	Name     string
	Labels   map[string]string
	Features []string // by which Coxswain chooses
}

// CheckNodes refuses a job whose templates ask for labels of nodes by which Coxswain, which chooses the nodes, does not
// choose: a kubelet would refuse a pod on a node without them. nodes are the pool's.
func (w *Work) CheckNodes(s *job.Spec, nodes []PoolNode) error {
	for g, t := range w.templates {
		var good, bad []PoolNode
		for _, n := range nodes {
			switch {
			case !satisfies(n.Features, s.Groups[g].Constraint):
			case fitsNode(&t.Spec, &n):
				good = append(good, n)
			default:
				bad = append(bad, n)
			}
		}
		field := "spec.nodeSelector"
		if len(t.Spec.NodeSelector) == 0 {
			field = "spec.affinity.nodeAffinity"
		}
		switch {
		case len(bad) == 0:
		case len(good) == 0:
			return refuse(fault.Invalid, "write labels that nodes of the pool have (kubectl get nodes --show-labels), or name a pool of such nodes", "%s: none of the %d nodes of the pool has what it asks for", w.pathOf(g, "%s", field), len(bad))
		default:
			advice := "have an administrator name the label in the pool's setting features"
			if f := tellingFeature(good, bad); f != "" {
				advice = "add --constraint=" + f
			}
			return refuse(fault.Invalid, advice+"; or name a pool of those nodes alone", "%s: %d of %d nodes of the pool have what it asks for, and Coxswain, which chooses among them, does not go by it", w.pathOf(g, "%s", field), len(good), len(good)+len(bad))
		}
	}
	return nil
}

// satisfies reports whether a node's features are those that a constraint asks for.
func satisfies(features []string, c job.Constraint) bool {
	return c.IsZero() || slices.ContainsFunc(c.Alternatives, func(all []string) bool {
		return !slices.ContainsFunc(all, func(f string) bool { return !slices.Contains(features, f) })
	})
}

// tellingFeature is a feature that all of some nodes have, and none of the others; empty: there is none.
func tellingFeature(good, bad []PoolNode) string {
	for _, f := range good[0].Features {
		has := func(n PoolNode) bool { return slices.Contains(n.Features, f) }
		if !slices.ContainsFunc(bad, has) && !slices.ContainsFunc(good, func(n PoolNode) bool { return !has(n) }) {
			return f
		}
	}
	return ""
}

// fitsNode reports whether a kubelet takes a pod on its node, by the node's labels.
func fitsNode(s *corev1.PodSpec, n *PoolNode) bool {
	for k, v := range s.NodeSelector {
		if is, ok := n.Labels[k]; !ok || is != v {
			return false
		}
	}
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil || s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	return slices.ContainsFunc(s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		if len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0 {
			return false // as Kubernetes has it
		}
		fails := func(set labels.Set) func(corev1.NodeSelectorRequirement) bool {
			return func(r corev1.NodeSelectorRequirement) bool {
				want, err := labels.NewRequirement(r.Key, operatorOf(r.Operator), r.Values)
				return err != nil || !want.Matches(set)
			}
		}
		return !slices.ContainsFunc(t.MatchExpressions, fails(n.Labels)) && !slices.ContainsFunc(t.MatchFields, fails(labels.Set{metav1.ObjectNameField: n.Name}))
	})
}

// operatorOf is an operator of a node's selector as that of a label's.
func operatorOf(o corev1.NodeSelectorOperator) selection.Operator {
	switch o {
	case corev1.NodeSelectorOpIn:
		return selection.In
	case corev1.NodeSelectorOpNotIn:
		return selection.NotIn
	case corev1.NodeSelectorOpExists:
		return selection.Exists
	case corev1.NodeSelectorOpDoesNotExist:
		return selection.DoesNotExist
	case corev1.NodeSelectorOpGt:
		return selection.GreaterThan
	case corev1.NodeSelectorOpLt:
		return selection.LessThan
	}
	return selection.Operator(fmt.Sprintf("unknown %s", strings.ToLower(string(o))))
}
