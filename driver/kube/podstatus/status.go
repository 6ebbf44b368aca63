package podstatus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Member is one pod of an attempt, as its object shows it.
type Member struct {
	Phase     engine.Phase
	Over      bool // nothing of it lives, by the kubelet's word or because it never had a node
	Uncertain bool // nobody can say
	Began     time.Time
	Outcome   *podagent.Outcome
	Why       string       // for people, of what went wrong; empty: nothing
	Cause     engine.Cause // of that, where there is no outcome
	Stuck     bool         // it will not start as it is; Why says what is missing
	Hopeless  bool         // … and nobody can mend that: its sandbox is gone, or it has a node and no devices
	Refused   bool         // … and the kubelet will never start it
	NoSandbox bool         // it has a node, whose kubelet has made no sandbox yet
	Placed    bool         // it has a node
	awaits    bool         // it is over, and its kubelet has not said yet why
	strayed   bool         // it is over, since its node was gone before anybody there spoke of it
	Unsaid    bool         // it is over, and what became of its containers its kubelet does not say
	lost      bool         // it is over, by an administrator's word that its node is off: what it did there nobody can say
	Lingers   bool         // its job's container has long ended, and others in it keep the devices of its claims
	waiting   string       // why the cluster's scheduler gives it no node, as that says it
	Manifest  bool         // it is of a manifest: no agent is in it
	Result    *Result      // of one that is of a manifest and over; nil: its containers have not all run
}

// Silence is how long a pod may be past its grace period before its kubelet counts as silent.
const Silence = 30 * time.Second

// Read says what the object of a pod proves. Nothing is concluded from the phase alone: a pod
// is called failed, too, when nobody has heard of its node.
func Read(p *corev1.Pod, ref engine.Ref, now time.Time) Member {
	if IsManifest(p) {
		return ReadManifest(p, Containers{}, now)
	}
	m := Member{Phase: engine.Accepted}
	if p.Spec.NodeName == "" {
		m.readUnbound(p)
		return m
	}
	m.Placed = true
	main := JobContainer(p.Status.ContainerStatuses)
	switch {
	case main != nil && main.State.Terminated != nil && isUncounted(p, now):
		t := main.State.Terminated
		m.Over, m.Phase, m.Began, m.awaits = true, engine.Ended, t.StartedAt.Time, awaitsReason(p, t, ref, now)
		if o := outcomeOf(t, ref); o != nil {
			m.Outcome = o
			switch {
			case o.Cause == engine.Stopped: // told to end: if not by us, by the cluster
				if m.Cause, m.Why = livenessCause(p); m.Cause != "" {
					break
				}
				if m.Cause, m.Why = deletionCause(p); m.Cause == "" {
					m.Cause, m.Why = engine.NodeLost, byKubelet(p, !o.Started.IsZero())
				}
			case o.Started.IsZero() && o.Cause != engine.Exited:
				m.Cause, m.Why = o.Cause, fmt.Sprintf("pod %s on %s: %s", p.Name, p.Spec.NodeName, o.Message)
			}
		} else {
			m.Cause, m.Why = terminationCause(p, t)
		}
	case main != nil && main.State.Terminated != nil:
		t := main.State.Terminated
		m.Lingers = p.DeletionTimestamp == nil && !t.FinishedAt.IsZero() && now.After(t.FinishedAt.Add(Silence))
		m.Phase, m.Began = engine.Ready, t.StartedAt.Time // its end does not say that the job began
		if o := outcomeOf(t, ref); o != nil && !o.Started.IsZero() {
			m.Phase, m.Outcome = engine.Running, o
		}
	case main != nil && main.State.Running != nil:
		m.Phase, m.Began = engine.Ready, main.State.Running.StartedAt.Time
		if main.Started != nil && *main.Started {
			m.Phase = engine.Running
		}
	case p.Status.Phase == corev1.PodFailed && !hasLiveContainer(p) && !isGarbageCollected(p):
		m.Over, m.Phase = true, engine.Ended
		m.Cause, m.Why = kubeletRejection(p)
	default:
		if why := lostBeforeStart(p, now); why != "" {
			m.Over, m.strayed, m.Phase, m.Cause, m.Why = true, true, engine.Ended, engine.Unready, why
			return m
		}
		m.readWaitingReason(p, main)
	}
	if !m.Over {
		m.markUncertain(p, now)
	}
	return m
}

// readUnbound reads a pod that has no node.
func (m *Member) readUnbound(p *corev1.Pod) {
	if p.DeletionTimestamp != nil { // nobody can bind it any more
		m.Over, m.Phase = true, engine.Ended
		m.Cause, m.Why = deletionCause(p)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != corev1.PodReasonSchedulingGated {
			m.waiting = cmp.Or(c.Message, c.Reason)
		}
	}
}

