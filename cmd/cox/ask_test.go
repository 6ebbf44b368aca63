package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/reason"
)

var sweep = map[string]string{
	"name": "8_[1-4%2]", "job_name": "sweep\tof\x1b[2J", "user": "ben", "state": "PENDING", "submitted": "1795251600",
	"time_limit": "3600", "nodes_min": "1", "gpus": "2", "reason": "priority", "reason_text": "2 jobs before it, first job 5",
}

func TestQueue(t *testing.T) {
	f := newFake(t)
	f.mux.HandleFunc("GET /v1/jobs", func(w http.ResponseWriter, r *http.Request) { lines(w, r, sweep) })
	f.cox(t, "queue").check(t, 0, `JOB        NAME          USER  STATE       TIME    LIMIT  NODES  GPUS  WHERE OR WHY
8_[1-4%2]  sweep of�[2J  ben   PENDING  1:00:00  1:00:00      1     2  2 jobs before it, first job 5
`, "")
	f.cox(t, "queue", "-o", "name", "-u", "anna,ben", "-t", "PD,R", "-p", "gpu").check(t, 0, "8_[1-4%2]\n", "")
	got := f.last(t, nil)
	for _, want := range []string{"users=anna%2Cben", "states=PENDING%2CRUNNING", "partitions=gpu", "columns=name"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	f.cox(t, "queue", "-o", "xml").check(t, 2, "", "~there is wide, json, yaml, name")
}

func TestAnEmptyQueueSaysSo(t *testing.T) {
	f := newFake(t)
	f.text("GET /v1/jobs", "")
	f.cox(t, "queue").check(t, 0, "~JOB  NAME", "~no jobs: nothing runs, nothing waits")
	f.cox(t, "queue", "-u", "anna").check(t, 0, "~JOB  NAME", "~no live job matches")
	f.cox(t, "queue", "-o", "name").check(t, 0, "", "")
}

// TestQueueAsJSONJoinsPages: and the event number is that of the first page.
func TestQueueAsJSONJoinsPages(t *testing.T) {
	f := newFake(t)
	f.answer("GET /v1/jobs", func(r *http.Request) (any, error) {
		if r.URL.Query().Get("cursor") == "" {
			return api.Jobs{Jobs: []api.Job{jobOf("7", "RUNNING", 0)}, Next: "7", Change: 5}, nil
		}
		return api.Jobs{Jobs: []api.Job{jobOf("9", "RUNNING", 0)}, Change: 9}, nil
	})
	r := f.cox(t, "queue", "-o", "json")
	var got api.Jobs
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Jobs) != 2 || got.Change != 5 || got.Next != "" {
		t.Errorf("%+v", got)
	}
	f.cox(t, "queue", "-o", "yaml").check(t, 0, "~- id: 7\n  name: \"7\"\n", "")
}

