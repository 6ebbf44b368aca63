package snapshot_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/snapshot"
)

func spec(cpus int) *job.Spec {
	s := &job.Spec{Name: "work", Owner: job.Owner{User: "anna"}, TimeLimit: time.Hour, Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}}}
	s.Groups[0].PerTask.CPU = resource.CPUs(cpus)
	return s
}

// told is a core in use, and steps that it made after the state was taken.
func told(t *testing.T) *snapshot.File {
	t.Helper()
	c := sched.New(sched.Config{})
	node := fleet.Node{Name: "n1", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(4)}}
	one := spec(3)
	c.Step(10, sched.NodeSet{Node: node}, sched.Submitted{Job: 1, Spec: one, At: 10}, sched.Submitted{Job: 2, Spec: spec(3), At: 10},
		sched.Submitted{Job: 3, Spec: one, At: 10}, sched.Blocked{Job: 3, Why: reason.Reason{Code: reason.HeldUser}})
	f := &snapshot.File{State: c.Snapshot().Sort()}
	for i, events := range [][]sched.Event{
		{sched.Released{Job: 1}},
		{sched.Submitted{Job: 4, Spec: spec(1), At: 12, Priority: 3}, sched.PolicySet{Policy: &account.Policy{Licenses: []account.License{{Name: "x", Count: 2}}}}},
		{sched.Unblocked{Job: 3}, sched.Withdrawn{Job: 4}, sched.Extended{Job: 2, Until: 99}, sched.NodeRemoved{Name: "n2"}},
		{sched.Restored{Job: 9, Spec: spec(1), Claims: []fleet.Claim{{Node: "n1", Tasks: 1}}, Until: 70, Began: 1}},
	} {
		now := sched.Instant(20 + i)
		f.Steps = append(f.Steps, snapshot.Step{Now: now, Events: events, Out: snapshot.Encode(c.Step(now, events...))})
	}
	return f
}

func written(t *testing.T, f *snapshot.File) string {
	t.Helper()
	var b strings.Builder
	if err := f.Write(&b, "test"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestStepsAreMadeAnew(t *testing.T) {
	was := told(t)
	text := written(t, was)
	is, err := snapshot.Read(strings.NewReader(text), "it")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("read otherwise than written (-written +read):\n%s", diff)
	}
	n := 0
	is.Replay(func(i int, s *snapshot.Step, out []byte, same bool) bool {
		if n++; !same {
			t.Errorf("step %d decided\n%s\nand when replayed\n%s", i, s.Out, out)
		}
		return true
	})
	if n != len(was.Steps) {
		t.Errorf("%d of %d steps were made", n, len(was.Steps))
	}
	if again := written(t, is); again != text {
		t.Errorf("written again it is\n%s\nit was\n%s", again, text)
	}
}

// TestReplaySeesAnotherDecision: a decision that was changed is found.
func TestReplaySeesAnotherDecision(t *testing.T) {
	f := told(t)
	f.Steps[0].Out = bytes.Replace(f.Steps[0].Out, []byte(`"Job":2`), []byte(`"Job":3`), 1)
	f.Steps[1].Sum = snapshot.Sum([]byte("[]x"))
	var bad []int
	f.Replay(func(i int, _ *snapshot.Step, _ []byte, same bool) bool {
		if !same {
			bad = append(bad, i)
		}
		return true
	})
	if !cmp.Equal(bad, []int{0, 1}) {
		t.Errorf("steps %v differ, want 0 and 1", bad)
	}
}

// TestNothingSecretIsWritten: what a submission holds beside its request stays out.
func TestNothingSecretIsWritten(t *testing.T) {
	const canary = "canary-4711"
	s := spec(1)
	s.Comment, s.WorkDir, s.Image = canary, "/"+canary, canary
	s.Program = job.Program{ScriptName: canary, ScriptHash: canary, Args: []string{canary}}
	s.Output = job.Output{Stdout: canary, Stderr: canary, Stdin: canary}
	s.Env = job.Environment{Hash: canary, Export: canary, Set: []string{"K=" + canary}}
	s.Mail = &job.Mail{To: canary}
	s.Notify = &job.Notify{Webhook: canary}
	s.Source = job.Source{File: canary, Host: canary, Submit: canary, Given: map[string]string{"x": canary}}
	s.Provenance = &job.Provenance{Notes: []string{canary}}
	s.Array = &job.ArraySpec{Text: canary}
	c := sched.New(sched.Config{})
	c.Step(1, sched.Submitted{Job: 1, Spec: s})
	f := &snapshot.File{State: c.Snapshot().Sort(), Steps: []snapshot.Step{{Now: 2, Events: []sched.Event{sched.Submitted{Job: 2, Spec: s}}}}}
	if text := written(t, f); strings.Contains(text, canary) {
		t.Errorf("%s stands in the file:\n%s", canary, text)
	}
}

func TestWhatIsNoSnapshot(t *testing.T) {
	good := written(t, told(t))
	for _, c := range []struct {
		why, text, want string
		kind            fault.Kind
	}{
		{"empty", "", "this is not a snapshot of cox, or not a whole one", fault.Invalid},
		{"other JSON", "{}", "this is not a snapshot of cox, or not a whole one", fault.Invalid},
		{"cut off", good[:len(good)/2], "this is not a snapshot of cox, or not a whole one", fault.Invalid},
		{"newer", strings.Replace(good, `"version":2`, `"version":9`, 1), "of version 9", fault.Unsupported},
		{"older", strings.Replace(strings.Replace(good, `"version":2`, `"version":1`, 1), `"memory":{`, `"memory":{"pinched":true,`, 1), "of version 1, this cox reads version 2", fault.Unsupported},
		{"another field", strings.Replace(good, `"specs":`, `"more":1,"specs":`, 1), "more", fault.Invalid},
		{"a job of no specification", strings.Replace(good, `"specced":[0`, `"specced":[77`, 1), "no specification 77", fault.Invalid},
		{"a reservation of nobody", strings.Replace(good, `"plan":{"job":2`, `"plan":{"job":77`, 1), "job 77", fault.Invalid},
		{"an unknown event", strings.Replace(good, `"kind":"Withdrawn"`, `"kind":"Wxthdrawn"`, 1), "Wxthdrawn", fault.Invalid},
	} {
		if c.text == good {
			t.Errorf("%s: the text does not have what is replaced:\n%s", c.why, good)
		}
		_, err := snapshot.Read(strings.NewReader(c.text), "it")
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %q", c.why, err, c.want)
		}
	}
}
