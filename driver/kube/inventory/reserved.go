package inventory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
)

// ReservedNode is a node that is the pool's, or bears its taint.
type ReservedNode struct {
	Name    string
	UID     types.UID
	Version string // of its object
	Taints  []corev1.Taint
	InPool  bool // it is the pool's
}

// findReserved lists these among nodes.
func findReserved(t *settings.Terms, nodes []corev1.Node) (out []ReservedNode) {
	for i := range nodes {
		n := &nodes[i]
		k := ReservedNode{n.Name, n.UID, n.ResourceVersion, n.Spec.Taints, t.SelectsNode(n)}
		if k.InPool || k.HasPoolTaint(t) {
			out = append(out, k)
		}
	}
	return out
}

// HasPoolTaint reports whether the node bears the pool's taint.
func (k *ReservedNode) HasPoolTaint(t *settings.Terms) bool {
	return slices.ContainsFunc(k.Taints, func(x corev1.Taint) bool { return t.IsOwnTaint(&x) })
}
