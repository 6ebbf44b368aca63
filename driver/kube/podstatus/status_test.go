package podstatus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

var (
	testRef = engine.Ref{Allocation: 4, Attempt: 2}
	testNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// podThat is a pod on node n1.
func podThat(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	for _, f := range change {
		f(p)
	}
	return p
}

func holding(s corev1.ContainerState, started bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		id := "containerd://x"
		if s.Waiting != nil && s.Waiting.Reason != "" {
			id = ""
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: render.Container, State: s, Started: &started, ContainerID: id, Image: "img"}}
	}
}

func phase(ph corev1.PodPhase, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason, p.Status.Message = ph, reason, "in words" }
}

// evicted has a kubelet not keep a pod, or not take it, in its words.
func evicted(words string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", words
	}
}

func deletedAt(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: at} }
}

func labelled(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{name: "true"} }
}

func disrupted(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason})
	}
}

// collectedAt has who collects pods of nodes that are not there call a pod failed.
func collectedAt(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		disrupted("DeletionByPodGC")(p)
		p.Status.Conditions[len(p.Status.Conditions)-1].LastTransitionTime = metav1.Time{Time: at}
	}
}

func takenAt(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: at} }
}

// brought has the container that brings the crew end so.
func brought(code int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Message = ""
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "cox", ContainerID: "containerd://y", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: code}}}}
	}
}

// beside has a container in the pod that somebody else puts into all of them.
func beside(s corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append([]corev1.ContainerStatus{{Name: "proxy", State: s, ContainerID: "containerd://y"}}, p.Status.ContainerStatuses...)
	}
}

// noSandbox has the kubelet say that there is nothing in which containers could begin.
func noSandbox(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse})
}

// claiming has a claim of devices in the pod.
func claiming(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices"}} }

func plugged(p *corev1.Pod) { p.Labels = map[string]string{render.LabelPlugged: "true"} }

// finished is the state of a container that has ended a minute before testNow.
func finished(s corev1.ContainerState) corev1.ContainerState {
	s.Terminated.FinishedAt = metav1.Time{Time: testNow.Add(-time.Minute)}
	return s
}

// justNow is the state of a container that has ended a second before testNow.
func justNow(s corev1.ContainerState) corev1.ContainerState {
	s.Terminated.FinishedAt = metav1.Time{Time: testNow.Add(-time.Second)}
	return s
}

func graceOf(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = &seconds }
}

func noNode(p *corev1.Pod) { p.Spec.NodeName = "" }

var (
	runs    = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	creates = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
)

func waits(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "in words"}}
}

func ends(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, Message: message, ExitCode: 137}}
}

