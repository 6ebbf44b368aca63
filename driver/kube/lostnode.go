package kube

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/engine"
)

// A pod of which its kubelet says nothing any more is uncertain, and its node is not freed: nobody
// can know that nothing of it lives. Who can is who stands before the machine. Kubernetes has a word
// for what they know, the taint node.kubernetes.io/out-of-service ("non-graceful node shutdown",
// stable since 1.28): by it volumes are detached from the node and given to others.

// voice is what is known of a node's kubelet.
type voice int8

const (
	unlooked voice = iota // nobody has looked at the nodes yet
	absent                // the cluster has no node of that name
	spoken                // it answers, be its node ready or not
	silent                // it does not
	off                   // it does not, and an administrator says that the machine is off
)

// believed is for how long what an administrator has said of a node counts without another look.
const believed = 2 * time.Minute

// voicesOf are the nodes of a look, the pool's or not any more. A kubelet that says of its node that it is
// not ready answers: the cluster calls Unknown what it has heard nothing of for a while.
func voicesOf(all []corev1.Node) map[string]voice {
	out := make(map[string]voice, len(all))
	for i := range all {
		n := &all[i]
		switch {
		case slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && (c.Status == corev1.ConditionTrue || c.Status == corev1.ConditionFalse)
		}):
			out[n.Name] = spoken
		case slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }):
			out[n.Name] = off
		default:
			out[n.Name] = silent
		}
	}
	return out
}

// noteKubelets keeps what a look has shown of the nodes' kubelets, whatever else of it fails.
func (s *Survey) noteKubelets(all []corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.voices, s.voiced = voicesOf(all), time.Now()
}

// kubeletVoice is what the last look has shown of a node's kubelet.
func (s *Survey) kubeletVoice(node string) voice {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.voices[node]
	switch {
	case s.voices == nil:
		return unlooked
	case !ok:
		return absent
	case v == off && time.Since(s.voiced) > believed: // the machine may be back
		return silent
	}
	return v
}

// onSilence takes a member of which nobody can say anything for ended, if its node is off, and else
// says what would prove it.
func (m *member) onSilence(node string, s *Survey) {
	if !m.unsure || m.over || node == "" {
		return
	}
	switch s.kubeletVoice(node) {
	case off:
		m.over, m.lost, m.unsure, m.phase, m.cause = true, true, false, engine.Ended, engine.NodeLost
		m.why += fmt.Sprintf("; node %s is out of service, as its taint says", node)
	case silent:
		m.why += fmt.Sprintf("; if the machine is off: kubectl taint node %s %s=nodeshutdown:NoExecute", node, corev1.TaintNodeOutOfService)
	case absent:
		m.why += fmt.Sprintf(`; node %s is not in the cluster any more; if the machine is off: echo '{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"spec":{"taints":[{"key":%q,"value":"nodeshutdown","effect":"NoExecute"}]}}' | kubectl create -f -`, node, node, corev1.TaintNodeOutOfService)
	}
}

// isNodeSilent reports whether the kubelet of a member's node did not answer at the last look.
func (e *Engine) isNodeSilent(a *attempt, i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := e.kubeletVoice(e.nodeOf(a, i))
	return v == silent || v == off
}

// markLostWithNode changes how an attempt ended that is said not to have begun, where a member was lost with its
// node: nobody can say that nothing of it had begun there.
func markLostWithNode(w *engine.Report, members []member) {
	i := slices.IndexFunc(members, func(m member) bool { return m.lost })
	if i < 0 || orLost(w.Cause) == w.Cause {
		return
	}
	w.Cause, w.Message = engine.NodeLost, strings.TrimPrefix(w.Message+"; "+members[i].why, "; ")
}

// recheckLost has the attempts looked at of which nobody can say whether they ended, and pods of nobody of
// which that is so.
func (e *Engine) recheckLost() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.attempts {
		if !a.ended && a.report.Uncertain {
			a.wakeUp()
		}
	}
	if len(e.graves) > 0 {
		e.wakeCleanup()
	}
}
