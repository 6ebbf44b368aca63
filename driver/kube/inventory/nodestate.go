package inventory

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/nodefence"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// nodeState is whether new work may start on a node, and why not: the heaviest reason decides,
// all are said.
func nodeState(t *settings.Terms, n *corev1.Node) (fleet.NodeState, string) {
	level := fleet.Up
	var why []string
	say := func(l fleet.NodeState, format string, args ...any) {
		level = worseState(level, l)
		why = append(why, fmt.Sprintf(format, args...))
	}
	if l, text := nodeReadiness(n); l != fleet.Up {
		say(l, "%s", text)
	}
	if n.DeletionTimestamp != nil {
		say(fleet.Draining, "it is being deleted")
	}
	if n.Spec.Unschedulable {
		say(fleet.Draining, "cordoned (kubectl uncordon %s)", n.Name)
	}
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady && c.Status == corev1.ConditionTrue && isPressureCondition(c.Type) {
			say(fleet.Draining, "%s", conditionText(string(c.Type), c.Reason, c.Message))
		}
	}
	for _, x := range n.Spec.Taints {
		if nodefence.IsTaint(&x) { // Node.Fence says it
			level = worseState(level, fleet.Draining)
			continue
		}
		if x.Effect == corev1.TaintEffectPreferNoSchedule || isNodeConditionTaint(x.Key) || t.ToleratesTaint(&x) {
			continue
		}
		say(fleet.Draining, "the taint %s, which the pool does not tolerate", x.ToString())
	}
	if system := n.Labels[corev1.LabelOSStable]; system != "" && system != "linux" {
		say(fleet.Draining, "it runs %s", system)
	}
	return level, strings.Join(why, "; ")
}

// worseState is the worse of two states: who is silent may hold work, so that is said first.
func worseState(a, b fleet.NodeState) fleet.NodeState {
	order := []fleet.NodeState{fleet.Up, fleet.Draining, fleet.Down, fleet.Unknown}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

func nodeReadiness(n *corev1.Node) (fleet.NodeState, string) {
	i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return fleet.Unknown, "its kubelet has not reported yet"
	}
	switch c := n.Status.Conditions[i]; c.Status {
	case corev1.ConditionTrue:
		return fleet.Up, ""
	case corev1.ConditionFalse:
		return fleet.Down, conditionText("NotReady", c.Reason, c.Message)
	default:
		return fleet.Unknown, conditionText("its kubelet is silent since "+c.LastTransitionTime.UTC().Format("2006-01-02 15:04:05Z"), c.Reason, c.Message)
	}
}

// nodeHealth lists the conditions of a node as checks. Kubernetes keeps pods off a node for those that fail
// here. A condition of others, as of the node problem detector, names a problem, and warns: Kubernetes does
// not act upon it.
func nodeHealth(n *corev1.Node) []fleet.CheckResult {
	out := make([]fleet.CheckResult, 0, len(n.Status.Conditions))
	for _, c := range n.Status.Conditions {
		r := fleet.CheckResult{Check: string(c.Type), Verdict: fleet.Passed, From: "kubernetes", Text: conditionText(string(c.Type)+"="+string(c.Status), c.Reason, c.Message)}
		switch {
		case c.Type == corev1.NodeReady:
			if c.Status != corev1.ConditionTrue {
				r.Verdict = fleet.Failed
			}
		case c.Status == corev1.ConditionUnknown:
			r.Verdict = fleet.Unsure
		case c.Status == corev1.ConditionTrue && isPressureCondition(c.Type):
			r.Verdict = fleet.Failed
		case c.Status == corev1.ConditionTrue:
			r.Verdict = fleet.Warned
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b fleet.CheckResult) int { return strings.Compare(a.Check, b.Check) })
	return out
}

func conditionText(what, reason, message string) string {
	switch {
	case message != "":
		return what + ": " + message
	case reason != "":
		return what + ": " + reason
	}
	return what
}

func isPressureCondition(kind corev1.NodeConditionType) bool {
	return slices.Contains([]corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable}, kind)
}

// isNodeConditionTaint reports whether a taint says what a condition or the specification of the node says
// too: it is not said twice.
func isNodeConditionTaint(key string) bool {
	return strings.HasPrefix(key, "node.kubernetes.io/") && key != corev1.TaintNodeOutOfService
}
