package job_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		job  job.Job
		want string
	}{
		{job.Job{ID: 7}, "7"},
		{job.Job{ID: 9, Array: &job.ArrayTask{Job: 7, Index: 3}}, "7_3"},
	} {
		if got := c.job.Name(); got != c.want {
			t.Errorf("%+v is called %s, want %s", c.job, got, c.want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		code  job.ExitCode
		ok    bool
		shell int
		text  string
	}{
		{job.ExitCode{}, true, 0, "exit 0"},
		{job.ExitCode{Status: 3}, false, 3, "exit 3"},
		{job.ExitCode{Signal: 9}, false, 137, "signal 9"},
	} {
		if c.code.OK() != c.ok || c.code.Shell() != c.shell || c.code.String() != c.text {
			t.Errorf("%+v: %v, %d, %s; want %v, %d, %s", c.code, c.code.OK(), c.code.Shell(), c.code, c.ok, c.shell, c.text)
		}
	}
}

func TestCounts(t *testing.T) {
	for _, c := range []struct {
		count job.Count
		least int
	}{{job.Count{Want: 4}, 4}, {job.Count{Min: 2, Want: 4}, 2}, {job.Count{Min: 4, Want: 4}, 4}, {job.Count{}, 0}} {
		if got := c.count.Least(); got != c.least {
			t.Errorf("%+v starts with %d at least, want %d", c.count, got, c.least)
		}
	}
}

func TestCoupled(t *testing.T) {
	one := job.TaskGroup{Tasks: job.Count{Want: 1}}
	for _, c := range []struct {
		name string
		spec job.Spec
		want bool
	}{
		{"one task", job.Spec{Groups: []job.TaskGroup{one}}, false},
		{"two tasks", job.Spec{Groups: []job.TaskGroup{{Tasks: job.Count{Want: 2}}}}, true},
		{"one is enough of two", job.Spec{Groups: []job.TaskGroup{{Tasks: job.Count{Min: 1, Want: 2}}}}, false},
		{"two nodes", job.Spec{Groups: []job.TaskGroup{{Nodes: job.Range{Min: 2}}}}, true},
		{"two groups", job.Spec{Groups: []job.TaskGroup{one, one}}, true},
	} {
		if got := c.spec.Coupled(); got != c.want {
			t.Errorf("%s: coupled is %v", c.name, got)
		}
	}
}

// TestSpecSurvivesTheJournal: a specification is written and read as JSON without
// loss, fractions of devices, profiles and least counts included.
func TestSpecSurvivesTheJournal(t *testing.T) {
	in := job.Spec{
		Name: "train", TimeLimit: 3600e9, Partitions: []string{"gpu"},
		Groups: []job.TaskGroup{{
			Nodes: job.Range{Min: 1, Max: 4}, Tasks: job.Count{Min: 2, Want: 8}, TasksPerNode: 2,
			PerTask: resource.Requirements{
				Vector:  resource.Vector{CPU: resource.CPUs(2)}.With("tape", 1),
				Devices: []resource.DeviceRequest{{Count: 1, Share: 250}, {Count: 1, Profile: "1g.10gb"}},
			},
			Constraint: job.Constraint{Text: "[a|b]", Alternatives: [][]string{{"a"}, {"b"}}, Same: true},
		}},
	}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out job.Spec
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("read back differently (-written +read):\n%s", diff)
	}
}
