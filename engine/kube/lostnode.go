package kube

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/engine"
)

// A pod of which its kubelet says nothing any more is uncertain, and its node is not freed: nobody
// can know that nothing of it lives. Who can is who stands before the machine. Kubernetes has a word
// for what they know, the taint node.kubernetes.io/out-of-service ("non-graceful node shutdown",
// stable since 1.28): by it volumes are detached from the node and given to others.

// darkOf are the nodes of a look whose kubelets do not answer, the pool's or not any more: true where
// an administrator says that the node is off. A kubelet that says of its node that it is not ready
// answers: the cluster calls Unknown what it has heard nothing of for a while.
func darkOf(all []corev1.Node) map[string]bool {
	dark := map[string]bool{}
	for i := range all {
		n := &all[i]
		if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && (c.Status == corev1.ConditionTrue || c.Status == corev1.ConditionFalse)
		}) {
			dark[n.Name] = slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
		}
	}
	return dark
}

// isDark reports whether a node's kubelet did not answer at the last look, and whether the node is off.
func (s *Survey) isDark(node string) (dark, off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	off, dark = s.dark[node]
	return dark, off
}

// onDark takes a member of which nobody can say anything for ended, if its node is off, and else
// says what would prove it.
func (m *member) onDark(node string, isDark func(string) (dark, off bool)) {
	if !m.unsure || m.over || node == "" {
		return
	}
	switch dark, off := isDark(node); {
	case off:
		m.over, m.lost, m.unsure, m.phase, m.cause = true, true, false, engine.Ended, engine.NodeLost
		m.why += fmt.Sprintf("; node %s is out of service, as its taint says", node)
	case dark:
		m.why += fmt.Sprintf("; if the machine is off: kubectl taint node %s %s=nodeshutdown:NoExecute", node, corev1.TaintNodeOutOfService)
	}
}

// silenced reports whether a member's kubelet says nothing any more. What it said last of why the pod does
// not begin may be long mended: the pod is not given up for that.
func (e *Engine) silenced(a *attempt, i int, m member) bool {
	if m.unsure {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	dark, _ := e.isDark(e.nodeOf(a, i))
	return dark
}

// bereave changes how an attempt ended that is said not to have begun, where a member was lost with its
// node: nobody can say that nothing of it had begun there.
func bereave(w *engine.Report, members []member) {
	i := slices.IndexFunc(members, func(m member) bool { return m.lost })
	if i < 0 || orLost(w.Cause) == w.Cause {
		return
	}
	w.Cause, w.Message = engine.NodeLost, strings.TrimPrefix(w.Message+"; "+members[i].why, "; ")
}

// mourn has the attempts looked at of which nobody can say whether they ended, and pods of nobody of
// which that is so.
func (e *Engine) mourn() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.attempts {
		if !a.ended && a.report.Uncertain {
			a.nudge()
		}
	}
	if len(e.graves) > 0 {
		e.dig()
	}
}
