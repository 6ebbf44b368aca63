package manifestpod_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/manifestpod"
	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// workOf is a master and two workers.
func workOf(t *testing.T, complete *podspec.Complete, keepGoing bool) (*manifestpod.Work, []manifestpod.Task) {
	t.Helper()
	set := &podspec.Set{Kind: "PyTorchJob", Name: "a", Complete: complete, KeepGoing: keepGoing, Roles: []podspec.Role{
		{Name: "master", Replicas: 1, PodName: "m", Template: json.RawMessage(podWith(""))},
		{Name: "worker", Replicas: 2, PodName: "w-{i}", Template: json.RawMessage(podWith(""))},
	}}
	script, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	w, err := manifestpod.Parse(&job.Job{Spec: &job.Spec{Program: job.Program{Kind: job.Pods}, Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}, {Tasks: job.Count{Want: 2}}}}}, script, &settings.Terms{})
	if err != nil {
		t.Fatal(err)
	}
	return w, []manifestpod.Task{{}, {Group: 1}, {Group: 1, Index: 1}}
}

// pods are members by a letter each: r runs, w waits for its node, o succeeded; 3 failed with that; k was killed at its
// memory limit, d deleted, p displaced by others, n lost with its node. A letter's place in when says when it ended.
func pods(t *testing.T, states string) (out []podstatus.Member) {
	t.Helper()
	for i, word := range strings.Fields(states) {
		m := podstatus.Member{Manifest: true, Over: true, Phase: engine.Ended, Began: time.Unix(10, 0), Why: "pod " + string(rune('0'+i)) + " " + word[:1]}
		at := time.Unix(100, 0)
		if n := strings.Count(word, "'"); n > 0 {
			at = time.Unix(int64(100+n), 0)
		}
		switch word[0] {
		case 'r':
			m = podstatus.Member{Manifest: true, Phase: engine.Running, Began: time.Unix(10, 0)}
		case 'w':
			m = podstatus.Member{Manifest: true, Phase: engine.Accepted}
		case 'o':
			m.Result, m.Why = &podstatus.Result{Succeeded: true, At: at}, ""
		case 'k':
			m.Cause, m.Result = engine.OutOfMemory, &podstatus.Result{Exit: job.ExitCode{Signal: 9}, At: at}
		case 'd':
			m.Cause, m.Result = engine.Cancelled, &podstatus.Result{Exit: job.ExitCode{Signal: 15}, At: at}
		case 'p':
			m.Cause, m.Result = engine.Preempted, &podstatus.Result{Exit: job.ExitCode{Signal: 9}, At: at}
		case 'n':
			m.Cause = engine.NodeLost
		default:
			m.Cause, m.Result = engine.Exited, &podstatus.Result{Exit: job.ExitCode{Status: int(word[0] - '0')}, At: at}
		}
		out = append(out, m)
	}
	return out
}

// TestJudge: which ends of pods decide a job while others live, and how it has ended when all are over. An apostrophe
// is a second later.
//
// Seen to fail with: a failure that outranks an earlier success; a success of those that do not count.
func TestJudge(t *testing.T) {
	zero := 0
	master, anyWorker, first := &podspec.Complete{Roles: []string{"master"}}, &podspec.Complete{Roles: []string{"worker"}, Any: true}, &podspec.Complete{Roles: []string{"worker"}, Index: &zero}
	for _, c := range []struct {
		complete  *podspec.Complete
		keepGoing bool
		states    string
		judged    string // "": nothing yet; "good", "bad"
		ended     string // what it is when those that live are deleted
	}{
		{nil, false, "r r r", "", ""},
		{nil, false, "o o r", "", ""},
		{nil, false, "o o o", "good", "exited 0:0"},
		{nil, false, "r 3 r", "bad", "exited 3:0"},
		{nil, false, "r 3' 4", "bad", "exited 4:0"},
		{nil, false, "k r r", "bad", "out-of-memory 0:9"},
		{nil, false, "r d r", "bad", "cancelled 1:0"},
		{nil, false, "r p r", "bad", "preempted 1:0"},
		{nil, false, "w n r", "bad", "node-lost 1:0"},
		{nil, true, "r 3 r", "", ""},
		{nil, true, "o 3 o", "", "exited 3:0"},
		{nil, true, "o o n", "", "node-lost 1:0"},
		{master, false, "o r r", "good", "exited 0:0"},
		{master, false, "r o o", "", ""},
		{master, false, "o 3' r", "good", "exited 0:0"},
		{master, false, "o' 3 r", "bad", "exited 3:0"},
		{master, true, "o' 3 r", "good", "exited 0:0"},
		{master, true, "3 r r", "", ""},
		{anyWorker, false, "r r o", "good", "exited 0:0"},
		{anyWorker, true, "r 3 r", "", ""},
		{anyWorker, true, "o 3 4'", "", "exited 3:0"},
		{first, false, "r o r", "good", "exited 0:0"},
		{first, false, "r r o", "", ""},
	} {
		w, tasks := workOf(t, c.complete, c.keepGoing)
		members := pods(t, c.states)
		v := w.Judge(tasks, members)
		judged := map[bool]string{true: "good", false: "bad"}[v.Succeeded]
		if !v.Decided {
			judged = ""
		}
		if judged != c.judged || v.Decided && v.Reason == "" {
			t.Errorf("%+v: judged %q: %+v", c, judged, v)
		}
		if c.ended == "" {
			continue
		}
		var stop *podstatus.Stop
		if v.Decided {
			stop = &podstatus.Stop{Cause: engine.Exited, Reason: v.Reason}
		}
		deleted := pods(t, strings.NewReplacer("r", "d''''", "w", "d''''").Replace(c.states))
		r := w.End(tasks, deleted, stop, true)
		if got := fmt.Sprintf("%s %d:%d", r.Cause, r.Exit.Status, r.Exit.Signal); got != c.ended {
			t.Errorf("%+v: ended %q: %+v", c, got, r)
		}
	}
}

// TestEndAsked: who asks for the end of a job is its cause, unless the job had ended by itself.
func TestEndAsked(t *testing.T) {
	asked := &podstatus.Stop{Cause: engine.Stopped, Reason: "a person"}
	refused := &podstatus.Stop{Cause: engine.Refused, Reason: "no image"}
	limit := &podstatus.Stop{Cause: engine.TimedOut, Reason: "its time"}
	for _, c := range []struct {
		keepGoing bool
		states    string
		stop      *podstatus.Stop
		want      engine.Cause
	}{
		{false, "d d d", asked, engine.Stopped},
		{false, "o o o", asked, engine.Exited},
		{false, "3 d d", asked, engine.Exited},
		{true, "3 d d", asked, engine.Stopped},
		{false, "d d d", limit, engine.TimedOut},
		{true, "o d d", limit, engine.TimedOut},
		{false, "d d d", nil, engine.Cancelled},
		{false, "d d d", refused, engine.Refused},
	} {
		w, tasks := workOf(t, nil, c.keepGoing)
		if r := w.End(tasks, pods(t, c.states), c.stop, true); r.Cause != c.want {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}
