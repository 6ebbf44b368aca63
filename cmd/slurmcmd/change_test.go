package slurmcmd_test

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scancel"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scontrol"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmcmdtest"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// TestChanges: what commands ask of the server to change.
func TestChanges(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"scancel 7 8_3 9_[1-4,6]", `{"select":{"ids":["7","8_3","9_[1-4,6]"]},"verb":"cancel"}`},
		{"scancel 7,8 215+1", `{"select":{"ids":["7","8","215"]},"verb":"cancel"}`},
		{"scancel -u root -p gpu -t PD", `{"select":{"users":["root"],"partitions":["gpu"],"states":["PENDING"]},"verb":"cancel"}`},
		{"scancel -n a,b -A x -q y -w n[1-2]", `{"select":{"accounts":["x"],"qos":["y"],"names":["a,b"],"nodes":["n[1-2]"]},"verb":"cancel"}`},
		{"scancel -s USR1 7", `{"select":{"ids":["7"]},"verb":"signal","signal":"USR1"}`},
		{"scancel -b -s 12 7", `{"select":{"ids":["7"]},"verb":"signal","signal":"12","batch_only":true}`},
		{"scancel -f --signal=SIGTERM 7", `{"select":{"ids":["7"]},"verb":"signal","signal":"SIGTERM","full":true}`},
		{"scancel -s KILL 7", `{"select":{"ids":["7"]},"verb":"cancel","grace":0}`},
		{"scancel -u 1002 213 214 201", `{"select":{"ids":["213","214"]},"verb":"cancel"}`},
		{"scancel -R none 201", ""},
		{"scancel -i 201 213", `{"select":{"ids":["201"]},"verb":"cancel"}`},
		{"scontrol hold 7 8_[1-3]", `{"select":{"ids":["7","8_[1-3]"]},"verb":"hold"}`},
		{"scontrol hold jobname=train", `{"select":{"names":["train"]},"verb":"hold"}`},
		{"scontrol uhold 7,8", `{"select":{"ids":["7","8"]},"verb":"hold","firm":false}`},
		{"scontrol rel 7", `{"select":{"ids":["7"]},"verb":"release"}`},
		{"scontrol requeue 7", `{"select":{"ids":["7"]},"verb":"requeue"}`},
		{"scontrol requeuehold State=SpecialExit 7", `{"select":{"ids":["7"]},"verb":"requeue","hold":true,"special":true}`},
		{"scontrol requeuehold 7", `{"select":{"ids":["7"]},"verb":"requeue","hold":true}`},
		{"scontrol suspend 7", `{"select":{"ids":["7"]},"verb":"suspend"}`},
		{"scontrol resume 7", `{"select":{"ids":["7"]},"verb":"resume"}`},
		{"scontrol top 7", `{"select":{"ids":["7"]},"verb":"top"}`},
		{
			"scontrol update JobId=7 TimeLimit=1-0 Partition=a,b Nice=5 Comment= Requeue=0",
			`{"select":{"ids":["7"]},"verb":"update","update":{"time_limit":86400,"partitions":["a","b"],"nice":5,"comment":"","requeue":false}}`,
		},
		{
			"scontrol update job=7,8 NumNodes=2-4 ArrayTaskThrottle=9 ExcNodeList=n[1-2] StartTime=2026-11-22T10:00:00",
			`{"select":{"ids":["7","8"]},"verb":"update","update":{"nodes":{"min":2,"max":4},"max_running":9,"exclude":["n1","n2"],"begin":"2026-11-22T10:00:00Z"}}`,
		},
		{"scontrol update TimeLimit=+10 JobId=7", `{"select":{"ids":["7"]},"verb":"update","update":{"time_limit":4200}}`},
		{"scontrol update JobId=7 TimeLimit-=10", `{"select":{"ids":["7"]},"verb":"update","update":{"time_limit":3000}}`},
		{"scontrol update NodeName=n[1-2] State=DRAIN Reason=disk", `{"nodes":["n1","n2"],"verb":"drain","reason":"disk"}`},
		{"scontrol update nodename=n1 state=resume", `{"nodes":["n1"],"verb":"resume"}`},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Setenv("TZ", "UTC")
			s := slurmcmdtest.New(t).Queue()
			s.Answer["POST /v1/jobs/change"] = api.Changed{Matched: 1, Changed: 1}
			s.Answer["POST /v1/nodes/change"] = api.Nodes{}
			s.Answer["GET /v1/jobs/7"] = map[string]any{"spec": map[string]any{"time_limit": 3600e9}}
			words := strings.Fields(c.line)
			main := scancel.Main
			if words[0] == "scontrol" {
				main = scontrol.Main
			}
			r := s.Run(main, "y\nwhat\nno\n", words[1:]...)
			if r.Code != 0 || r.Err != "" {
				t.Errorf("exit %d: %s", r.Code, r.Err)
			}
			if got := s.Body(); got != c.want {
				t.Errorf("asked\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestRefusedChanges: words and exit codes for jobs that were not changed.
func TestRefusedChanges(t *testing.T) {
	problem := func(title, detail string) api.Changed {
		return api.Changed{Matched: 1, Errors: []api.ChangeError{{Name: "7", Error: api.Error{Title: title, Detail: detail}}}}
	}
	for _, c := range []struct {
		line   string
		answer any
		code   int
		err    string
	}{
		{"scancel 7", problem("not found", "no job"), 0, ""},
		{"scancel -v 7", problem("not found", "no job"), 0, "scancel: error: Kill job error on job id 7: Invalid job id specified (no job)\n"},
		{"scancel 7", problem("conflict", "ended"), 0, ""},
		{"scancel -v 7", problem("conflict", "ended"), 0, "scancel: error: Kill job error on job id 7: Job/step already completing or completed (ended)\n"},
		{"scancel -s USR1 7", problem("conflict", "waits"), 228, "scancel: error: Kill job error on job id 7: Job can not be altered now, try again later (waits)\n"},
		{"scancel 7", problem("permission", "ben's"), 210, "scancel: error: Kill job error on job id 7: Access/permission denied (ben's)\n"},
		{"scancel 7", &api.Error{Status: 503, Title: "unavailable", Detail: "down", Remedy: "up"}, 1, "scancel: error: down\nscancel:   up\n"},
		{"scontrol hold 7", problem("not found", "no job"), 1, "Invalid job id specified for job 7\n"},
		{"scontrol suspend 7", problem("conflict", "it does not run"), 1, "it does not run for job 7\n"},
		{"scontrol -Q suspend 7", problem("conflict", "it does not run"), 1, ""},
		{"scontrol release 7", problem("permission", "held by root"), 1, "Access/permission denied (held by root) for job 7\n"},
		{"scontrol requeue 7", problem("unsupported", "it says --no-requeue"), 1, "Requested operation is presently disabled for job 7\n"},
		{"scontrol hold jobname=none", api.Changed{}, 1, "Invalid job id specified\n"},
	} {
		t.Run(c.line, func(t *testing.T) {
			s := slurmcmdtest.New(t)
			s.Answer["POST /v1/jobs/change"] = c.answer
			words := strings.Fields(c.line)
			main := scancel.Main
			if words[0] == "scontrol" {
				main = scontrol.Main
			}
			if r := s.Run(main, "", words[1:]...); r.Code != c.code || r.Err != c.err {
				t.Errorf("exit %d and %q, want %d and %q", r.Code, r.Err, c.code, c.err)
			}
		})
	}
}

// TestChangeSentences: where a change is refused Slurm's sentence comes first, chosen by the
// job's state, by the reason, or by the field that is changed.
func TestChangeSentences(t *testing.T) {
	conflict := api.Error{Title: "conflict", Detail: "no"}
	for _, c := range []struct {
		line, state string
		answer      any // an api.Error of the job, or *api.Error of the request
		err         string
	}{
		{"suspend 7", "PENDING", conflict, "Job is pending execution (no) for job 7\n"},
		{"requeue 7", "PENDING", conflict, "Job is pending execution (no) for job 7\n"},
		{"resume 7", "RUNNING", conflict, "Job is not suspended (no) for job 7\n"},
		{"hold 7", "COMPLETED", conflict, "Job has already finished (no) for job 7\n"},
		{"suspend 7", "FAILED", conflict, "Job/step already completing or completed (no) for job 7\n"},
		{"update JobId=7 TimeLimit=5", "TIMEOUT", conflict, "Job has already finished (no) for job 7\n"},
		{"hold 7", "RUNNING", conflict, "no for job 7\n"},
		{"update JobId=7 NumNodes=9", "PENDING", api.Error{Title: "invalid", Detail: "no", Reasons: []reason.Reason{{Code: reason.NodeCount}}}, "Node count specification invalid (no) for job 7\n"},
		{"update JobId=7 Account=x", "PENDING", api.Error{Title: "invalid", Detail: "no"}, "Invalid account or account/partition combination specified (no) for job 7\n"},
		{"update JobId=7 TimeLimit=99", "PENDING", api.Error{Title: "invalid", Detail: "no", Reasons: []reason.Reason{{Code: reason.Single("MaxWall")}}}, "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits) (no) for job 7\n"},
		{"update JobId=7 Partition=zz", "PENDING", &api.Error{Status: 400, Title: "invalid", Detail: "partitions: no", Remedy: "name one"}, "scontrol: error: Invalid partition name specified (partitions: no)\nscontrol:   name one\n"},
		{"update JobId=7 Partition=zz Nice=4", "PENDING", &api.Error{Status: 400, Title: "invalid", Detail: "partitions: no"}, "scontrol: error: partitions: no\n"},
		{"update JobId=7 Partition=zz", "PENDING", &api.Error{Status: 503, Title: "unavailable", Detail: "down"}, "scontrol: error: down\n"},
		{"update JobId=7 Nice=x", "PENDING", conflict, "Invalid Nice=x: not a whole number\nRequest aborted\n"},
	} {
		s := slurmcmdtest.New(t)
		s.Answer["GET /v1/jobs/7"] = map[string]any{"state": c.state}
		s.Answer["POST /v1/jobs/change"] = c.answer
		if e, ok := c.answer.(api.Error); ok {
			s.Answer["POST /v1/jobs/change"] = api.Changed{Matched: 1, Errors: []api.ChangeError{{Name: "7", Error: e}}}
		}
		if r := s.Run(scontrol.Main, "", strings.Fields(c.line)...); r.Code != 1 || r.Err != c.err {
			t.Errorf("%s of a job that is %s: exit %d and %q, want %q", c.line, c.state, r.Code, r.Err, c.err)
		}
	}
}

// TestResolvedArray: -i and filters name an array's waiting tasks at once.
func TestResolvedArray(t *testing.T) {
	s := slurmcmdtest.New(t).Queue()
	s.Answer["POST /v1/jobs/change"] = api.Changed{Matched: 1, Changed: 1}
	s.Run(scancel.Main, "", "-u", "1001", "202")
	if got, want := s.Body(), `{"select":{"ids":["202_[2-9%2]","202_1"]},"verb":"cancel"}`; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}

// TestWaitForNodes: scontrol wait_job stays while a job waits and while its nodes are made ready.
func TestWaitForNodes(t *testing.T) {
	s := slurmcmdtest.New(t)
	answers := []map[string]any{{"state": "PENDING"}, {"state": "RUNNING", "flags": []string{"CONFIGURING"}}, {"state": "RUNNING"}}
	asked := 0
	s.Answer["GET /v1/jobs/7"] = slurmcmdtest.Func(func(string) any {
		asked++
		return answers[min(asked, len(answers))-1]
	})
	got := s.Run(scontrol.Main, "", "wait_job", "7")
	if want := (slurmcmdtest.Result{Err: "scontrol: Nodes are ready for job 7\n"}); got != want || asked != len(answers) {
		t.Errorf("after %d answers: %+v", asked, got)
	}
}
