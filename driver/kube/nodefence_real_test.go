package kube_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/enginetest"
	"github.com/coxswain-sched/coxswain/model/fault"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// outside is what the contract of fences does on nodes past the driver: pods that name their node, so that no
// scheduler is asked, and kubectl cordon.
//
// Seen to fail with: the NoSchedule taint alone, which kubelets do not ask for; pods that run and are not given the
// toleration.
func (b *bench) outside() enginetest.Outside {
	var count atomic.Int64
	return enginetest.Outside{
		Start: func(t *testing.T, _ engine.Engine, node string) (runs bool, end func()) {
			name := fmt.Sprintf("past-us-%d-%d", time.Now().UnixNano(), count.Add(1))
			b.l.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: default}, spec: {nodeName: %s, restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: c, image: %s, command: [/bin/sleep, '600']}]}}", name, node, lab.Base))
			k := openBy(t, b.l.Kubeconfig())
			until(t, "the kubelet has decided about pod "+name, func() bool {
				var p corev1.Pod
				err := k.Get(t.Context(), cluster.Pods, "default", name, &p)
				if err != nil && fault.KindOf(err) != fault.NotFound {
					t.Fatal(err)
				}
				runs = err == nil && p.Status.Phase == corev1.PodRunning
				return runs || err != nil || p.Status.Phase == corev1.PodFailed // which a kubelet that refuses it says
			})
			return runs, func() { b.l.Kubectl(t, "delete", "pod", name, "--ignore-not-found", "--wait=false") }
		},
		Drain: func(t *testing.T, _ engine.Engine, node, why string) {
			if why == "" {
				if _, err := b.l.Try(context.Background(), "", "uncordon", node); err != nil { // after the test too
					t.Error(err)
				}
				return
			}
			b.l.Kubectl(t, "cordon", node)
		},
		Silence: func(t *testing.T, _ engine.Engine, node string) (restore func()) {
			b.l.Freeze(t, "kubelet."+node)
			b.l.Kubectl(t, "patch", "node", node, "--subresource=status", "--type=strategic", "-p", // as the node controller does after a while
				`{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","message":"Kubelet stopped posting node status."}]}}`)
			return func() { b.l.Thaw(t, "kubelet."+node) }
		},
	}
}
