package kube

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestABeginThatIsHeardOfLate: a script of a gang ends before the other member has heard that the barrier
// is open. What is seen first is that this member has ended, told so by the crew, and had not begun;
// then the word of the first says when the job began. Its phase does not shrink for that.
//
// Seen to fail with: the begin told as if nothing had been said since.
func TestABeginThatIsHeardOfLate(t *testing.T) {
	s := newStand(t, "n1", "n2")
	e := s.open(nil)
	l := launchOn(1, "n1", "n2")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	s.bound(2)
	now := time.Now().Truncate(time.Second)
	ends := func(o podagent.Outcome) func() map[string]any {
		return func() map[string]any {
			return map[string]any{"phase": "Failed", "containerStatuses": []any{map[string]any{"name": render.Container, "state": map[string]any{"terminated": map[string]any{
				"exitCode": 3, "startedAt": now.Add(-time.Minute).UTC().Format(time.RFC3339), "finishedAt": now.UTC().Format(time.RFC3339), "message": string(o.Text()),
			}}}}}
		}
	}
	s.become(ends(podagent.Outcome{Ref: l.Ref, Index: 1, Cause: engine.Stopped, Ended: now, Message: "told to end"}), "1")
	reported(t, e, l.Ref, "ending", func(r engine.Report) bool { return r.Phase == engine.Ending })
	began := now.Add(-30 * time.Second)
	s.become(ends(podagent.Outcome{Ref: l.Ref, Cause: engine.Exited, Exit: job.ExitCode{Status: 3}, Started: began, Ended: now}), "0")
	was := engine.Ending
	err := e.Watch(t.Context(), "", func(ev engine.Event) error {
		r := ev.Report
		if r.Phase < was {
			t.Errorf("%s after %s: %+v", r.Phase, was, r)
		}
		was = r.Phase
		if !r.Gone {
			return nil
		}
		if r.Cause != engine.Exited || r.Exit.Status != 3 || !r.Started.Equal(began) {
			t.Errorf("%+v", r)
		}
		return io.EOF
	})
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestABeginThatAMemberDoesNotShow: a script has ended, by its word after it had begun, and so has the
// other member, which had not heard of the begin; their kubelets count both pods still. The job has
// begun, and stays so until it is gone.
//
// Seen to fail with: the phase of what the pods show alone after the begin was told.
func TestABeginThatAMemberDoesNotShow(t *testing.T) {
	s := newStand(t, "n1", "n2")
	e := s.open(nil)
	l := launchOn(1, "n1", "n2")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	s.bound(2)
	now := time.Now().Truncate(time.Second)
	ends := func(phase string, o podagent.Outcome) func() map[string]any {
		return func() map[string]any {
			return map[string]any{"phase": phase, "containerStatuses": []any{map[string]any{"name": render.Container, "state": map[string]any{"terminated": map[string]any{
				"exitCode": 3, "startedAt": now.UTC().Format(time.RFC3339), "finishedAt": now.UTC().Format(time.RFC3339), "message": string(o.Text()),
			}}}}}
		}
	}
	first := podagent.Outcome{Ref: l.Ref, Cause: engine.Exited, Exit: job.ExitCode{Status: 3}, Started: now, Ended: now}
	other := podagent.Outcome{Ref: l.Ref, Index: 1, Cause: engine.Stopped, Ended: now, Message: "told to end"}
	s.become(ends("Running", other), "1")
	s.become(ends("Running", first), "0")
	r := reported(t, e, l.Ref, "begun", func(r engine.Report) bool { return !r.Started.IsZero() })
	s.become(ends("Failed", other), "1")
	s.become(ends("Failed", first), "0")
	was := max(r.Phase, engine.Running)
	if err := e.Watch(t.Context(), "", func(ev engine.Event) error {
		if ev.Report.Phase < was {
			t.Errorf("%s after %s", ev.Report.Phase, was)
		}
		if was = ev.Report.Phase; ev.Report.Gone {
			return io.EOF
		}
		return nil
	}); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestAPodThatIsSeenAgain: somebody calls a pod failed whose container runs, so nobody can say what
// became of it; then its kubelet speaks again. What was said of the doubt is said no more.
//
// Seen to fail with: the message of the doubt kept.
func TestAPodThatIsSeenAgain(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	s.bound(1)
	s.runs()
	s.shown(e, l.Ref)
	s.become(func() map[string]any {
		is := isRunning()
		is["phase"] = "Failed"
		return is
	}, "0")
	r := reported(t, e, l.Ref, "uncertain", func(r engine.Report) bool { return r.Uncertain })
	if !strings.Contains(r.Message, "its kubelet on n1 has not said that its containers have ended") {
		t.Errorf("%+v", r)
	}
	s.become(isRunning, "0")
	if r := reported(t, e, l.Ref, "seen again", func(r engine.Report) bool { return !r.Uncertain }); r.Message != "" || r.Phase != engine.Running {
		t.Errorf("%+v", r)
	}
}
