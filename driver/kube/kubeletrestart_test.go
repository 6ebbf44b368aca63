package kube

import (
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// says has the kubelet of a pod say what the pod's status is, at an instant.
func (s *stand) says(pod string, at time.Time, status map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := "/api/v1/namespaces/default/pods/" + pod
	o := s.objects[path]
	o["status"] = status
	meta(o)["managedFields"] = []any{
		map[string]any{"manager": "coxswain", "operation": "Update", "time": at.Add(-time.Hour).UTC().Format(time.RFC3339), "fieldsV1": map[string]any{"f:spec": map[string]any{}}},
		map[string]any{"manager": "kubelet", "operation": "Update", "subresource": "status", "time": at.UTC().Format(time.RFC3339), "fieldsV1": map[string]any{"f:status": map[string]any{"f:phase": map[string]any{}, "f:startTime": map[string]any{}}}},
	}
	s.keep(path, "MODIFIED", o)
}

// taking is the status of a pod that its kubelet has taken, and of which no container runs yet.
func taking(at time.Time) map[string]any {
	return map[string]any{"phase": "Pending", "startTime": at.UTC().Format(time.RFC3339), "containerStatuses": []any{
		map[string]any{"name": render.Container, "state": map[string]any{"waiting": map[string]any{"reason": "ContainerCreating"}}},
	}}
}

// running is that of one whose barrier is open.
func running(at time.Time) map[string]any {
	text := at.UTC().Format(time.RFC3339)
	return map[string]any{"phase": "Running", "startTime": text, "containerStatuses": []any{
		map[string]any{"name": render.Container, "started": true, "containerID": "containerd://x", "state": map[string]any{"running": map[string]any{"startedAt": text}}},
	}}
}

// refusing is that of one which its kubelet refuses, and that it had first seen at an instant: as
// kubelets have it that say nothing of its containers.
func refusing(taken time.Time, reason string) map[string]any {
	return map[string]any{"phase": "Failed", "reason": reason, "message": "Pod was rejected: in words", "startTime": taken.UTC().Format(time.RFC3339)}
}

// TestAPodThatIsRefusedAgain: a kubelet that began anew refuses a pod that it had, and says of it
// what it says of one that it never took. What had begun, or may have, is lost with its node, so that
// it does not run a second time unless it may; what cannot have begun is launched again.
//
// Seen to fail with: the cause of a refusal whatever is known of the attempt; without what the watch
// has shown before; without the whole object's word; a refusal before its kubelet had seen it, by a
// clock that is ahead of the API server's, taken for one at once.
func TestAPodThatIsRefusedAgain(t *testing.T) {
	now := time.Now()
	long := now.Add(-time.Minute)
	for name, c := range map[string]struct {
		before  map[string]any // what its kubelet had said; nil: nothing
		refusal map[string]any
		away    bool // no driver is there when it is refused
		want    engine.Cause
		says    string
	}{
		"at once":                        {refusal: refusing(now, "OutOfcpu"), want: engine.Unready, says: "OutOfcpu"},
		"at once, its object late":       {refusal: refusing(long, "OutOfcpu"), want: engine.Unready, says: "OutOfcpu"},
		"at once, by a plugin":           {refusal: refusing(now, "UnexpectedAdmissionError"), want: engine.LaunchFailed, says: "UnexpectedAdmissionError"},
		"at once, with no driver":        {refusal: refusing(now, "OutOfcpu"), away: true, want: engine.Unready, says: "OutOfcpu"},
		"as it ran":                      {before: running(long), refusal: refusing(long, "NodeAffinity"), want: engine.NodeLost, says: "it had begun before its kubelet did"},
		"as it ran, by a plugin":         {before: running(long), refusal: refusing(long, "UnexpectedAdmissionError"), want: engine.NodeLost, says: "UnexpectedAdmissionError"},
		"as it was made":                 {before: taking(now), refusal: refusing(now, "OutOfcpu"), want: engine.NodeLost, says: "whether the job had begun nobody can say"},
		"with no driver, and had begun":  {before: running(long), refusal: refusing(long, "OutOfcpu"), away: true, want: engine.NodeLost, says: "it had begun before its kubelet did"},
		"with no driver, and seen never": {refusal: refusing(long, "OutOfcpu"), away: true, want: engine.NodeLost, says: "whether the job had begun nobody can say"},
		"with no driver, a clock ahead":  {refusal: refusing(now.Add(time.Minute), "OutOfcpu"), away: true, want: engine.NodeLost, says: "whether the job had begun nobody can say"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, "n1")
			dir := t.TempDir()
			open := func() *Engine { return s.open(func(c *Config) { c.Root = dir }) }
			e := open()
			l := launchOn(1, "n1")
			if err := e.Launch(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			name := render.Name(e.log.server, l.Ref) + "-0"
			until(t, "its pod is seen on its node", func() bool { return podIs(e, l.Ref, func(p *pod) bool { return p.Spec.NodeName != "" }) })
			if c.before != nil {
				s.says(name, now, c.before)
				until(t, "what its kubelet says is seen", func() bool { return podIs(e, l.Ref, func(p *pod) bool { return p.Status.StartTime != nil }) })
			}
			if c.before != nil && c.before["phase"] == "Running" {
				until(t, "it runs", func() bool {
					r, err := e.Inspect(t.Context(), l.Ref)
					return err == nil && r.Phase == engine.Running
				})
			}
			if c.away {
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
			s.says(name, now, c.refusal)
			if c.away {
				e = open()
			}
			var r engine.Report
			until(t, "it has ended", func() (over bool) {
				var err error
				r, err = e.Inspect(t.Context(), l.Ref)
				return err == nil && r.Gone
			})
			if r.Cause != c.want || !strings.Contains(r.Message, c.says) || r.Started.IsZero() != (c.before == nil || c.before["phase"] != "Running") {
				t.Errorf("%+v", r)
			}
		})
	}
}

// podIs reports whether the first pod of an attempt is as it should be, as the engine knows it.
func podIs(e *Engine, ref engine.Ref, is func(*pod) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.attempts[ref].pods[0]
	return p != nil && p.seen && is(p)
}

// ending is that of one whose container was told to end, a while after it began.
func ending(taken time.Time, ref engine.Ref, phase, reason string) map[string]any {
	return endingOf(taken, taken.Add(time.Second), ref, phase, reason)
}

// endingOf is ending, of one whose barrier was opened at an instant; zero: it never was.
func endingOf(taken, opened time.Time, ref engine.Ref, phase, reason string) map[string]any {
	o := podagent.Outcome{Ref: ref, Cause: engine.Stopped, Exit: job.ExitCode{Signal: int(syscall.SIGTERM)}, Started: opened, Ended: time.Now(), Message: "its pod was told to end"}
	now := time.Now().UTC().Format(time.RFC3339)
	return map[string]any{"phase": phase, "reason": reason, "message": "Pod was rejected: in words", "startTime": taken.UTC().Format(time.RFC3339), "containerStatuses": []any{
		map[string]any{"name": render.Container, "containerID": "containerd://x", "state": map[string]any{"terminated": map[string]any{"exitCode": 143, "reason": "Error", "message": string(o.Text()), "startedAt": now, "finishedAt": now}}},
	}}
}

// TestAPodThatIsToldToEndByItsKubelet, as by one that refuses it again: first it says that its
// container has ended, and later why. Nobody has cancelled the job.
//
// Seen to fail with: an end that is read before its kubelet has said why (cancelled).
func TestAPodThatIsToldToEndByItsKubelet(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	name, at := render.Name(e.log.server, l.Ref)+"-0", time.Now().Add(-time.Minute)
	is := func(what string, ok func(r engine.Report) bool) (r engine.Report) {
		t.Helper()
		until(t, what, func() bool {
			var err error
			r, err = e.Inspect(t.Context(), l.Ref)
			return err == nil && ok(r)
		})
		return r
	}
	until(t, "its pod is on its node", func() bool { return podIs(e, l.Ref, func(p *pod) bool { return p.Spec.NodeName != "" }) })
	s.says(name, at, running(at))
	is("it runs", func(r engine.Report) bool { return r.Phase == engine.Running })
	s.says(name, at, ending(at, l.Ref, "Running", ""))
	until(t, "its end is seen", func() bool {
		return podIs(e, l.Ref, func(p *pod) bool { return p.Status.ContainerStatuses[0].State.Terminated != nil })
	})
	if r, err := e.Inspect(t.Context(), l.Ref); err != nil || r.Gone {
		t.Errorf("before its kubelet says why: %+v, %v", r, err)
	}
	s.says(name, at, ending(at, l.Ref, "Failed", "OutOfcpu"))
	if r := is("it has ended", func(r engine.Report) bool { return r.Gone }); r.Cause != engine.NodeLost || !strings.Contains(r.Message, "OutOfcpu: Pod was rejected") || r.Exit.Signal != int(syscall.SIGTERM) {
		t.Errorf("%+v", r)
	}
}

// TestAMemberThatIsRefusedAgain: of two pods one is refused again before a driver has seen that both
// run. That the other one's barrier is open says that the job had begun.
//
// Seen to fail with: a begin that is seen only where all pods run.
func TestAMemberThatIsRefusedAgain(t *testing.T) {
	s := newStand(t, "n1", "n2")
	dir := t.TempDir()
	open := func() *Engine { return s.open(func(c *Config) { c.Root = dir }) }
	e := open()
	l := launchOn(1, "n1", "n2")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	name := render.Name(e.log.server, l.Ref)
	until(t, "its pods are on their nodes", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.attempts[l.Ref].bound
	})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	s.says(name+"-0", at, running(at))
	s.says(name+"-1", at, refusing(at, "OutOfcpu")) // as if at once: by itself it would be no reason
	e = open()
	until(t, "it is known to have begun", func() bool {
		r, err := e.Inspect(t.Context(), l.Ref)
		return err == nil && !r.Started.IsZero()
	})
	s.says(name+"-0", at, refusing(at, "OutOfcpu"))
	var r engine.Report
	until(t, "it has ended", func() bool {
		var err error
		r, err = e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Gone
	})
	if r.Cause != engine.NodeLost || !strings.Contains(r.Message, "OutOfcpu") {
		t.Errorf("%+v", r)
	}
}

