package jobs_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	"github.com/coxswain-sched/coxswain/model/reason"
)

var sweep = map[string]string{
	"name": "8_[1-4%2]", "job_name": "sweep\tof\x1b[2J", "user": "ben", "state": "PENDING", "submitted": "1795251600",
	"time_limit": "3600", "nodes_min": "1", "gpus": "2", "reason": "priority", "reason_text": "2 jobs before it, first job 5",
}

func TestQueue(t *testing.T) {
	f := newFake(t)
	f.Mux.HandleFunc("GET /v1/jobs", func(w http.ResponseWriter, r *http.Request) { clitest.WriteRows(w, r, sweep) })
	f.Cox(t, "queue").Check(t, 0, `JOB        NAME          USER  STATE       TIME    LIMIT  NODES  GPUS  WHERE OR WHY
8_[1-4%2]  sweep of�[2J  ben   PENDING  1:00:00  1:00:00      1     2  2 jobs before it, first job 5
`, "")
	f.Cox(t, "queue", "-o", "name", "-u", "anna,ben", "-t", "PD,R", "-p", "gpu").Check(t, 0, "8_[1-4%2]\n", "")
	got := f.Last(t, nil)
	for _, want := range []string{"users=anna%2Cben", "states=PENDING%2CRUNNING", "partitions=gpu", "columns=name"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	f.Cox(t, "queue", "-o", "xml").Check(t, 2, "", "~there is wide, json, yaml, name")
}

func TestAnEmptyQueueSaysSo(t *testing.T) {
	f := newFake(t)
	f.Text("GET /v1/jobs", "")
	f.Cox(t, "queue").Check(t, 0, "~JOB  NAME", "~no jobs: nothing runs, nothing waits")
	f.Cox(t, "queue", "-u", "anna").Check(t, 0, "~JOB  NAME", "~no live job matches")
	f.Cox(t, "queue", "-o", "name").Check(t, 0, "", "")
}

// TestQueueAsJSONJoinsPages: and the event number is that of the first page.
func TestQueueAsJSONJoinsPages(t *testing.T) {
	f := newFake(t)
	f.Answer("GET /v1/jobs", func(r *http.Request) (any, error) {
		if r.URL.Query().Get("cursor") == "" {
			return api.Jobs{Jobs: []api.Job{clitest.Job("7", "RUNNING", 0)}, Next: "7", Change: 5}, nil
		}
		return api.Jobs{Jobs: []api.Job{clitest.Job("9", "RUNNING", 0)}, Change: 9}, nil
	})
	r := f.Cox(t, "queue", "-o", "json")
	var got api.Jobs
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Jobs) != 2 || got.Change != 5 || got.Next != "" {
		t.Errorf("%+v", got)
	}
	f.Cox(t, "queue", "-o", "yaml").Check(t, 0, "~- id: 7\n  name: \"7\"\n", "")
}

func TestShowWhyLogs(t *testing.T) {
	f := newFake(t)
	f.Answer("GET /v1/jobs/{job}", func(r *http.Request) (any, error) {
		if r.PathValue("job") != "7" {
			return nil, clitest.JobNotFound(r.PathValue("job"))
		}
		return clitest.Job("7", "PENDING", 0), nil
	})
	f.Answer("GET /v1/jobs/{job}/why", func(*http.Request) (any, error) {
		return api.Why{Name: "7", State: "PENDING", Reasons: []reason.Reason{{Code: reason.HeldUser}}}, nil
	})
	f.Text("GET /v1/jobs/7/script", "#!/bin/sh\necho hello\n")
	f.Text("GET /v1/jobs/7/environment", "A=1\x00B=2\x00")
	f.Text("GET /v1/jobs/7/logs", "epoch 1\nepoch 2")
	f.Cox(t, "show", "7").Check(t, 0, "~7 train PENDING for 1 h\n", "")
	f.Cox(t, "show", "7", "--script").Check(t, 0, "#!/bin/sh\necho hello\n", "")
	f.Cox(t, "show", "7", "--env").Check(t, 0, "A=1\nB=2\n", "")
	f.Cox(t, "show", "9").Check(t, 3, "", "cox: there is no job 9\n  live jobs: cox queue\n")
	f.Cox(t, "show", "7", "9", "-o", "name").Check(t, 3, "7\n", "~no job 9")
	f.Cox(t, "show").Check(t, 2, "", "~ needs a job\n")
	f.Cox(t, "why", "7").Check(t, 0, "~One thing holds it:\n  1 held-user     held by its owner", "")
	f.Cox(t, "why", "7", "-o", "json").Check(t, 0, "~\"code\": \"held-user\"", "")
	f.Cox(t, "logs", "7").Check(t, 0, "epoch 1\nepoch 2", "")
	f.Cox(t, "logs", "-f", "--tail", "3", "7.2.5").Check(t, 0, "~epoch", "")
	if got := f.Last(t, nil); got != "GET /v1/jobs/7/logs?follow=true&rank=5&step=2&tail=3" {
		t.Error(got)
	}
	f.Cox(t, "logs", "7.x").Check(t, 2, "", "~names no job, rank or step")
}
