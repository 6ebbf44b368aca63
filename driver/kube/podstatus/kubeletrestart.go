package podstatus

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/engine"
)

// A kubelet that restarts admits all pods of its node again, running ones too. Those that it refuses
// then (a node label has changed, there is less room than before, a device plugin is not back yet) it
// ends, and reports them like pods that it never admitted: Failed, the reason, and no containers.
// Whether such a pod had begun has to be known from elsewhere. Newer kubelets report how the
// containers ended, and some seconds later why: a pod that was told to end and that nobody deleted
// is waited for until then.

// Admission says whether a kubelet had admitted a pod before it refused it.
type Admission int8

const (
	AdmissionUnknown Admission = iota
	Admitted
	NeverAdmitted
)

// IsForgotten reports whether a pod's kubelet calls it failed and says nothing of its containers.
func IsForgotten(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed && len(p.Status.ContainerStatuses) == 0 && !isGarbageCollected(p)
}

// AdmittedBefore says whether a pod's kubelet had admitted it before it refused it, by what was seen
// of the pod before (was, nil: nothing) and known of it then (before): a pod has no StartTime until its
// kubelet first reports it. listed: p comes from a list, so changes in between may have been missed.
func AdmittedBefore(was *corev1.Pod, before Admission, p *corev1.Pod, listed bool) Admission {
	switch {
	case was == nil || was.UID != p.UID:
		return AdmissionUnknown
	case before != AdmissionUnknown:
		return before
	case !IsForgotten(was) && was.Status.StartTime != nil:
		return Admitted
	case IsForgotten(p) && !IsForgotten(was) && !listed:
		return NeverAdmitted
	}
	return AdmissionUnknown
}

// promptly is how long a kubelet takes at most from seeing a pod to refusing it.
const promptly = 5 * time.Second

// AdmissionOf says whether a pod's kubelet had admitted it before it refused it, by the metadata of
// the whole object. A pod of which that proves nothing counts as admitted.
func AdmissionOf(p *corev1.Pod, whole *metav1.ObjectMeta) Admission {
	if at := refusedAt(whole.ManagedFields); whole.UID == p.UID && p.Status.StartTime != nil && !at.IsZero() && atOnce(p.Status.StartTime.Time, at) {
		return NeverAdmitted
	}
	return Admitted
}

// atOnce reports whether a kubelet that had first seen a pod at one instant, by its own clock, refused
// it without having taken it: at is by the API server's. Both have whole seconds. Where the refusal
// comes first the clocks differ, by more than anybody knows.
func atOnce(seen, at time.Time) bool {
	d := at.Sub(seen)
	return d >= -time.Second && d <= promptly
}

// refusedAt is when a pod's kubelet last said something of it; zero: the object does not say.
func refusedAt(all []metav1.ManagedFieldsEntry) (at time.Time) {
	for _, f := range all {
		if f.Subresource == "status" && f.Time != nil && f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:startTime"`)) && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	return at
}

// DoubtRefusal looks at a member of which its kubelet says no more than that it refuses it, and which may
// have begun before, or has not said yet why it ended it. Began says that the attempt is known to have
// begun, stopped that it was to end anyway.
func (m *Member) DoubtRefusal(p *corev1.Pod, taken Admission, began, stopped bool) {
	if m.awaits && !stopped {
		m.Over, m.Phase, m.Cause, m.Why = false, engine.Ready, "", ""
		if m.Outcome != nil && !m.Outcome.Started.IsZero() {
			m.Phase = engine.Running
		}
		return
	}
	if m.strayed { // there was no kubelet that could be asked
		if m.Unsaid = true; began {
			m.Cause, m.Why = orLost(m.Cause), m.Why+"; but the job had begun, by what its other pods say"
		}
		return
	}
	m.Unsaid = m.Over && m.Placed && IsForgotten(p) // one without a node has no kubelet: the cluster calls it failed as it is deleted
	switch {
	case !m.Unsaid:
	case began:
		m.Cause, m.Why = orLost(m.Cause), m.Why+"; it had begun before its kubelet did"
	case taken == AdmissionUnknown: // it was seen just now, and is asked for before anything is concluded
		m.Over, m.Unsaid, m.Phase = false, false, engine.Accepted
	case taken == Admitted:
		m.Cause, m.Why = orLost(m.Cause), m.Why+"; its kubelet had taken it before it began anew itself, and whether the job had begun nobody can say"
	}
}

// awaitsReason reports whether a pod's container was told to end, or ended without a word, and its
// kubelet will soon say why: with the phase come its reason and who wanted it.
func awaitsReason(p *corev1.Pod, t *corev1.ContainerStateTerminated, ref engine.Ref, now time.Time) bool {
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded || p.DeletionTimestamp != nil || t.Reason == "OOMKilled" || now.After(t.FinishedAt.Add(Silence)) {
		return false
	}
	o := outcomeOf(t, ref)
	return o == nil || o.Cause == engine.Stopped
}

// byKubelet says of a pod that was told to end, and that nobody has deleted, why its kubelet did that.
// Began says that its barrier was opened before.
func byKubelet(p *corev1.Pod, began bool) string {
	if p.Status.Reason == "" {
		return fmt.Sprintf("pod %s was told to end on %s, and nobody had deleted it", p.Name, p.Spec.NodeName)
	}
	_, why := kubeletRejection(p)
	if !began {
		return why + "; the job had not begun in it"
	}
	return why + "; it had begun before its kubelet did"
}

// orLost is the cause of an end of which somebody says that nothing had begun, where something has or
// may have: its node has lost it. Such a job does not begin again that may not be queued again.
func orLost(c engine.Cause) engine.Cause {
	switch c {
	case engine.Unready, engine.LaunchFailed, engine.Refused, engine.Limited:
		return engine.NodeLost
	}
	return c
}

// lostBeforeStart says of a pod that its node was gone before anybody there had spoken of it; empty: that is not
// so. The cluster has called it failed since its node is not in the cluster, so no kubelet takes it any
// more; and one that had taken it would, but for one case, have said so by then. A kubelet speaks of a pod
// beside what it does for it: of one that it has begun, and whose Node object is deleted while the machine
// lives and before its first word has arrived, the object looks the same. That one is taken for never
// begun, too, where no other pod of its attempt says more, and its job may run twice for a while.
func lostBeforeStart(p *corev1.Pod, now time.Time) string {
	if p.Status.Phase != corev1.PodFailed || p.Status.StartTime != nil || p.Status.PodIP != "" || len(p.Status.ContainerStatuses)+len(p.Status.InitContainerStatuses) > 0 {
		return ""
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Reason == "DeletionByPodGC" && now.After(c.LastTransitionTime.Add(Silence)) {
			return fmt.Sprintf("pod %s was given to node %s, which was gone before its kubelet took it: %s", p.Name, p.Spec.NodeName, cmp.Or(c.Message, c.Reason))
		}
	}
	return ""
}
