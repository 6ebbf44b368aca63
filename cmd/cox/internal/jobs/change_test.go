package jobs_test

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
	f.Answer("POST /v1/jobs/change", func(*http.Request) (any, error) {
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
		before := len(f.Asked)
		f.Cox(t, strings.Fields(c.args)...).Check(t, 0, c.out, "")
		var got api.Change
		f.Last(t, &got)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: - want, + got:\n%s", c.args, d)
		}
		if n := len(f.Asked) - before; n != 1 {
			t.Errorf("%s: %d requests", c.args, n)
		}
	}
}

func TestNothingIsNeverEverything(t *testing.T) {
	f := newFake(t)
	for _, verb := range []string{"cancel", "hold", "release", "requeue", "suspend", "resume"} {
		f.Cox(t, verb).Check(t, 2, "", "~ needs jobs\n")
	}
	f.Cox(t, "signal", "USR1").Check(t, 2, "", "~ needs jobs\n")
	f.Cox(t, "update", "--time", "10").Check(t, 2, "", "~ needs a job\n")
	f.Cox(t, "update", "7").Check(t, 2, "", "~say what to change")
	if len(f.Asked) > 0 {
		t.Errorf("asked %q", f.Asked)
	}
}

func TestJobsThatWereNotChangedAreNamed(t *testing.T) {
	f := newFake(t)
	f.Answer("POST /v1/jobs/change", func(*http.Request) (any, error) {
		return api.Changed{Matched: 2, Changed: 1, Names: []string{"7"}, Errors: []api.ChangeError{
			{Name: "8", Error: *api.ErrorOf(fault.New(fault.Permission, "job 8 is ben's").Advise("ask him"))},
		}}, nil
	})
	f.Cox(t, "cancel", "7", "8").Check(t, 77, "cancelled 7\n", "cox: job 8 is ben's\n  ask him\n")
}

func TestUpdate(t *testing.T) {
	f := newFake(t)
	f.Answer("POST /v1/jobs/change", func(*http.Request) (any, error) {
		return api.Changed{Matched: 1, Changed: 1, Names: []string{"7"}}, nil
	})
	f.Cox(t, "update", "7", "--time", "2:00:00", "--nodes", "2-4", "--partition", "a,b", "--dependency", "", "--begin", "now+1hour",
		"--requeue", "no", "--exclude", "v[1-2]", "--nice", "-5").Check(t, 0, "updated 7\n", "")
	var got api.Change
	f.Last(t, &got)
	limit, none, begin, no, nice := 7200.0, "", time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC), false, int64(-5)
	want := &api.Update{
		TimeLimit: &limit, Nodes: &job.Range{Min: 2, Max: 4}, Partitions: []string{"a", "b"}, Depends: &none, Begin: &begin,
		Requeue: &no, Exclude: &[]string{"v1", "v2"}, Nice: &nice,
	}
	if d := cmp.Diff(want, got.Update); d != "" {
		t.Errorf("- want, + got:\n%s", d)
	}
	for _, bad := range [][]string{{"--time", "yes"}, {"--nodes", "4-2"}, {"--nodes", "0"}, {"--begin", "then"}, {"--requeue", "perhaps"}, {"--nice", "x"}, {"--exclude", "v["}} {
		f.Cox(t, append([]string{"update", "7"}, bad...)...).Check(t, 2, "", "~cox: "+bad[0]+" ")
	}
}
