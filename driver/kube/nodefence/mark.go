package nodefence

import (
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/engine"
)

// Key is that of the taints that are a fence, and of the annotation that says what it is for.
const Key = "coxswain.sh/fence"

// effects are those of the taints: the scheduler heeds both, also for pods that tolerate one of them; the kubelet
// refuses what does not tolerate NoExecute, whoever has given it the node.
var effects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}

// Mark is what a node says of our fence.
type Mark struct {
	engine.NodeFence      // Epoch 0: there is none
	Stands           bool // both taints are there
}

// Read finds our mark on a node.
func Read(n *corev1.Node) Mark {
	var m Mark
	has := map[corev1.TaintEffect]bool{}
	for i := range n.Spec.Taints {
		x := &n.Spec.Taints[i]
		if !IsTaint(x) {
			continue
		}
		if epoch, err := strconv.ParseUint(x.Value, 10, 64); err == nil && epoch != 0 {
			m.Epoch = max(m.Epoch, epoch)
			has[x.Effect] = true
		}
	}
	m.Stands = m.Epoch != 0 && has[corev1.TaintEffectNoSchedule] && has[corev1.TaintEffectNoExecute]
	var said engine.NodeFence
	if json.Unmarshal([]byte(n.Annotations[Key]), &said) == nil {
		if m.Epoch == 0 {
			m.Epoch = said.Epoch
		}
		if said.Epoch == m.Epoch {
			m.Reason = said.Reason
		}
	}
	return m
}

// IsTaint reports whether a taint is of a fence.
func IsTaint(x *corev1.Taint) bool { return x.Key == Key }

// withTaints are the taints of a node with those of a fence, with these effects, in the place of earlier ones.
func withTaints(taints []corev1.Taint, f engine.NodeFence, of ...corev1.TaintEffect) []corev1.Taint {
	taints = slices.DeleteFunc(slices.Clone(taints), func(x corev1.Taint) bool { return IsTaint(&x) })
	for _, e := range of {
		taints = append(taints, corev1.Taint{Key: Key, Value: strconv.FormatUint(f.Epoch, 10), Effect: e})
	}
	if taints == nil {
		taints = []corev1.Taint{} // an empty list takes the last one away
	}
	return taints
}

// toleratesFence reports whether a pod that runs would go on with our NoExecute taint.
func toleratesFence(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(o corev1.Toleration) bool {
		return (o.Key == "" && o.Operator == corev1.TolerationOpExists || o.Key == Key && o.Operator == corev1.TolerationOpExists) &&
			(o.Effect == "" || o.Effect == corev1.TaintEffectNoExecute) && o.TolerationSeconds == nil
	})
}
