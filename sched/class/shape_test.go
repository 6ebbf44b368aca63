package class_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/schedtest"
)

func spec(change func(*job.Spec)) *job.Spec {
	s := &job.Spec{Name: "a", Groups: []job.TaskGroup{{
		Name: "g", Tasks: job.Count{Want: 2}, NodeList: []string{"n1", "n2"},
		PerTask: resource.Requirements{Devices: []resource.DeviceRequest{{Count: 1}}},
	}}}
	change(s)
	return s
}

// TestWhatMakesAShape: what decides where a job may be placed, and nothing else.
func TestWhatMakesAShape(t *testing.T) {
	in := class.NewInterner()
	base := in.Shape(spec(func(*job.Spec) {}))
	for what, change := range map[string]func(*job.Spec){
		"name":         func(s *job.Spec) { s.Name, s.Groups[0].Name = "b", "h" },
		"time limit":   func(s *job.Spec) { s.TimeLimit = 1 },
		"program":      func(s *job.Spec) { s.Program.Args = []string{"x"} },
		"distribution": func(s *job.Spec) { s.Groups[0].Distribution = "cyclic" },
		"order":        func(s *job.Spec) { s.Groups[0].NodeList = []string{"n2", "n1", "n2"} },
	} {
		if in.Shape(spec(change)) != base {
			t.Errorf("another %s makes another shape", what)
		}
	}
	for what, change := range map[string]func(*job.Spec){
		"partition": func(s *job.Spec) { s.Partitions = []string{"p"} },
		"tasks":     func(s *job.Spec) { s.Groups[0].Tasks.Want = 3 },
		"least":     func(s *job.Spec) { s.Groups[0].Tasks.Min = 1 },
		"devices":   func(s *job.Spec) { s.Groups[0].PerTask.Devices[0].Type = "h100" },
		"share":     func(s *job.Spec) { s.Groups[0].PerTask.Devices[0].Share = 500 },
		"list":      func(s *job.Spec) { s.Groups[0].NodeList = nil },
		"groups":    func(s *job.Spec) { s.Groups = append(s.Groups, s.Groups[0]) },
		"exclusive": func(s *job.Spec) { s.Groups[0].Exclusive = true },
	} {
		if in.Shape(spec(change)) == base {
			t.Errorf("another %s makes no other shape", what)
		}
	}
}

// TestOneShapeForEachKey: the forms that are found without writing the request out
// are the same ones. Seen to fail with the tasks of a node left out of plain.
func TestOneShapeForEachKey(t *testing.T) {
	in, byKey := class.NewInterner(), map[string]*class.Shape{}
	rapid.Check(t, func(t *rapid.T) {
		spec := schedtest.Spec(t)
		key, s := class.Key(spec), in.Shape(spec)
		if old := byKey[key]; old != nil && old != s || s.Key != key {
			t.Fatalf("%q has the shape of %q", key, s.Key)
		}
		byKey[key] = s
		if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
			in.Forget(s)
			delete(byKey, key)
		}
	})
}

func TestForgottenShapesAreMadeAnew(t *testing.T) {
	in := class.NewInterner()
	s := in.Shape(spec(func(*job.Spec) {}))
	in.Forget(s)
	if again := in.Shape(spec(func(*job.Spec) {})); again == s || again.Key != s.Key || again.ID == s.ID {
		t.Errorf("got %p %d, was %p %d", again, again.ID, s, s.ID)
	}
}

// TestSizes: how the counts that a user may leave out are filled in.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		why   string
		group job.TaskGroup
		want  class.Group // sizes alone
	}{
		{"one task", job.TaskGroup{Tasks: job.Count{Want: 1}}, class.Group{MinNodes: 1, Want: 1, Least: 1}},
		{"nothing said", job.TaskGroup{}, class.Group{MinNodes: 1, Want: 1, Least: 1}},
		{"nodes alone: one task each", job.TaskGroup{Nodes: job.Range{Min: 2, Max: 4}}, class.Group{MinNodes: 2, MaxNodes: 4, Each: 1, Even: true}},
		{"tasks per node: exactly", job.TaskGroup{Nodes: job.Range{Min: 2, Max: 2}, TasksPerNode: 3}, class.Group{MinNodes: 2, MaxNodes: 2, Each: 3, Cap: 3, Even: true}},
		{"elastic", job.TaskGroup{Tasks: job.Count{Min: 2, Want: 8}}, class.Group{MinNodes: 1, Want: 8, Least: 2}},
		{"a list asks for its nodes", job.TaskGroup{Tasks: job.Count{Want: 1}, NodeList: []string{"a", "b"}}, class.Group{MinNodes: 2, Want: 1, Least: 1}},
	} {
		got := class.Compile(&job.Spec{Groups: []job.TaskGroup{c.group}}).Groups[0]
		if got.MinNodes != c.want.MinNodes || got.MaxNodes != c.want.MaxNodes || got.Each != c.want.Each || got.Want != c.want.Want ||
			got.Least != c.want.Least || got.Cap != c.want.Cap || got.Even != c.want.Even {
			t.Errorf("%s: %+v, want %+v", c.why, got, c.want)
		}
	}
}

// TestDevicesPayPerDevice: what a node gives grows with its devices, whoever asks.
func TestDevicesPayPerDevice(t *testing.T) {
	g := class.Compile(&job.Spec{Groups: []job.TaskGroup{{
		Tasks:     job.Count{Want: 1},
		PerNode:   resource.Requirements{Devices: []resource.DeviceRequest{{Count: 2}, {Count: 1}, {Count: 0, Type: "x"}}},
		PerTask:   resource.Requirements{Vector: resource.Vector{CPU: 1}, Devices: []resource.DeviceRequest{{Count: 2, Share: 500}}},
		PerDevice: resource.Vector{CPU: 10},
	}}}).Groups[0]
	if g.Base.CPU != 30 || g.Step.CPU != 21 || g.Extra.CPU != 10 {
		t.Errorf("base %d, step %d, extra %d; want 30, 21, 10", g.Base.CPU, g.Step.CPU, g.Extra.CPU)
	}
	if len(g.BaseDevices) != 1 || g.BaseDevices[0].Count != 3 || g.BaseDevices[0].Share != resource.WholeDevice || g.StepDevices[0].Share != 500 {
		t.Errorf("devices %+v and %+v", g.BaseDevices, g.StepDevices)
	}
}