// outcomeOf is the word that an attempt's container has left; nil: none, or another attempt's.
func outcomeOf(t *corev1.ContainerStateTerminated, ref engine.Ref) *podagent.Outcome {
	if o, err := podagent.ParseOutcome(t.Message); err == nil && o.Ref == ref {
		return o
	}
	return nil
}

// isUncounted reports whether a kubelet counts a pod no more whose job's container has ended. It calls a
// pod ended when all its containers have, what they had is given back, and it would take another
// in its place; until then, a moment after the container's end, it counts what the pod asks for, and
// refuses who would be too many beside it (OutOfcpu, UnexpectedAdmissionError). That is waited for:
// for devices, by claims or of a plugin, as long as it takes; else for as long as a kubelet may be silent,
// and not for containers that others have put into the pod.
func isUncounted(p *corev1.Pod, now time.Time) bool {
	switch {
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return true
	case len(p.Spec.ResourceClaims) > 0 || p.Labels[render.LabelPlugged] != "":
		return false
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated == nil || c.State.Terminated.FinishedAt.IsZero() || now.After(c.State.Terminated.FinishedAt.Add(Silence)) {
			return true
		}
	}
	return false
}

// isGarbageCollected reports whether a pod is called failed by who collects pods of nodes that are not
// there: its kubelet was not asked.
func isGarbageCollected(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Reason == "DeletionByPodGC" {
			return true
		}
	}
	return false
}

// JobContainer is the status of the job's container.
func JobContainer(all []corev1.ContainerStatus) *corev1.ContainerStatus {
	for i := range all {
		if all[i].Name == render.Container {
			return &all[i]
		}
	}
	return nil
}

// hasLiveContainer reports whether a container of a pod has begun, or may begin, and its end was not seen. One
// that was made and waits, in a pod that its kubelet has called failed and that has no sandbox any
// more, never began and never will.
func hasLiveContainer(p *corev1.Pod) bool {
	dead := p.Status.Phase == corev1.PodFailed && LacksSandbox(p)
	for _, all := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range all {
			if c.State.Running != nil || c.State.Terminated == nil && c.ContainerID != "" && !(dead && c.State.Waiting != nil) {
				return true
			}
		}
	}
	return false
}

// markUncertain says when what the object says may not be true any more.
func (m *Member) markUncertain(p *corev1.Pod, now time.Time) {
	switch {
	case p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded:
		m.Uncertain, m.Why = true, fmt.Sprintf("pod %s is called %s, and its kubelet on %s has not said that its containers have ended", p.Name, p.Status.Phase, p.Spec.NodeName)
	case p.DeletionTimestamp != nil && now.After(p.DeletionTimestamp.Add(Silence)):
		m.Uncertain, m.Why = true, fmt.Sprintf("pod %s should have ended at %s, and its kubelet on %s says nothing", p.Name, p.DeletionTimestamp.UTC().Format(time.RFC3339), p.Spec.NodeName)
	}
}

// readWaitingReason reads why a pod's container does not run yet.
func (m *Member) readWaitingReason(p *corev1.Pod, main *corev1.ContainerStatus) {
	all := p.Status.InitContainerStatuses
	if main != nil {
		all = append(all[:len(all):len(all)], *main)
	}
	if why := failedInitContainer(p); why != "" {
		m.Stuck, m.Why = true, fmt.Sprintf("pod %s on %s: %s", p.Name, p.Spec.NodeName, why)
		return
	}
	m.readWaits(p, all)
}

// readWaits reads what the first of some containers waits for that is not usual.
func (m *Member) readWaits(p *corev1.Pod, all []corev1.ContainerStatus) {
	for _, c := range all {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		if sandboxGone(p, all) {
			m.Stuck, m.Hopeless, m.Cause = true, true, engine.Unready
			m.Why = fmt.Sprintf("pod %s on %s: what its containers run in (the sandbox) is gone, container %s had not begun, and the kubelet makes no other for a pod of which a container was made", p.Name, p.Spec.NodeName, c.Name)
			return
		}
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			m.Stuck = true
		case "InvalidImageName", "ErrImageNeverPull":
			m.Stuck, m.Refused = true, true
		default:
			continue
		}
		m.Why = fmt.Sprintf("pod %s on %s: %s: %s (image %s)", p.Name, p.Spec.NodeName, w.Reason, w.Message, c.Image)
		return
	}
	m.NoSandbox = LacksSandbox(p)
}

