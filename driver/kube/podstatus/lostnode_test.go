package podstatus

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestOffIsForgotten: an administrator's word that a node is off counts for two minutes without a newer
// list of the nodes, and no longer; the word of a kubelet stays.
//
// Seen to fail with: believed for ever.
func TestOffIsForgotten(t *testing.T) {
	off, up := corev1.Node{}, corev1.Node{}
	off.Name, off.Spec.Taints = "off", []corev1.Taint{{Key: corev1.TaintNodeOutOfService}}
	up.Name, up.Status.Conditions = "up", []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	now := time.Unix(1_000_000, 0)
	k := ReadKubelets([]corev1.Node{off, up}, now)
	for _, c := range []struct {
		node  string
		later time.Duration
		want  Kubelet
	}{
		{"off", 0, KubeletOff},
		{"off", 2 * time.Minute, KubeletOff},
		{"off", 2*time.Minute + time.Second, KubeletSilent},
		{"up", time.Hour, KubeletAnswers},
		{"other", 0, KubeletAbsent},
	} {
		if got := k.State(c.node, now.Add(c.later)); got != c.want {
			t.Errorf("node %s after %s: %d, want %d", c.node, c.later, got, c.want)
		}
	}
	if got := (Kubelets{}).State("up", now); got != KubeletUnknown {
		t.Errorf("without a list: %d", got)
	}
}