func TestShowWhyLogs(t *testing.T) {
	f := newFake(t)
	f.answer("GET /v1/jobs/{job}", func(r *http.Request) (any, error) {
		if r.PathValue("job") != "7" {
			return nil, missing(r.PathValue("job"))
		}
		return jobOf("7", "PENDING", 0), nil
	})
	f.answer("GET /v1/jobs/{job}/why", func(*http.Request) (any, error) {
		return api.Why{Name: "7", State: "PENDING", Reasons: []reason.Reason{{Code: reason.HeldUser}}}, nil
	})
	f.text("GET /v1/jobs/7/script", "#!/bin/sh\necho hello\n")
	f.text("GET /v1/jobs/7/environment", "A=1\x00B=2\x00")
	f.text("GET /v1/jobs/7/logs", "epoch 1\nepoch 2")
	f.cox(t, "show", "7").check(t, 0, "~7 train PENDING for 1 h\n", "")
	f.cox(t, "show", "7", "--script").check(t, 0, "#!/bin/sh\necho hello\n", "")
	f.cox(t, "show", "7", "--env").check(t, 0, "A=1\nB=2\n", "")
	f.cox(t, "show", "9").check(t, 3, "", "cox: there is no job 9\n  live jobs: cox queue\n")
	f.cox(t, "show", "7", "9", "-o", "name").check(t, 3, "7\n", "~no job 9")
	f.cox(t, "show").check(t, 2, "", "~which job?")
	f.cox(t, "why", "7").check(t, 0, "~One thing holds it:\n  1 held-user     held by its owner", "")
	f.cox(t, "why", "7", "-o", "json").check(t, 0, "~\"code\": \"held-user\"", "")
	f.cox(t, "logs", "7").check(t, 0, "epoch 1\nepoch 2", "")
	f.cox(t, "logs", "-f", "--tail", "3", "7.2.5").check(t, 0, "~epoch", "")
	if got := f.last(t, nil); got != "GET /v1/jobs/7/logs?follow=true&rank=5&step=2&tail=3" {
		t.Error(got)
	}
	f.cox(t, "logs", "7.x").check(t, 2, "", "~names no job, rank or step")
}

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		s          string
		step, rank int // -1: none
		ok         bool
	}{
		{"7", -1, -1, true},
		{"7_3", -1, -1, true},
		{"7.5", -1, 5, true},
		{"7_3.0.5", 0, 5, true},
		{"", 0, 0, false},
		{".5", 0, 0, false},
		{"7.", 0, 0, false},
		{"7.-1", 0, 0, false},
		{"7.1.2.3", 0, 0, false},
	} {
		got, err := parseTarget(c.s)
		if (err == nil) != c.ok {
			t.Errorf("%q: %v", c.s, err)
			continue
		}
		if c.ok && (deref(got.step) != c.step || deref(got.rank) != c.rank) {
			t.Errorf("%q: step %d, rank %d", c.s, deref(got.step), deref(got.rank))
		}
	}
}

func deref(n *int) int {
	if n == nil {
		return -1
	}
	return *n
}

func TestWithoutAServerItIsSaidWhatToDo(t *testing.T) {
	r := coxAt(t, "unix:///nowhere/cox.sock", "", "queue")
	r.check(t, 75, "", "cox: no server answers at unix:///nowhere/cox.sock\n  start one: cox up   (another one: COX_SERVER=unix:///path or http://host:port)\n")
	coxAt(t, "ftp://x", "", "queue").check(t, 2, "", "~ftp is not spoken")
	coxAt(t, "unix:///nowhere/cox.sock", "", "version").check(t, 0, "~cox development", "")
}

func TestInfoPingTokensAudit(t *testing.T) {
	f := newFake(t)
	f.answer("GET /v1/tokens", func(*http.Request) (any, error) {
		return api.Tokens{Tokens: []api.Token{{ID: "k1", Name: "anna"}}}, nil
	})
	f.answer("POST /v1/tokens", func(*http.Request) (any, error) {
		return api.MadeToken{Token: api.Token{ID: "k2", Name: "anna"}, Secret: "cox_k2_abc"}, nil
	})
	f.answer("DELETE /v1/tokens/k1", func(*http.Request) (any, error) { return struct{}{}, nil })
	f.answer("GET /v1/audit", func(*http.Request) (any, error) {
		return api.Audit{Records: []api.AuditRecord{{Seq: 3, By: "anna", UID: 1000, From: "socket", What: "submit", Job: 7}}}, nil
	})
	f.cox(t, "info").check(t, 0, "~main: cox 0.9 on login1", "")
	f.cox(t, "ping").check(t, 0, "~main answers at http://127.0.0.1:", "")
	f.cox(t, "token", "list").check(t, 0, "~k1  anna  valid", "")
	f.cox(t, "token", "create", "--ttl", "24h", "--comment", "ci").check(t, 0, "cox_k2_abc\n", "~shown only now")
	var n api.NewToken
	if f.last(t, &n); n.TTL != 86400 || n.Comment != "ci" {
		t.Errorf("%+v", n)
	}
	f.cox(t, "token", "revoke", "k1").check(t, 0, "revoked k1\n", "")
	f.cox(t, "audit").check(t, 0, "~anna(1000)  socket  submit  7", "")
	f.cox(t, "version").check(t, 0, "~server 0.9, API 1.0, at http://", "")
}
