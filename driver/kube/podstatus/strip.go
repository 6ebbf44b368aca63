package podstatus

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
)

// Strip is what is kept of a pod that is watched: what the functions that take pods look at, and nothing
// else. There may be twenty thousand of them.
func Strip(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: internString(p.Namespace), UID: p.UID, CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
			DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds,
			OwnerReferences:            p.OwnerReferences,
		},
		Spec:   corev1.PodSpec{NodeName: internString(p.Spec.NodeName), SchedulingGates: p.Spec.SchedulingGates, ResourceClaims: p.Spec.ResourceClaims},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(internString(string(p.Status.Phase))), Reason: p.Status.Reason, Message: p.Status.Message, PodIP: p.Status.PodIP, StartTime: p.Status.StartTime},
	}
	out.Labels = make(map[string]string, len(p.Labels))
	for k, v := range p.Labels {
		out.Labels[internString(k)] = internString(v)
	}
	for _, f := range p.Finalizers {
		out.Finalizers = append(out.Finalizers, internString(f))
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && p.Labels[render.LabelServes] != "" || c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse || c.Type == corev1.DisruptionTarget || c.Type == corev1.PodReadyToStartContainers && (len(p.Spec.ResourceClaims) > 0 || c.Status == corev1.ConditionFalse) {
			out.Status.Conditions = append(out.Status.Conditions, c)
		}
	}
	out.Status.ContainerStatuses = statesOf(p.Status.ContainerStatuses)
	for _, c := range statesOf(p.Status.InitContainerStatuses) {
		// Of who did its part it is asked alone whether there was one, and that of pods without a sandbox.
		if t := c.State.Terminated; t == nil || t.ExitCode != 0 || LacksSandbox(p) {
			out.Status.InitContainerStatuses = append(out.Status.InitContainerStatuses, c)
		}
	}
	return out
}

// statesOf is what is kept of containers.
func statesOf(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, 0, len(all))
	for _, c := range all {
		s := corev1.ContainerStatus{Name: internString(c.Name), State: c.State, Started: c.Started, Ready: c.Ready, RestartCount: c.RestartCount}
		if c.ContainerID != "" { // which one does not matter
			s.ContainerID = internString("made")
		}
		if c.State.Waiting != nil {
			s.Image = internString(c.Image)
		}
		out = append(out, s)
	}
	return out
}

// internString is a string of which there are many alike, kept once.
func internString(s string) string { return unique.Make(s).Value() }
