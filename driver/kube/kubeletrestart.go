package kube

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// A kubelet that begins anew admits all of its node's pods again, those too that run. One that it
// refuses then (a label of the node that has changed, less room than before, a device plugin that
// is not back yet) it ends, and says of it what it says of a pod that it never took: Failed, the
// reason, and no containers. Whether such a pod had begun is therefore to be known from elsewhere.

// Newer ones say how its containers ended, and some seconds later why: until then a pod that was
// told to end, and that nobody has deleted, is waited for.

// proof is what is known of a question.
type proof int8

const (
	unasked proof = iota
	yes
	no
)

// isForgottenByKubelet reports whether a pod's kubelet calls it failed and says nothing of its containers.
func isForgottenByKubelet(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed && len(p.Status.ContainerStatuses) == 0 && !isGarbageCollected(p)
}

// wasTaken is whether a pod's kubelet had taken it before it refused it, as far as those know who have
// seen it: before what it says first, the object has no StartTime. Was is what was seen before.
func wasTaken(was *pod, p *corev1.Pod, listed bool) proof {
	switch {
	case was == nil || was.UID != p.UID:
		return unasked
	case was.taken != unasked:
		return was.taken
	case !isForgottenByKubelet(was.Pod) && was.Status.StartTime != nil:
		return yes
	case isForgottenByKubelet(p) && !isForgottenByKubelet(was.Pod) && !listed:
		return no
	}
	return unasked
}

// promptly is within which time a kubelet's first word of a pod is there, by what the object says.
const promptly = 5 * time.Second

// askTaken asks, of pods that their kubelets refuse and that were not seen before, when they were
// refused, which only the whole object has. The time when its kubelet had first seen a pod stays.
func (e *Engine) askTaken(a *attempt) error {
	e.mu.Lock()
	var ask []int
	for i, p := range a.pods {
		if p.taken == unasked && a.report.Started.IsZero() && p.Spec.NodeName != "" && isForgottenByKubelet(p.Pod) {
			ask = append(ask, i)
		}
	}
	e.mu.Unlock()
	return e.forEach(len(ask), func(n int) error {
		e.mu.Lock()
		p := a.pods[ask[n]]
		e.mu.Unlock()
		var whole struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		}
		ctx, cancel := e.callContext()
		defer cancel()
		err := e.k.Get(ctx, cluster.Pods, p.Namespace, p.Name, &whole)
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
		answer := yes // as long as nobody can say
		if at := refusedAt(whole.Metadata.ManagedFields); whole.Metadata.UID == p.UID && p.Status.StartTime != nil && !at.IsZero() && atOnce(p.Status.StartTime.Time, at) {
			answer = no
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		p.taken = cmp.Or(p.taken, answer)
		return nil
	})
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

// doubtRefusal looks at a member of which its kubelet says no more than that it refuses it, and which may
// have begun before, or has not said yet why it ended it. Began says that the attempt is known to have
// begun, stopped that it was to end anyway.
func (m *member) doubtRefusal(p *pod, began, stopped bool) {
	if m.awaits && !stopped {
		m.over, m.phase, m.cause, m.why = false, engine.Ready, "", ""
		if m.outcome != nil && !m.outcome.Started.IsZero() {
			m.phase = engine.Running
		}
		return
	}
	if m.strayed { // there was no kubelet that could be asked
		if m.unsaid = true; began {
			m.cause, m.why = orLost(m.cause), m.why+"; but the job had begun, by what its other pods say"
		}
		return
	}
	m.unsaid = m.over && m.placed && isForgottenByKubelet(p.Pod) // one without a node has no kubelet: the cluster calls it failed as it is deleted
	switch {
	case !m.unsaid:
	case began:
		m.cause, m.why = orLost(m.cause), m.why+"; it had begun before its kubelet did"
	case p.taken == unasked: // it was seen just now, and is asked for before anything is concluded
		m.over, m.unsaid, m.phase = false, false, engine.Accepted
	case p.taken == yes:
		m.cause, m.why = orLost(m.cause), m.why+"; its kubelet had taken it before it began anew itself, and whether the job had begun nobody can say"
	}
}

// awaitsReason reports whether a pod's container was told to end, or ended without a word, and its
// kubelet will soon say why: with the phase come its reason and who wanted it.
func awaitsReason(p *corev1.Pod, t *corev1.ContainerStateTerminated, ref engine.Ref, now time.Time) bool {
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded || p.DeletionTimestamp != nil || t.Reason == "OOMKilled" || now.After(t.FinishedAt.Add(silence)) {
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
		if c.Type == corev1.DisruptionTarget && c.Reason == "DeletionByPodGC" && now.After(c.LastTransitionTime.Add(silence)) {
			return fmt.Sprintf("pod %s was given to node %s, which was gone before its kubelet took it: %s", p.Name, p.Spec.NodeName, cmp.Or(c.Message, c.Reason))
		}
	}
	return ""
}