// TestAPodThatIsToldToEndBeforeItsBarrierOpens, by its kubelet, as it waits for others or for files: the
// job has not begun, is never shown to run, and is charged nothing.
//
// Seen to fail with: whatever has left a word taken for begun; "it had begun" said of it.
func TestAPodThatIsToldToEndBeforeItsBarrierOpens(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	name, at := render.Name(e.log.server, l.Ref)+"-0", time.Now().Add(-time.Minute)
	until(t, "its pod is on its node", func() bool { return podIs(e, l.Ref, func(p *pod) bool { return p.Spec.NodeName != "" }) })
	s.says(name, at, endingOf(at, time.Time{}, l.Ref, "Running", ""))
	var r engine.Report
	until(t, "its kubelet's why is waited for", func() bool {
		var err error
		r, err = e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Phase >= engine.Ready
	})
	if r.Phase != engine.Ready || !r.Started.IsZero() {
		t.Errorf("before its kubelet says why: %+v", r)
	}
	s.says(name, at, endingOf(at, time.Time{}, l.Ref, "Failed", "OutOfcpu"))
	until(t, "it has ended", func() bool {
		var err error
		r, err = e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Gone
	})
	if !r.Started.IsZero() || !strings.Contains(r.Message, "OutOfcpu: Pod was rejected") || strings.Contains(r.Message, "it had begun") {
		t.Errorf("%+v", r)
	}
}