// sandboxGone reports whether a pod will never begin: a container of it was made, and it has no
// sandbox. A kubelet makes one anew for a pod that is not restarted only if none was made
// (kuberuntime's computePodActions). A machine that lost its power leaves pods so.
func sandboxGone(p *corev1.Pod, all []corev1.ContainerStatus) bool {
	return LacksSandbox(p) && slices.ContainsFunc(all, func(c corev1.ContainerStatus) bool { return c.ContainerID != "" })
}

// LacksSandbox reports whether a pod's kubelet says that there is no sandbox in which containers could
// begin.
func LacksSandbox(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionFalse {
			return true
		}
	}
	return false
}

// failedInitContainer says which container failed before the job's began; empty: none.
func failedInitContainer(p *corev1.Pod) string {
	for _, c := range p.Status.InitContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return strings.TrimRight(fmt.Sprintf("container %s ended with %d (%s) before the job's began: %s", c.Name, t.ExitCode, t.Reason, strings.TrimSpace(t.Message)), ": ")
		}
	}
	return ""
}

// livenessCause says that a kubelet ended a container whose liveness probe failed: nothing else has it end
// one of a pod that nobody deletes and that it keeps. Empty: it was something else.
func livenessCause(p *corev1.Pod) (engine.Cause, string) {
	if p.Labels[render.LabelLiveness] == "" || p.DeletionTimestamp != nil || p.Status.Reason != "" ||
		slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget }) {
		return "", ""
	}
	return engine.Exited, fmt.Sprintf("the liveness probe of pod %s on %s failed", p.Name, p.Spec.NodeName)
}

// Serves reports whether a pod that serves is ready, by its kubelet and by who watches over that.
func Serves(p *corev1.Pod) bool {
	if IsManifest(p) {
		return isReady(p) && p.DeletionTimestamp == nil
	}
	c := JobContainer(p.Status.ContainerStatuses)
	return isReady(p) && c != nil && c.Ready && p.DeletionTimestamp == nil
}

// isReady reports whether a pod's condition says that it is ready.
func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// terminationCause says why a container ended that left no word.
func terminationCause(p *corev1.Pod, t *corev1.ContainerStateTerminated) (engine.Cause, string) {
	text := fmt.Sprintf("pod %s on %s ended without a word: %s, exit %d", p.Name, p.Spec.NodeName, t.Reason, t.ExitCode)
	if s := strings.TrimSpace(t.Message); s != "" {
		text += ": " + s
	}
	if t.Reason == "OOMKilled" {
		return engine.OutOfMemory, text
	}
	if why := diskEviction(p); why != "" {
		return engine.Exited, why
	}
	if p.Status.Reason != "" {
		_, why := kubeletRejection(p)
		text += "; " + why
	}
	if cause, why := deletionCause(p); why != "" && !endedBeforeDeletion(p, t) {
		return cause, text + "; " + why
	}
	return engine.NodeLost, text
}

// endedBeforeDeletion reports whether a pod was deleted only when its container had long ended: as we delete
// those that linger. The clocks of node and API server may differ.
func endedBeforeDeletion(p *corev1.Pod, t *corev1.ContainerStateTerminated) bool {
	if p.DeletionTimestamp == nil || p.DeletionGracePeriodSeconds == nil || t.FinishedAt.IsZero() {
		return false
	}
	asked := p.DeletionTimestamp.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	return asked.After(t.FinishedAt.Add(Silence / 2))
}

// kubeletRejection are the kubelet's own words for a pod that it would not have, or not keep.
func kubeletRejection(p *corev1.Pod) (engine.Cause, string) {
	if why := diskEviction(p); why != "" {
		return engine.Exited, why
	}
	text := fmt.Sprintf("pod %s on %s: %s: %s", p.Name, p.Spec.NodeName, cmp.Or(p.Status.Reason, string(p.Status.Phase)), cmp.Or(p.Status.Message, failedInitContainer(p)))
	if cause, why := deletionCause(p); why != "" {
		return cause, text + "; " + why
	}
	if p.Status.Reason == "UnexpectedAdmissionError" { // of a device plugin, say: it is counted, and not tried for ever
		return engine.LaunchFailed, text
	}
	return engine.Unready, text
}

