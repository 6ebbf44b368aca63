package podstatus

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/engine"
)

// A pod of which its kubelet says nothing any more is uncertain, and its node is not freed: nothing
// proves that its containers have ended. An administrator can know that the machine is off, and
// says so by the taint node.kubernetes.io/out-of-service ("non-graceful node shutdown", stable since
// Kubernetes 1.28), by which the cluster also detaches the node's volumes and gives them to others.

// Kubelet is what is known of a node's kubelet.
type Kubelet int8

const (
	KubeletUnknown Kubelet = iota // the nodes were not listed yet
	KubeletAbsent                 // the cluster has no node of that name
	KubeletAnswers                // it answers, be its node ready or not
	KubeletSilent                 // it does not
	KubeletOff                    // it does not, and an administrator says that the machine is off
)

// believed is how long an administrator's word about a node counts without a newer list of nodes.
const believed = 2 * time.Minute

// Kubelets is what one list of the nodes showed of their kubelets. The zero value stands for no list.
type Kubelets struct {
	states map[string]Kubelet // by node
	at     time.Time          // when the nodes were listed
}

// ReadKubelets reads a list of nodes, the pool's or not any more. A kubelet that says of its node
// that it is not ready answers: the cluster calls Unknown what it has heard nothing of for a while.
func ReadKubelets(all []corev1.Node, now time.Time) Kubelets {
	out := make(map[string]Kubelet, len(all))
	for i := range all {
		n := &all[i]
		switch {
		case slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && (c.Status == corev1.ConditionTrue || c.Status == corev1.ConditionFalse)
		}):
			out[n.Name] = KubeletAnswers
		case slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }):
			out[n.Name] = KubeletOff
		default:
			out[n.Name] = KubeletSilent
		}
	}
	return Kubelets{out, now}
}

// State is what the list showed of a node's kubelet.
func (k Kubelets) State(node string, now time.Time) Kubelet {
	v, ok := k.states[node]
	switch {
	case k.states == nil:
		return KubeletUnknown
	case !ok:
		return KubeletAbsent
	case v == KubeletOff && now.Sub(k.at) > believed: // the machine may be back
		return KubeletSilent
	}
	return v
}

// OnSilence ends an uncertain member whose node is off, and says of the others what would prove
// their end. kubelet says what is known of a node's kubelet.
func (m *Member) OnSilence(node string, kubelet func(node string) Kubelet) {
	if !m.Uncertain || m.Over || node == "" {
		return
	}
	switch kubelet(node) {
	case KubeletOff:
		m.Over, m.lost, m.Uncertain, m.Phase, m.Cause = true, true, false, engine.Ended, engine.NodeLost
		m.Why += fmt.Sprintf("; node %s is out of service, as its taint says", node)
	case KubeletSilent:
		m.Why += fmt.Sprintf("; if the machine is off: kubectl taint node %s %s=nodeshutdown:NoExecute", node, corev1.TaintNodeOutOfService)
	case KubeletAbsent:
		m.Why += fmt.Sprintf(`; node %s is not in the cluster any more; if the machine is off: echo '{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"spec":{"taints":[{"key":%q,"value":"nodeshutdown","effect":"NoExecute"}]}}' | kubectl create -f -`, node, node, corev1.TaintNodeOutOfService)
	}
}

// markLostWithNode changes how an attempt ended that is said not to have begun, where a member was lost with its
// node: nobody can say that nothing of it had begun there.
func markLostWithNode(w *engine.Report, members []Member) {
	i := slices.IndexFunc(members, func(m Member) bool { return m.lost })
	if i < 0 || orLost(w.Cause) == w.Cause {
		return
	}
	w.Cause, w.Message = engine.NodeLost, strings.TrimPrefix(w.Message+"; "+members[i].Why, "; ")
}
