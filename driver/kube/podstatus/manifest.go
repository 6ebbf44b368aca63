package podstatus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Containers are those of a pod of a manifest whose end is the pod's.
type Containers struct {
	Main     []string // names; nil: all that the pod shows
	Restarts bool     // their kubelet begins them again
}

// Result is how the main containers of a pod of a manifest have ended.
type Result struct {
	Succeeded bool
	Exit      job.ExitCode // of the one that failed first
	At        time.Time    // when that one ended, or the last of those that all succeeded
}

// ReadManifest says what the object of a pod of a manifest proves, in which there is no agent: it is read from the
// states of its containers. As with Read nothing is concluded from the phase alone.
func ReadManifest(p *corev1.Pod, of Containers, now time.Time) Member {
	m := Member{Phase: engine.Accepted, Manifest: true}
	if p.Spec.NodeName == "" {
		m.readUnbound(p)
		return m
	}
	m.Placed = true
	main := mainStatuses(p, of.Main)
	terminal := (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed) && !hasLiveContainer(p) && !isGarbageCollected(p)
	ended := len(main) > 0 && !slices.ContainsFunc(main, func(c corev1.ContainerStatus) bool { return c.State.Terminated == nil })
	m.Began = mainBegan(p, main)
	switch {
	case terminal && IsForgotten(p):
		m.Over, m.Phase = true, engine.Ended
		if m.Cause, m.Why = kubeletRejection(p); p.Status.Reason == "NodeAffinity" { // it would on the next one, too
			m.Cause = engine.Refused
		}
	case ended && (terminal || !of.Restarts && isUncounted(p, now) && !hasLiveSidecar(p)):
		m.Over, m.Phase = true, engine.Ended
		m.readResult(p, main)
	case terminal: // a container of it never began
		m.Over, m.Phase = true, engine.Ended
		m.Cause, m.Why = manifestCause(p, nil)
	case ended && !of.Restarts:
		m.Phase = engine.Running
		last := lastFinish(main)
		m.Lingers = p.DeletionTimestamp == nil && !last.IsZero() && now.After(last.Add(Silence))
	case !m.Began.IsZero():
		m.Phase = engine.Running
		m.Why = restartReason(p, main)
	default:
		if why := lostBeforeStart(p, now); why != "" {
			m.Over, m.strayed, m.Phase, m.Cause, m.Why = true, true, engine.Ended, engine.Unready, why
			return m
		}
		m.readManifestWait(p, main)
	}
	if !m.Over {
		m.markUncertain(p, now)
	}
	return m
}

// hasLiveSidecar reports whether a container of a pod runs that runs beside the main ones. Its kubelet ends it after
// them.
func hasLiveSidecar(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil })
}

// mainStatuses are the states of the main containers.
func mainStatuses(p *corev1.Pod, names []string) []corev1.ContainerStatus {
	if names == nil {
		return p.Status.ContainerStatuses
	}
	var out []corev1.ContainerStatus
	for _, c := range p.Status.ContainerStatuses {
		if slices.Contains(names, c.Name) {
			out = append(out, c)
		}
	}
	if len(out) < len(names) { // not all are said of: none has ended then
		out = append(out, corev1.ContainerStatus{})
	}
	return out
}

// mainBegan is when the last of the main containers began; zero: not all have.
func mainBegan(p *corev1.Pod, main []corev1.ContainerStatus) (at time.Time) {
	later := func(t time.Time) {
		if t.After(at) {
			at = t
		}
	}
	for i := range main {
		switch c := &main[i]; {
		case c.State.Running != nil:
			later(c.State.Running.StartedAt.Time)
		case c.State.Terminated != nil && !c.State.Terminated.StartedAt.IsZero():
			later(c.State.Terminated.StartedAt.Time)
		case c.RestartCount > 0 && p.Status.StartTime != nil:
			later(p.Status.StartTime.Time)
		default:
			return time.Time{}
		}
	}
	return at
}

// lastFinish is when the last of some containers ended.
func lastFinish(all []corev1.ContainerStatus) (at time.Time) {
	for i := range all {
		if t := all[i].State.Terminated; t != nil && t.FinishedAt.After(at) {
			at = t.FinishedAt.Time
		}
	}
	return at
}