// TestWhatAPodProves holds read against what Kubernetes does to pods: only the kubelet's word,
// or that there never was a node, proves that nothing lives.
//
// Seen to fail with: whose container has ended and who has its devices called running; a pod over while
// its kubelet counts it; any pod that
// was evicted taken for one of a lost node; any that was evicted without a condition taken for one
// that used too much itself; what the collector calls failed uncertain for ever, or over at once,
// or over though its kubelet had taken it.
func TestWhatAPodProves(t *testing.T) {
	outcome := string(podagent.Outcome{Ref: testRef, Cause: engine.Exited, Exit: job.ExitCode{Status: 3}, Started: testNow}.Text())
	early := string(podagent.Outcome{Ref: testRef, Cause: engine.LaunchFailed, Message: "in words"}.Text())
	told := string(podagent.Outcome{Ref: testRef, Cause: engine.Stopped}.Text())
	other := string(podagent.Outcome{Ref: engine.Ref{Allocation: 9, Attempt: 9}, Cause: engine.Exited}.Text())
	for _, c := range []struct {
		what  string
		p     *corev1.Pod
		want  string // phase, then what else is true
		cause engine.Cause
	}{
		{"nothing yet", podThat(), "accepted", ""},
		{"no node yet", podThat(noNode), "accepted", ""},
		{"no node, deleted", podThat(noNode, deletedAt(testNow)), "ended over", engine.Cancelled},
		{"no node, preempted", podThat(noNode, deletedAt(testNow), disrupted(corev1.PodReasonPreemptionByScheduler)), "ended over", engine.Preempted},
		{"being made", podThat(holding(creates, false)), "accepted", ""},
		{"runs", podThat(holding(runs, false)), "ready", ""},
		{"started", podThat(holding(runs, true)), "running", ""},
		{"started, and another's container in it has ended", podThat(holding(runs, true), beside(ends("Completed", ""))), "running", ""},
		{"ended with a word, and another's container in it runs", podThat(phase(corev1.PodRunning, ""), holding(ends("Error", outcome), false), beside(runs)), "ended over outcome", ""},
		{"ended with a word, and its plugin's devices are not given back", podThat(phase(corev1.PodRunning, ""), plugged, holding(ends("Error", outcome), false)), "running outcome", ""},
		{"ended with a word, and its plugin's devices are given back", podThat(phase(corev1.PodFailed, ""), plugged, holding(ends("Error", outcome), false)), "ended over outcome", ""},
		{"ended with a word", podThat(phase(corev1.PodFailed, ""), holding(ends("Error", outcome), false)), "ended over outcome", ""},
		{"told to end by the cluster for others", podThat(deletedAt(testNow), disrupted(corev1.PodReasonPreemptionByScheduler), holding(ends("Error", told), false)), "ended over outcome", engine.Preempted},
		{"told to end by its kubelet, which refuses it again", podThat(phase(corev1.PodFailed, "OutOfcpu"), holding(ends("Error", told), false)), "ended over outcome", engine.NodeLost},
		{"told to end by its kubelet, for its liveness", podThat(phase(corev1.PodFailed, ""), labelled(render.LabelLiveness), holding(ends("Error", told), false)), "ended over outcome", engine.Exited},
		{"told to end by its kubelet, for others, with a liveness", podThat(phase(corev1.PodFailed, "OutOfcpu"), labelled(render.LabelLiveness), holding(ends("Error", told), false)), "ended over outcome", engine.NodeLost},
		{"told to end by who deleted it, with a liveness", podThat(phase(corev1.PodFailed, ""), deletedAt(testNow), labelled(render.LabelLiveness), holding(ends("Error", told), false)), "ended over outcome", engine.Cancelled},
		{"told to end just now, nobody says by whom", podThat(phase(corev1.PodRunning, ""), holding(justNow(ends("Error", told)), false)), "ready", ""},
		{"told to end just now, nobody says by whom, and another's container in it runs", podThat(phase(corev1.PodRunning, ""), holding(justNow(ends("Error", told)), false), beside(runs)), "ended over outcome awaits", engine.NodeLost},
		{"told to end long ago, nobody says by whom", podThat(phase(corev1.PodRunning, ""), holding(finished(ends("Error", told)), false)), "ended over outcome", engine.NodeLost},
		{"told to end just now, by who has deleted it", podThat(deletedAt(testNow), phase(corev1.PodRunning, ""), holding(justNow(ends("Error", told)), false)), "ready", ""},
		{"told to end just now, by who has deleted it, and its kubelet counts it no more", podThat(deletedAt(testNow), phase(corev1.PodFailed, ""), holding(justNow(ends("Error", told)), false)), "ended over outcome", engine.Cancelled},
		{"ended just now by itself", podThat(phase(corev1.PodRunning, ""), holding(justNow(ends("Error", outcome)), false)), "running outcome", ""},
		{"ended just now by itself, and its kubelet counts it no more", podThat(phase(corev1.PodFailed, ""), holding(justNow(ends("Error", outcome)), false)), "ended over outcome", ""},
		{"ended long ago by itself, and its kubelet counts it still", podThat(phase(corev1.PodRunning, ""), holding(finished(ends("Error", outcome)), false)), "ended over outcome", ""},
		{"ended just now without a word", podThat(phase(corev1.PodRunning, ""), holding(justNow(ends("Error", "")), false)), "ready", ""},
		{"ended before the start, with a word of why", podThat(phase(corev1.PodFailed, ""), holding(ends("Error", early), false)), "ended over outcome", engine.LaunchFailed},
		{"ended with a word, and has its devices", podThat(claiming, phase(corev1.PodRunning, ""), holding(ends("Error", outcome), false)), "running outcome", ""},
		{"ended before the start, and has its devices", podThat(claiming, phase(corev1.PodRunning, ""), holding(ends("Error", early), false)), "ready", ""},
		{"ended without a word, and has its devices", podThat(claiming, phase(corev1.PodRunning, ""), holding(ends("OOMKilled", ""), false)), "ready", ""},
		{"a word of another attempt, and has its devices", podThat(claiming, phase(corev1.PodRunning, ""), holding(ends("Error", other), false)), "ready", ""},
		{"ended long ago, and another's container in it keeps its devices", podThat(claiming, phase(corev1.PodRunning, ""), holding(finished(ends("Error", outcome)), false), beside(runs)), "running outcome lingers", ""},
		{"ended long ago, keeps its devices, and is deleted", podThat(claiming, deletedAt(testNow.Add(10*time.Second)), phase(corev1.PodRunning, ""), holding(finished(ends("Error", outcome)), false), beside(runs)), "running outcome", ""},
		{"ended without a word long before it was deleted", podThat(claiming, graceOf(10), deletedAt(testNow.Add(10*time.Second)), phase(corev1.PodFailed, ""), holding(finished(ends("Error", "")), false)), "ended over", engine.NodeLost},
		{"ended without a word as it was deleted", podThat(claiming, graceOf(90), deletedAt(testNow.Add(10*time.Second)), phase(corev1.PodFailed, ""), holding(finished(ends("Error", "")), false)), "ended over", engine.Cancelled},
		{"ended before the start, its devices given back", podThat(claiming, phase(corev1.PodFailed, ""), holding(ends("Error", early), false)), "ended over outcome", engine.LaunchFailed},
		{"a word of another attempt", podThat(holding(ends("Error", other), false)), "ended over", engine.NodeLost},
		{"out of memory", podThat(holding(ends("OOMKilled", ""), false)), "ended over", engine.OutOfMemory},
		{"evicted, ended", podThat(phase(corev1.PodFailed, "Evicted"), disrupted(corev1.PodReasonTerminationByKubelet), holding(ends("Error", ""), false)), "ended over", engine.NodeLost},
		{"evicted for what it has in a volume, ended", podThat(evicted("Usage of EmptyDir volume \"upload\" exceeds the limit \"1Gi\". "), holding(ends("Error", ""), false)), "ended over", engine.Exited},
		{"evicted for what it used itself, told to end", podThat(evicted("Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "), holding(ends("Error", told), false)), "ended over outcome", engine.Exited},
		{"evicted for what it used itself, its containers unknown", podThat(evicted("Container job exceeded its local ephemeral storage limit \"1Gi\". ")), "ended over", engine.Exited},
		{"evicted for what others use, by an old kubelet", podThat(evicted("The node was low on resource: ephemeral-storage. Container job was using 2Gi, request is 0, has larger consumption of ephemeral-storage. "), holding(ends("Error", ""), false)), "ended over", engine.NodeLost},
		{"not taken by a node that is short of its disk", podThat(evicted("Pod was rejected: The node had condition: [DiskPressure]. ")), "ended over", engine.Unready},
		{"no room by the kubelet's word", podThat(phase(corev1.PodFailed, "OutOfcpu")), "ended over", engine.Unready},
		{"refused by the kubelet", podThat(phase(corev1.PodFailed, "UnexpectedAdmissionError")), "ended over", engine.LaunchFailed},
		{"failed while it lives", podThat(phase(corev1.PodFailed, "NodeLost"), holding(runs, true)), "running unsure", ""},
		{"failed by the collector", podThat(phase(corev1.PodFailed, ""), disrupted("DeletionByPodGC"), holding(runs, true)), "running unsure", ""},
		{"failed by the collector before the kubelet said anything", podThat(phase(corev1.PodFailed, ""), collectedAt(testNow.Add(-time.Second))), "accepted unsure", ""},
		{"failed by the collector long before the kubelet said anything", podThat(phase(corev1.PodFailed, ""), collectedAt(testNow.Add(-time.Minute))), "ended over", engine.Unready},
		{"failed by the collector long ago, and its kubelet had taken it", podThat(phase(corev1.PodFailed, ""), collectedAt(testNow.Add(-time.Minute)), takenAt(testNow.Add(-time.Hour))), "accepted unsure", ""},
		{"terminating in its grace", podThat(deletedAt(testNow.Add(10*time.Second)), holding(runs, true)), "running", ""},
		{"terminating on a silent kubelet", podThat(deletedAt(testNow.Add(-time.Minute)), holding(runs, true)), "running unsure", ""},
		{"a first container that was killed", podThat(phase(corev1.PodFailed, ""), brought(137), holding(creates, false)), "ended over", engine.Unready},
		{"a first container that was killed, and the pod goes on", podThat(brought(137), holding(creates, false)), "accepted stuck", ""},
		{"deleted before it began", podThat(phase(corev1.PodFailed, ""), deletedAt(testNow), holding(creates, false)), "ended over", engine.Cancelled},
		{"being made, its sandbox first", podThat(noSandbox, holding(creates, false)), "accepted", ""},
		{"made, and its sandbox gone before it began", podThat(noSandbox, holding(waits(""), false)), "accepted stuck", engine.Unready},                                                                // as a machine left it that lost its power
		{"made, deleted before it began, and failed with its sandbox", podThat(noSandbox, phase(corev1.PodFailed, ""), deletedAt(testNow), holding(waits(""), false)), "ended over", engine.Cancelled}, // seen in a storm: uncertain for ever
		{"made, deleted before it began, failed, and its sandbox there", podThat(phase(corev1.PodFailed, ""), deletedAt(testNow), holding(waits(""), false)), "accepted unsure", ""},
		{"made, its sandbox gone, and failed by the collector", podThat(noSandbox, phase(corev1.PodFailed, ""), disrupted("DeletionByPodGC"), holding(waits(""), false)), "accepted unsure stuck", engine.Unready},
		{"its first container done, and its sandbox gone", podThat(noSandbox, brought(0), holding(creates, false)), "accepted stuck", engine.Unready},
		{"no image", podThat(holding(waits("ImagePullBackOff"), false)), "accepted stuck", ""},
		{"a name of no image", podThat(holding(waits("InvalidImageName"), false)), "accepted stuck refused", ""},
	} {
		m := Read(c.p, testRef, testNow)
		got := []string{m.Phase.String()}
		for _, x := range []struct {
			is   bool
			name string
		}{{m.Over, "over"}, {m.Outcome != nil, "outcome"}, {m.Uncertain, "unsure"}, {m.Stuck, "stuck"}, {m.Refused, "refused"}, {m.Lingers, "lingers"}, {m.awaits, "awaits"}} {
			if x.is {
				got = append(got, x.name)
			}
		}
		if g := strings.Join(got, " "); g != c.want || m.Cause != c.cause {
			t.Errorf("%s: %s, cause %q; want %s, %q", c.what, g, m.Cause, c.want, c.cause)
		}
		if (m.Uncertain || m.Stuck || m.Over && (m.Outcome == nil || m.Cause == engine.LaunchFailed)) && !strings.Contains(m.Why, "pod p") {
			t.Errorf("%s: %q does not name the pod", c.what, m.Why)
		}
		if strings.HasPrefix(c.what, "a first container") && !strings.HasSuffix(m.Why, "container cox ended with 137 (Error) before the job's began") {
			t.Errorf("%s: %q does not say what failed", c.what, m.Why)
		}
	}
}