// diskEviction says of a pod that it used more of its node's disk than it may, and was ended for that;
// empty: it was not. Evicted are others, too: a pod that a kubelet ends for what others use, which
// a condition says, and one that it does not take while its node is short of something. Its words
// alone tell this one from those.
func diskEviction(p *corev1.Pod) string {
	m := strings.TrimSpace(p.Status.Message)
	switch {
	case p.Status.Reason != "Evicted" || slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget }):
		return ""
	case strings.HasPrefix(m, "Usage of EmptyDir volume "), strings.HasPrefix(m, "Pod ephemeral local storage usage exceeds "),
		strings.HasPrefix(m, "Container ") && strings.Contains(m, " exceeded its local ephemeral storage limit "): // the kubelet's localStorageEviction
		return fmt.Sprintf("pod %s on %s used more of the node's disk than it may: %s", p.Name, p.Spec.NodeName, m)
	}
	return ""
}

// deletionCause says who ended a pod that was not ended by us; empty: nobody.
func deletionCause(p *corev1.Pod) (engine.Cause, string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			text := fmt.Sprintf("pod %s was ended by the cluster: %s: %s", p.Name, c.Reason, c.Message)
			if c.Reason == corev1.PodReasonPreemptionByScheduler {
				return engine.Preempted, text
			}
			return engine.NodeLost, text
		}
	}
	if why := diskEviction(p); why != "" {
		return engine.Exited, why
	}
	if p.DeletionTimestamp != nil {
		return engine.Cancelled, fmt.Sprintf("pod %s was deleted in the cluster", p.Name)
	}
	return "", ""
}

// Stop is a request to end an attempt.
type Stop struct {
	Cause  engine.Cause
	Reason string
	Signal int // 0: none was named
}

// End is how an attempt ended of which all members are over. stop: nil if nobody asked for its end.
// ran says that it is known to have begun.
func End(members []Member, stop *Stop, ran bool) engine.Report {
	r := attemptOutcome(members, stop)
	Conclude(&r, members, ran && !headRefused(members))
	return r
}

// Conclude changes how an attempt ended that is said not to have begun, where something of it has: ran, or a member
// that was lost with its node.
func Conclude(r *engine.Report, members []Member, ran bool) {
	markLostWithNode(r, members)
	if ran {
		r.Cause = orLost(r.Cause)
	}
}

// headRefused reports whether the head says itself that the barrier was opened and the program could
// not be started then.
func headRefused(members []Member) bool {
	o := members[0].Outcome
	return o != nil && o.Cause == engine.Refused && !o.Started.IsZero()
}

// attemptOutcome is how an attempt ended, of the members that say so. All are over.
func attemptOutcome(members []Member, stop *Stop) engine.Report {
	var r engine.Report
	if o := members[0].Outcome; o != nil {
		r.Cause, r.Exit, r.Message, r.Started, r.Ended, r.Tasks, r.Saved, r.Used = o.Cause, o.Exit, o.Message, o.Started, o.Ended, o.Tasks, o.Saved, o.Used
		lost := r.Cause == engine.NodeLost && slices.ContainsFunc(members, func(m Member) bool { // another, and why is known
			return m.Cause == engine.Preempted || m.Cause == engine.Exited || m.Cause == engine.OutOfMemory
		})
		if r.Cause != engine.Stopped && !lost && (stop == nil || !r.Started.IsZero()) {
			return r
		}
		if stop != nil {
			r.Cause, r.Message = stop.Cause, cmp.Or(stop.Reason, r.Message)
			return r
		}
	}
	r.Cause, r.Message, r.Exit = "", "", job.ExitCode{Status: 1}
	if stop != nil {
		r.Cause, r.Message = stop.Cause, stop.Reason
		if stop.Cause == engine.Stopped {
			r.Exit = job.ExitCode{Signal: cmp.Or(stop.Signal, sigterm)}
		}
		return r
	}
	for i, m := range members {
		if m.Cause != "" && (r.Cause == "" || r.Cause == engine.NodeLost && m.Cause != engine.NodeLost) {
			r.Cause, r.Message = m.Cause, m.Why
		}
		if o := m.Outcome; i > 0 && o != nil && r.Started.IsZero() {
			r.Started = o.Started
		}
	}
	if o := members[0].Outcome; o != nil { // it was told to end, and by none of us
		r.Exit = o.Exit
		r.Cause = cmp.Or(r.Cause, engine.Cancelled)
		r.Message = cmp.Or(r.Message, o.Message)
	}
	r.Cause = cmp.Or(r.Cause, engine.NodeLost)
	if r.Cause == engine.OutOfMemory || r.Cause == engine.Exited {
		r.Exit = job.ExitCode{Signal: sigkill}
	}
	return r
}

const (
	sigterm = 15
	sigkill = 9
)

// HasSandbox reports whether the kubelet is past what comes before a pod's containers.
func HasSandbox(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue
	})
}