// readResult reads how the main containers ended, all of which have.
func (m *Member) readResult(p *corev1.Pod, main []corev1.ContainerStatus) {
	var failed *corev1.ContainerStatus
	for i := range main {
		t := main[i].State.Terminated
		if t.ExitCode != 0 && (failed == nil || t.FinishedAt.Before(&failed.State.Terminated.FinishedAt)) {
			failed = &main[i]
		}
	}
	if cause, why := deletionCause(p); failed == nil && why != "" && !slices.ContainsFunc(main, func(c corev1.ContainerStatus) bool { return endedBeforeDeletion(p, c.State.Terminated) }) {
		m.Result, m.Cause, m.Why = &Result{At: lastFinish(main)}, cause, why // it was told to end, and did
		return
	}
	if failed == nil && p.Status.Phase != corev1.PodFailed {
		m.Result = &Result{Succeeded: true, At: lastFinish(main)}
		return
	}
	m.Result = &Result{Exit: job.ExitCode{Status: 1}, At: lastFinish(main)}
	if failed != nil {
		m.Result.Exit, m.Result.At = exitOf(failed.State.Terminated), failed.State.Terminated.FinishedAt.Time
	}
	m.Cause, m.Why = manifestCause(p, failed)
}

// exitOf is a container's exit code as ours: shells and container runtimes say 128 and the number of a signal.
func exitOf(t *corev1.ContainerStateTerminated) job.ExitCode {
	if t.Signal != 0 {
		return job.ExitCode{Signal: int(t.Signal)}
	}
	if n := int(t.ExitCode); n > 128 && n <= 128+64 {
		return job.ExitCode{Signal: n - 128}
	}
	return job.ExitCode{Status: int(t.ExitCode)}
}

// manifestCause says why a pod of a manifest did not succeed. failed: the container that failed first; nil: none.
func manifestCause(p *corev1.Pod, failed *corev1.ContainerStatus) (engine.Cause, string) {
	on := fmt.Sprintf("pod %s on %s", p.Name, p.Spec.NodeName)
	text := on + " failed"
	if failed != nil {
		t := failed.State.Terminated
		text = fmt.Sprintf("%s: container %s ended with %d (%s)", on, failed.Name, t.ExitCode, cmp.Or(t.Reason, "Error"))
		if s := strings.TrimSpace(t.Message); s != "" {
			text += ": " + firstBytes(s, 500)
		}
		if t.Reason == "OOMKilled" {
			return engine.OutOfMemory, text
		}
	} else if why := failedInitContainer(p); why != "" {
		return engine.Exited, on + ": " + why
	}
	if why := diskEviction(p); why != "" {
		return engine.Exited, why
	}
	if p.Status.Reason == "DeadlineExceeded" {
		return engine.TimedOut, on + ": " + cmp.Or(p.Status.Message, "its activeDeadlineSeconds have passed")
	}
	if cause, why := deletionCause(p); why != "" && (failed == nil || !endedBeforeDeletion(p, failed.State.Terminated)) {
		return cause, why
	}
	if p.Status.Reason != "" {
		cause, why := kubeletRejection(p)
		if failed != nil {
			cause = orLost(cause)
		}
		return cause, why
	}
	return engine.Exited, text
}

// firstBytes is the beginning of a text.
func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// readManifestWait reads why the main containers of a pod have not begun yet. Init containers that are sidecars
// may be restarted, and others fail for good.
func (m *Member) readManifestWait(p *corev1.Pod, main []corev1.ContainerStatus) {
	if why := failedInitContainer(p); why != "" { // what its kubelet makes of that, the phase says
		m.Why = fmt.Sprintf("pod %s on %s: %s", p.Name, p.Spec.NodeName, why)
		return
	}
	all := append(slices.Clone(p.Status.InitContainerStatuses), main...)
	for _, c := range all {
		if w := c.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
			m.Why = fmt.Sprintf("pod %s on %s: container %s: %s: %s", p.Name, p.Spec.NodeName, c.Name, w.Reason, w.Message)
			return
		}
	}
	m.readWaits(p, all)
}

// restartReason says which container of a pod that has begun waits to be begun again; empty: none.
func restartReason(p *corev1.Pod, main []corev1.ContainerStatus) string {
	for _, c := range main {
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			return fmt.Sprintf("pod %s on %s: container %s: %s: %s", p.Name, p.Spec.NodeName, c.Name, w.Reason, w.Message)
		}
	}
	return ""
}

// IsManifest reports whether a pod is of a manifest.
func IsManifest(p *corev1.Pod) bool { return p.Labels[render.LabelManifest] != "" }