// TestAStartThatFailed: a head that says itself that it opened the barrier and could not start the
// program has refused the job, and was not lost. One that says that nothing began, where that is
// known to be wrong, was.
func TestAStartThatFailed(t *testing.T) {
	for started, want := range map[time.Time]engine.Cause{testNow: engine.Refused, {}: engine.NodeLost} {
		head := Member{Over: true, Outcome: &podagent.Outcome{Ref: testRef, Cause: engine.Refused, Started: started, Ended: testNow, Message: "argument list too long"}}
		if r := End([]Member{head}, nil, true); r.Cause != want {
			t.Errorf("started %s: %s, want %s", started, r.Cause, want)
		}
	}
}

// TestHowAnAttemptEnded: member 0's word counts, but for an end that it was told of, and for a
// member that it lost and of which the cluster says more.
//
// Seen to fail with: a loss that only a preemption explains.
func TestHowAnAttemptEnded(t *testing.T) {
	said := func(c engine.Cause, x job.ExitCode) Member {
		return Member{Over: true, Outcome: &podagent.Outcome{Ref: testRef, Cause: c, Exit: x, Started: testNow, Ended: testNow, Message: "said"}}
	}
	lost := Member{Over: true, Cause: engine.NodeLost, Why: "lost"}
	term, kill := job.ExitCode{Signal: sigterm}, job.ExitCode{Signal: sigkill}
	for _, c := range []struct {
		what    string
		members []Member
		stop    *Stop
		want    string
	}{
		{"by itself", []Member{said(engine.Exited, job.ExitCode{Status: 3}), lost}, nil, fmt.Sprint(engine.Exited, job.ExitCode{Status: 3}, "said")},
		{"by itself, while a stop was on its way", []Member{said(engine.Exited, job.ExitCode{})}, &Stop{Cause: engine.Stopped, Reason: "enough"}, fmt.Sprint(engine.Exited, job.ExitCode{}, "said")},
		{"stopped", []Member{said(engine.Stopped, term)}, &Stop{Cause: engine.Stopped, Reason: "enough"}, fmt.Sprint(engine.Stopped, term, "enough")},
		{"deleted by somebody", []Member{said(engine.Stopped, term)}, nil, fmt.Sprint(engine.Cancelled, term, "said")},
		{"preempted", []Member{said(engine.Stopped, term), {Over: true, Cause: engine.Preempted, Why: "for others"}}, nil, fmt.Sprint(engine.Preempted, term, "for others")},
		{"another member preempted", []Member{said(engine.NodeLost, kill), {Over: true, Cause: engine.Preempted, Why: "for others"}}, nil, fmt.Sprint(engine.Preempted, kill, "for others")},
		{"another member ended for what it used of the disk", []Member{said(engine.NodeLost, job.ExitCode{Status: 1}), {Over: true, Cause: engine.Exited, Why: "glut"}}, nil, fmt.Sprint(engine.Exited, kill, "glut")},
		{"another member out of memory", []Member{said(engine.NodeLost, job.ExitCode{Status: 1}), lost, {Over: true, Cause: engine.OutOfMemory, Why: "oom"}}, nil, fmt.Sprint(engine.OutOfMemory, kill, "oom")},
		{"stopped without a word", []Member{lost}, &Stop{Cause: engine.Stopped}, fmt.Sprint(engine.Stopped, term, "")},
		{"never began", []Member{lost}, &Stop{Cause: engine.Unready, Reason: "no room"}, fmt.Sprint(engine.Unready, job.ExitCode{Status: 1}, "no room")},
		{"out of memory, and the others lost", []Member{lost, {Over: true, Cause: engine.OutOfMemory, Why: "oom"}}, nil, fmt.Sprint(engine.OutOfMemory, kill, "oom")},
		{"lost", []Member{lost, lost}, nil, fmt.Sprint(engine.NodeLost, job.ExitCode{Status: 1}, "lost")},
	} {
		r := attemptOutcome(c.members, c.stop)
		if got := fmt.Sprint(r.Cause, r.Exit, r.Message); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// TestServes: a pod that serves is ready by its kubelet's word on the container and by that of who watches
// over nodes, and nothing of either is lost where pods are kept.
func TestServes(t *testing.T) {
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod := func(container bool, condition corev1.ConditionStatus, change ...func(*corev1.Pod)) *corev1.Pod {
		p := podThat(append(change, labelled(render.LabelServes), holding(runs, true))...)
		p.Status.ContainerStatuses[0].Ready = container
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: condition})
		return p
	}
	for name, c := range map[string]struct {
		p    *corev1.Pod
		want bool
	}{
		"ready":                       {pod(true, corev1.ConditionTrue), true},
		"its probe fails":             {pod(false, corev1.ConditionFalse), false},
		"its node is not heard":       {pod(true, corev1.ConditionFalse), false},
		"somebody deletes it":         {pod(true, corev1.ConditionTrue, deletedAt(testNow)), false},
		"its container is not there ": {podThat(), false},
	} {
		if got := Serves(Strip(c.p)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
