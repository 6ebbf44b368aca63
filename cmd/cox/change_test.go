package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestAChangeIsOneRequest: whatever is named, all in one.
func TestAChangeIsOneRequest(t *testing.T) {
	f := newFake(t)
	f.answer("POST /v1/jobs/change", func(*http.Request) (any, error) {
		return api.Changed{Matched: 2, Changed: 2, Names: []string{"7", "8_1"}}, nil
	})
	two, none := 2.0, 0.0
	for _, c := range []struct {
		args string
		want api.Change
		out  string
	}{
		{"cancel 7 8_1", api.Change{Verb: "cancel", Select: api.Select{IDs: []string{"7", "8_1"}}}, "cancelled 2 jobs: 7, 8_1\n"},
		{"cancel --now -u anna,ben -t PD", api.Change{Verb: "cancel", Grace: &none, Select: api.Select{Users: []string{"anna", "ben"}, States: []string{"PENDING"}}}, "cancelled 2 jobs: 7, 8_1\n"},
		{"cancel --grace 2s --signal INT --all", api.Change{Verb: "cancel", Grace: &two, Signal: "INT", Select: api.Select{All: true}}, "cancelled 2 jobs: 7, 8_1\n"},
		{"hold -n sweep", api.Change{Verb: "hold", Select: api.Select{Names: []string{"sweep"}}}, "held 2 jobs: 7, 8_1\n"},
		{"release 7 --quiet", api.Change{Verb: "release", Select: api.Select{IDs: []string{"7"}}}, ""},
		{"requeue --hold 7", api.Change{Verb: "requeue", Hold: true, Select: api.Select{IDs: []string{"7"}}}, "requeued 2 jobs: 7, 8_1\n"},
		{"suspend 7 -o name", api.Change{Verb: "suspend", Select: api.Select{IDs: []string{"7"}}}, "7\n8_1\n"},
		{"resume 7", api.Change{Verb: "resume", Select: api.Select{IDs: []string{"7"}}}, "resumed 2 jobs: 7, 8_1\n"},
		{"signal USR1 --batch 7", api.Change{Verb: "signal", Signal: "USR1", BatchOnly: true, Select: api.Select{IDs: []string{"7"}}}, "signalled 2 jobs: 7, 8_1\n"},
	} {
		before := len(f.asked)
		f.cox(t, strings.Fields(c.args)...).check(t, 0, c.out, "")
		var got api.Change
		f.last(t, &got)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: - want, + got:\n%s", c.args, d)
		}
		if n := len(f.asked) - before; n != 1 {
			t.Errorf("%s: %d requests", c.args, n)
		}
	}
}

func TestNothingIsNeverEverything(t *testing.T) {
	f := newFake(t)
	for _, verb := range []string{"cancel", "hold", "release", "requeue", "suspend", "resume"} {
		f.cox(t, verb).check(t, 2, "", "~which jobs?")
	}
	f.cox(t, "signal", "USR1").check(t, 2, "", "~which jobs?")
	f.cox(t, "update", "--time", "10").check(t, 2, "", "~which job?")
	f.cox(t, "update", "7").check(t, 2, "", "~nothing to change")
	if len(f.asked) > 0 {
		t.Errorf("asked %q", f.asked)
	}
}

func TestJobsThatWereNotChangedAreNamed(t *testing.T) {
	f := newFake(t)
	f.answer("POST /v1/jobs/change", func(*http.Request) (any, error) {
		return api.Changed{Matched: 2, Changed: 1, Names: []string{"7"}, Errors: []api.ChangeError{
			{Name: "8", Error: *api.ErrorOf(fault.New(fault.Permission, "job 8 is ben's").Advise("ask him"))},
		}}, nil
	})
	f.cox(t, "cancel", "7", "8").check(t, 77, "cancelled 7\n", "cox: job 8 is ben's\n  ask him\n")
}

func TestUpdate(t *testing.T) {
	f := newFake(t)
	f.answer("POST /v1/jobs/change", func(*http.Request) (any, error) {
		return api.Changed{Matched: 1, Changed: 1, Names: []string{"7"}}, nil
	})
	f.cox(t, "update", "7", "--time", "2:00:00", "--nodes", "2-4", "--partition", "a,b", "--dependency", "", "--begin", "now+1hour",
		"--requeue", "no", "--exclude", "v[1-2]", "--nice", "-5").check(t, 0, "updated 7\n", "")
	var got api.Change
	f.last(t, &got)
	limit, none, begin, no, nice := 7200.0, "", time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC), false, int64(-5)
	want := &api.Update{
		TimeLimit: &limit, Nodes: &job.Range{Min: 2, Max: 4}, Partitions: []string{"a", "b"}, Depends: &none, Begin: &begin,
		Requeue: &no, Exclude: &[]string{"v1", "v2"}, Nice: &nice,
	}
	if d := cmp.Diff(want, got.Update); d != "" {
		t.Errorf("- want, + got:\n%s", d)
	}
	for _, bad := range [][]string{{"--time", "yes"}, {"--nodes", "4-2"}, {"--nodes", "0"}, {"--begin", "then"}, {"--requeue", "perhaps"}, {"--nice", "x"}, {"--exclude", "v["}} {
		f.cox(t, append([]string{"update", "7"}, bad...)...).check(t, 2, "", "~cox: "+bad[0]+" ")
	}
}

func TestNodeChanges(t *testing.T) {
	f := newFake(t)
	f.answer("POST /v1/nodes/change", func(*http.Request) (any, error) {
		return api.Nodes{Nodes: []api.Node{{Name: "v1", State: "draining", Jobs: []string{"7"}}}}, nil
	})
	f.answer("GET /v1/nodes", func(*http.Request) (any, error) {
		return api.Nodes{Nodes: []api.Node{{Name: "v1", State: "up", Partitions: []string{"gpu"}}, {Name: "v2", State: "down"}}}, nil
	})
	f.cox(t, "node", "drain", "v[1-2]").check(t, 2, "", "~why?")
	f.cox(t, "node", "drain", "v[1-2]", "--reason", "fan").check(t, 0, "v1        draining: 1 job still there: 7\n", "")
	var got api.NodeChange
	f.last(t, &got)
	if d := cmp.Diff(api.NodeChange{Nodes: []string{"v[1-2]"}, Verb: "drain", Reason: "fan"}, got); d != "" {
		t.Error(d)
	}
	f.cox(t, "nodes", "-o", "name", "-t", "down").check(t, 0, "v2\n", "")
	f.cox(t, "nodes", "v[1-3]").check(t, 3, "", "~node v3 does not exist")
	f.cox(t, "nodes", "-p", "gpu", "-o", "name").check(t, 0, "v1\n", "")
	f.cox(t, "node").check(t, 2, "", "~show, drain or resume?")
}
