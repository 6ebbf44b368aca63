package podstatus

import (
	"testing"
)

// TestWhyThereIsNoNode: the messages are those that kube-scheduler of 1.36 was seen to give, in
// pods' conditions. Seen to fail with: a word of it that is not known; a pod of which nothing was
// said taken for one that has a node.
func TestWhyThereIsNoNode(t *testing.T) {
	const (
		gang  = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more plugins asked to wait and no plugin rejected pod"
		apart = "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. no new claims to deallocate, preemption: not eligible due to workload aware preemption enabled"
	)
	for _, c := range []struct {
		says []string // of each pod; empty: nothing was said; "has one": it has a node
		want string
	}{
		{[]string{"", ""}, ""},
		{[]string{"no nodes available to schedule pods"}, "Kubernetes' scheduler has no node for it: it knows no nodes"},
		{
			[]string{"0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."},
			"Kubernetes' scheduler has no node for it: of 2 nodes: 2 have too little nvidia.com/gpu",
		},
		{[]string{"0/4 nodes are available: 4 cannot allocate all claims. still not schedulable, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."}, "Kubernetes' scheduler has no node for it: of 4 nodes: 4 have too few free devices of those that are asked for"},
		{[]string{gang, apart, gang}, "Kubernetes' scheduler has no nodes for its 3 pods, which begin together: of 2 nodes: 2 have a pod of this job already"},
		{[]string{gang, gang}, "Kubernetes' scheduler has no nodes for its 2 pods, which begin together: not all pods find one"},
		{[]string{"0/1 nodes are available: 1 optimistic rejection in PostFilter.", ""}, "Kubernetes' scheduler has no nodes for its 2 pods, which begin together: not all pods find one"},
		{[]string{"", gang}, "Kubernetes' scheduler has no nodes for its 2 pods, which begin together: not all pods find one"},
		{[]string{"has one", apart}, "Kubernetes' scheduler has no nodes for 1 of its 2 pods: of 2 nodes: 2 have a pod of this job already"},
		{
			[]string{"0/5 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {a: b}, 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector. preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."},
			"Kubernetes' scheduler has no node for it: of 5 nodes: 1 has too little cpu, 1 has a taint that the pool does not tolerate {a: b}, 1 is cordoned, 2 miss a label of the pool's node_selector",
		},
		{[]string{"0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."}, "Kubernetes' scheduler has no node for it: of 1 node: pod has unbound immediate PersistentVolumeClaims"},
		{[]string{"something of tomorrow"}, "Kubernetes' scheduler has no node for it: something of tomorrow"},
	} {
		var members []Member
		for _, s := range c.says {
			m := Member{waiting: s}
			if s == "has one" {
				m = Member{Placed: true}
			}
			members = append(members, m)
		}
		if got := PendingReason(members); got != c.want {
			t.Errorf("%q:\n%s\nwant\n%s", c.says, got, c.want)
		}
	}
}
