package podstatus

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
)

// drawPod is a pod in any state, also in those that none has.
func drawPod(t *rapid.T) *corev1.Pod {
	text := func(name string, of ...string) string {
		return rapid.SampledFrom(append([]string{""}, of...)).Draw(t, name)
	}
	state := func() (s corev1.ContainerState) {
		switch rapid.IntRange(0, 3).Draw(t, "state") {
		case 1:
			s.Waiting = &corev1.ContainerStateWaiting{Reason: text("waits", "ErrImagePull", "InvalidImageName", "ContainerCreating"), Message: text("says", "m")}
		case 2:
			s.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Unix(100, 0)}
		case 3:
			s.Terminated = &corev1.ContainerStateTerminated{
				ExitCode: rapid.SampledFrom([]int32{0, 1, 137}).Draw(t, "exit"), Reason: text("ended", "OOMKilled", "Error"),
				Message: text("word", "plain", `{"ref":{"allocation":7,"attempt":1},"cause":"stopped"}`, `{"ref":{"allocation":7,"attempt":1},"cause":"exited","started":"2026-03-01T12:00:00Z"}`), StartedAt: metav1.Unix(100, 0),
				FinishedAt: metav1.Unix(rapid.SampledFrom([]int64{200, 2990}).Draw(t, "finished"), 0),
			}
		}
		return s
	}
	statuses := func(names ...string) (out []corev1.ContainerStatus) {
		for _, n := range names {
			if rapid.Bool().Draw(t, n) {
				yes := rapid.Bool().Draw(t, "started")
				out = append(out, corev1.ContainerStatus{Name: n, Image: "image", ImageID: "id", ContainerID: text("id", "containerd://x"), State: state(), Started: &yes, RestartCount: rapid.SampledFrom([]int32{0, 3}).Draw(t, "again")})
			}
		}
		return out
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		CreationTimestamp: metav1.Unix(50, 0), Name: "cox-abcdef-7-1-0", Namespace: "ns", UID: "u", Labels: map[string]string{render.LabelAllocation: "7", render.LabelAttempt: "1", render.LabelIndex: "0"},
		Finalizers: []string{render.Finalizer}, OwnerReferences: []metav1.OwnerReference{{UID: "r"}},
	}}
	if rapid.Bool().Draw(t, "deleted") {
		at := metav1.Unix(rapid.SampledFrom([]int64{1000, 5000}).Draw(t, "at"), 0)
		grace := rapid.SampledFrom([]int64{10, 790}).Draw(t, "grace")
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}
	if rapid.Bool().Draw(t, "plugged") {
		p.Labels[render.LabelPlugged] = "true"
	}
	if rapid.Bool().Draw(t, "manifest") {
		p.Labels[render.LabelManifest] = "true"
	}
	p.Spec.NodeName = text("node", "n1")
	if rapid.Bool().Draw(t, "claims") {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices"}}
	}
	p.Status.Phase = corev1.PodPhase(text("phase", "Pending", "Running", "Failed", "Succeeded"))
	p.Status.Reason, p.Status.Message = text("reason", "Evicted", "UnexpectedAdmissionError"), text("message", "low on memory", "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ")
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.DisruptionTarget, corev1.PodReadyToStartContainers, corev1.PodReady} {
		if rapid.Bool().Draw(t, string(kind)) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				LastTransitionTime: metav1.Unix(rapid.SampledFrom([]int64{100, 2990}).Draw(t, "since"), 0),
				Type:               kind, Status: corev1.ConditionStatus(text("status", "True", "False")), Message: text("why", "0/3 nodes are available: 3 Insufficient cpu."),
				Reason: text("cause", "DeletionByPodGC", corev1.PodReasonPreemptionByScheduler, corev1.PodReasonSchedulingGated, "Unschedulable"),
			})
		}
	}
	if rapid.Bool().Draw(t, "taken") {
		at := metav1.Unix(90, 0)
		p.Status.StartTime = &at
	}
	p.Status.InitContainerStatuses = statuses("cox", "other")
	p.Status.ContainerStatuses = statuses("beside", render.Container)
	return p
}

// TestASlimPodSaysTheSame holds for every state of a pod: what is kept of it proves what all of it
// proved. Seen to fail with: of the initial containers none kept; ContainerID not kept; ResourceClaims not kept;
// PodReadyToStartContainers not kept; StartTime not kept.
func TestASlimPodSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPod(t)
		ref := engine.Ref{Allocation: 7, Attempt: 1}
		now := time.Unix(3000, 0)
		s := Strip(p)
		if got, want := Read(s, ref, now), Read(p, ref, now); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nwant %+v\nof %+v", got, want, p)
		}
		claims := len(p.Spec.ResourceClaims)
		if len(s.Spec.ResourceClaims) != claims || claims > 0 && HasSandbox(s) != HasSandbox(p) || s.CreationTimestamp != p.CreationTimestamp || s.Status.StartTime != p.Status.StartTime {
			t.Fatalf("%+v\nof %+v", s, p)
		}
		if r, ok := render.RefOf(s); !ok || r != ref || render.IndexOf(s) != 0 || s.Name != p.Name || s.Namespace != p.Namespace || s.UID != p.UID ||
			!reflect.DeepEqual(s.Finalizers, p.Finalizers) || !reflect.DeepEqual(s.OwnerReferences, p.OwnerReferences) {
			t.Fatalf("%+v\nof %+v", s.ObjectMeta, p.ObjectMeta)
		}
	})
}