// TestAPodWithoutANodeThatIsCollected: it was deleted while no server looked, and who collects such pods
// has called it failed; our finalizer keeps the object. No kubelet had it: it is over, and the job is
// launched again.
//
// Seen to fail with: its kubelet's word waited for, which for a pod without a node never comes.
func TestAPodWithoutANodeThatIsCollected(t *testing.T) {
	s := newStand(t, "n1")
	var code atomic.Int32
	code.Store(http.StatusInternalServerError)
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/binding") {
			return false
		}
		refusal(w, int(code.Load()), "", "it is not bound")
		return true
	})
	root := t.TempDir()
	open := func() *Engine { return s.open(func(c *Config) { c.Root = root }) }
	e := open()
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	until(t, "its pod is seen", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		p := e.attempts[l.Ref].pods[0]
		return p != nil && p.seen && e.attempts[l.Ref].made != nil
	})
	name := render.Name(e.log.server, l.Ref) + "-0"
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	code.Store(http.StatusConflict) // as of a pod that is being deleted
	s.mu.Lock()
	meta(s.objects[podOf(name)])["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	s.mu.Unlock()
	s.says(name, time.Now(), map[string]any{"phase": "Failed"})
	e = open()
	var r engine.Report
	until(t, "it has ended", func() bool {
		var err error
		r, err = e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Gone
	})
	if !r.Started.IsZero() {
		t.Errorf("%+v", r)
	}
}

// TestAMemberWhoseNodeIsGone: of a gang that begins one pod's node is deleted before its kubelet's first
// word of it has arrived. That the other's barrier is open says that the job had begun.
//
// Seen to fail with: a pod that nobody has spoken of taken for never begun, whatever the others say.
func TestAMemberWhoseNodeIsGone(t *testing.T) {
	s := newStand(t, "n1", "n2")
	e := s.open(nil)
	l := launchOn(1, "n1", "n2")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	name, at := render.Name(e.log.server, l.Ref), time.Now().Add(-time.Minute)
	s.bound(2)
	s.says(name+"-0", at, running(at))
	until(t, "the first one runs", func() bool {
		return podIs(e, l.Ref, func(p *pod) bool { return p.Status.Phase == "Running" })
	})
	s.says(name+"-1", at, map[string]any{"phase": "Failed", "conditions": []any{map[string]any{
		"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": "PodGC: node no longer exists", "lastTransitionTime": at.UTC().Format(time.RFC3339),
	}}})
	var r engine.Report
	until(t, "it is judged", func() bool {
		var err error
		r, err = e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Phase == engine.Ending
	})
	if r.Started.IsZero() {
		t.Errorf("%+v", r)
	}
	s.says(name+"-0", at, refusing(at, "OutOfcpu"))
	until(t, "it has ended", func() bool {
		var err error
		r, err = e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Gone
	})
	if r.Cause != engine.NodeLost {
		t.Errorf("%+v", r)
	}
}
