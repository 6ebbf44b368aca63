package podstatus

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

var (
	manifestNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	twoMains    = Containers{Main: []string{"a", "b"}}
)

func runsNow(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, ContainerID: "x", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(manifestNow.Add(-time.Hour))}}}
}

func endedBy(name string, code int32, ago time.Duration, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, ContainerID: "x", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: metav1.NewTime(manifestNow.Add(-time.Hour)), FinishedAt: metav1.NewTime(manifestNow.Add(-ago)),
	}}}
}

func waitsFor(name, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "said"}}}
}

// manifestPod is a pod of a manifest on a node, with the containers' states.
func manifestPod(phase corev1.PodPhase, all ...corev1.ContainerStatus) *corev1.Pod {
	start := metav1.NewTime(manifestNow.Add(-time.Hour))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Labels: map[string]string{render.LabelManifest: "true"}},
		Spec:       corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Phase: phase, ContainerStatuses: all, StartTime: &start},
	}
}

// TestManifestStates: what the states of containers say of a pod without an agent.
//
// Seen to fail with: a phase alone taken for an end; containers of others counted; a container that is begun again
// taken for an end.
func TestManifestStates(t *testing.T) {
	sidecar := manifestPod(corev1.PodRunning, endedBy("a", 0, time.Minute, "Completed"), endedBy("b", 0, time.Minute, "Completed"))
	sidecar.Status.InitContainerStatuses = []corev1.ContainerStatus{runsNow("side")}
	initFailed := manifestPod(corev1.PodFailed, waitsFor("a", "PodInitializing"), waitsFor("b", "PodInitializing"))
	initFailed.Status.InitContainerStatuses = []corev1.ContainerStatus{endedBy("first", 3, time.Second, "Error")}
	deleted := manifestPod(corev1.PodSucceeded, endedBy("a", 0, time.Second, "Completed"), endedBy("b", 0, time.Second, "Completed"))
	grace, at := int64(1), metav1.NewTime(manifestNow)
	deleted.DeletionTimestamp, deleted.DeletionGracePeriodSeconds = &at, &grace
	evicted := manifestPod(corev1.PodFailed, endedBy("a", 137, time.Second, "Error"), endedBy("b", 137, time.Second, "Error"))
	evicted.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler", Message: "for others"}}
	lost := manifestPod(corev1.PodFailed, runsNow("a"), runsNow("b"))
	late := manifestPod(corev1.PodFailed, endedBy("a", 143, time.Second, "Error"), endedBy("b", 143, time.Second, "Error"))
	late.Status.Reason = "DeadlineExceeded"
	again := runsNow("a")
	again.RestartCount, again.State = 4, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s"}}

	for name, c := range map[string]struct {
		pod  *corev1.Pod
		of   Containers
		want Member // but for its texts
		exit job.ExitCode
		why  string
	}{
		"all run":                        {pod: manifestPod(corev1.PodRunning, runsNow("a"), runsNow("b")), of: twoMains, want: Member{Phase: engine.Running}},
		"one is not there yet":           {pod: manifestPod(corev1.PodPending, runsNow("a"), waitsFor("b", "ContainerCreating")), of: twoMains, want: Member{Phase: engine.Accepted}},
		"nothing is said of one":         {pod: manifestPod(corev1.PodPending, runsNow("a")), of: twoMains, want: Member{Phase: engine.Accepted}},
		"one has ended":                  {pod: manifestPod(corev1.PodRunning, endedBy("a", 3, time.Second, "Error"), runsNow("b")), of: twoMains, want: Member{Phase: engine.Running}},
		"succeeded":                      {pod: manifestPod(corev1.PodSucceeded, endedBy("a", 0, 2*time.Second, ""), endedBy("b", 0, time.Second, "")), of: twoMains, want: Member{Phase: engine.Ended, Over: true, Result: &Result{Succeeded: true}}},
		"the first to fail counts":       {pod: manifestPod(corev1.PodFailed, endedBy("a", 5, time.Second, "Error"), endedBy("b", 4, time.Minute, "Error")), of: twoMains, want: Member{Phase: engine.Ended, Over: true, Cause: engine.Exited, Result: &Result{}}, exit: job.ExitCode{Status: 4}, why: "container b ended with 4"},
		"killed":                         {pod: manifestPod(corev1.PodFailed, endedBy("a", 137, time.Second, "OOMKilled"), endedBy("b", 0, time.Second, "")), of: twoMains, want: Member{Phase: engine.Ended, Over: true, Cause: engine.OutOfMemory, Result: &Result{}}, exit: job.ExitCode{Signal: 9}, why: "OOMKilled"},
		"its kubelet counts it":          {pod: manifestPod(corev1.PodRunning, endedBy("a", 0, time.Second, ""), endedBy("b", 0, time.Second, "")), of: twoMains, want: Member{Phase: engine.Running}},
		"a sidecar holds it":             {pod: sidecar, of: twoMains, want: Member{Phase: engine.Running, Lingers: true}},
		"a container of others":          {pod: manifestPod(corev1.PodRunning, endedBy("a", 0, time.Minute, ""), endedBy("b", 0, time.Minute, ""), runsNow("injected")), of: twoMains, want: Member{Phase: engine.Ended, Over: true, Result: &Result{Succeeded: true}}},
		"an init container failed":       {pod: initFailed, of: twoMains, want: Member{Phase: engine.Ended, Over: true, Cause: engine.Exited}, why: "container first ended with 3"},
		"told to end, and it did":        {pod: deleted, of: twoMains, want: Member{Phase: engine.Ended, Over: true, Cause: engine.Cancelled, Result: &Result{}}, why: "was deleted in the cluster"},
		"displaced":                      {pod: evicted, of: twoMains, want: Member{Phase: engine.Ended, Over: true, Cause: engine.Preempted, Result: &Result{}}, exit: job.ExitCode{Signal: 9}, why: "PreemptionByScheduler"},
		"its deadline":                   {pod: late, of: twoMains, want: Member{Phase: engine.Ended, Over: true, Cause: engine.TimedOut, Result: &Result{}}, exit: job.ExitCode{Signal: 15}},
		"called failed by nobody":        {pod: lost, of: twoMains, want: Member{Phase: engine.Running, Uncertain: true}, why: "has not said that its containers have ended"},
		"it is begun again":              {pod: manifestPod(corev1.PodRunning, again), of: Containers{Main: []string{"a"}, Restarts: true}, want: Member{Phase: engine.Running}, why: "CrashLoopBackOff: back-off 40s"},
		"between two runs":               {pod: manifestPod(corev1.PodRunning, endedBy("a", 1, time.Minute, "Error")), of: Containers{Main: []string{"a"}, Restarts: true}, want: Member{Phase: engine.Running}},
		"no image":                       {pod: manifestPod(corev1.PodPending, waitsFor("a", "ImagePullBackOff"), waitsFor("b", "ContainerCreating")), of: twoMains, want: Member{Phase: engine.Accepted, Stuck: true}, why: "ImagePullBackOff"},
		"an image that is never pulled":  {pod: manifestPod(corev1.PodPending, waitsFor("a", "ErrImageNeverPull")), of: Containers{Main: []string{"a"}}, want: Member{Phase: engine.Accepted, Stuck: true, Refused: true}},
		"read without its template":      {pod: manifestPod(corev1.PodSucceeded, endedBy("a", 0, time.Second, "")), want: Member{Phase: engine.Ended, Over: true, Result: &Result{Succeeded: true}}},
		"without its template, it lives": {pod: manifestPod(corev1.PodRunning, endedBy("a", 0, time.Second, ""), runsNow("b")), want: Member{Phase: engine.Running}},
	} {
		m := ReadManifest(c.pod, c.of, manifestNow)
		if slim := ReadManifest(Strip(c.pod), c.of, manifestNow); !reflect.DeepEqual(slim, m) {
			t.Errorf("%s: of what is kept of a pod: %+v, want %+v", name, slim, m)
		}
		if (m.Result == nil) != (c.want.Result == nil) || m.Result != nil && (m.Result.Succeeded != c.want.Result.Succeeded || m.Result.Exit != c.exit) {
			t.Errorf("%s: its result is %+v, want %+v with %v", name, m.Result, c.want.Result, c.exit)
		}
		if !strings.Contains(m.Why, c.why) {
			t.Errorf("%s: %q, want %q", name, m.Why, c.why)
		}
		c.want.Manifest, c.want.Placed = true, true
		m.Why, m.Result, m.Began, c.want.Result = "", nil, time.Time{}, nil
		if !reflect.DeepEqual(m, c.want) {
			t.Errorf("%s: %+v\nwant %+v", name, m, c.want)
		}
	}
}
