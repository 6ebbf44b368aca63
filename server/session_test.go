package server

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestStreamsEndWithTheirToken takes a token back, or lets it expire, while each kind
// of lasting request is open.
func TestStreamsEndWithTheirToken(t *testing.T) {
	for _, how := range []string{"revoked", "expired"} {
		t.Run(how, func(t *testing.T) {
			p := servertest.NewPlane()
			p.Fill(t, 1, "anna", 2001, nil)
			p.Start(1, "v1")
			dir := t.TempDir()
			p.Jobs[0].Report.Files = []string{"/home/anna/out"}
			if err := os.WriteFile(filepath.Join(dir, "out"), []byte("hello\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			sh := &servertest.Shell{Got: make(chan engine.ExecRequest, 10)}
			r := start(t, p, func(c *Config) {
				c.Output, c.Exec = &servertest.Files{Dir: dir, Asked: make(chan string, 1)}, sh
			})
			var id string
			secret := r.Token(t, "anna", func(k *state.Token) { id = k.ID })
			c, err := client.New(client.Options{URL: r.URL, Token: secret})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			begun, ended := make(chan string, 8), make(chan string, 8)
			stream := func(path string) {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+secret)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				var one [1]byte
				_, err = io.ReadFull(resp.Body, one[:])
				if begun <- path; err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
				}
				ended <- path
			}
			go stream("/v1/watch")
			go stream("/v1/jobs/1/logs?follow=true")
			go func() {
				begun <- "exec"
				_, _ = c.Exec(t.Context(), "1", api.Exec{Command: []string{"sleep"}}, client.ExecStreams{})
				ended <- "exec"
			}()
			go func() {
				begun <- "wait"
				_, err := c.Wait(t.Context(), "1")
				if fault.KindOf(err) != fault.Permission {
					t.Errorf("wait: %v", err)
				}
				ended <- "wait"
			}()
			for range 4 {
				<-begun
			}
			<-sh.Got // the command runs
			p.Mu.Lock()
			k := p.TokensByID[id]
			if how == "revoked" {
				k.Revoked = time.Now()
			} else {
				k.Expires = time.Now()
			}
			p.TokensByID[id] = k
			p.Mu.Unlock()
			for range 4 {
				select {
				case <-ended:
				case <-time.After(2 * time.Minute):
					t.Fatal("a stream outlives its token")
				}
			}
		})
	}
}

// TestHeadEnds: net/http hands HEAD to the route of GET.
func TestHeadEnds(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 1, "anna", 2001, nil)
	p.Start(1, "v1")
	p.Jobs[0].Report.Files = []string{"/home/anna/out"}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "out"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, p, func(c *Config) { c.Output = &servertest.Files{Dir: dir, Asked: make(chan string, 1)} })
	secret := r.Token(t, "anna", nil)
	for _, op := range operations(t, r) {
		if op.method != http.MethodGet {
			continue
		}
		path, _ := op.example()
		switch op.ID {
		case "logs":
			path += "?follow=true"
		case "wait":
			path += "?timeout=3600"
		}
		want := http.StatusMethodNotAllowed
		if op.Verb == "ask the health of" || op.Verb == "ask about" {
			want = http.StatusOK
		}
		if resp, _ := r.Ask(t, http.MethodHead, path, secret, ""); resp.StatusCode != want {
			t.Errorf("HEAD %s: %s", path, resp.Status)
		}
	}
}

// TestATokenInTheWrongFormIsNotTold shows tokens where they do not belong.
func TestATokenInTheWrongFormIsNotTold(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	secret := r.Token(t, "anna", nil)
	part := strings.Split(secret, "_")[2][:20]
	for _, c := range []struct{ method, path, header string }{
		{"GET", "/v1/jobs", secret},
		{"GET", "/v1/jobs", "Token " + secret},
		{"GET", "/v1/jobs", "Bearer" + secret},
		{"GET", "/v1/jobs", "Bearer " + secret + "x"},
		{"GET", "/v1/jobs", "Bearer " + secret[:50]},
		{"GET", "/v1/jobs", "Basic " + secret},
		{"DELETE", "/v1/tokens/" + secret, "Bearer x"},
		{"DELETE", "/v1/tokens/" + secret, "Bearer " + secret},
		{"GET", "/" + secret, "Bearer " + secret},
		{"GET", "/v1/jobs?token=" + secret, "Bearer " + secret},
	} {
		resp, body := r.Ask(t, c.method, c.path, "", "", "Authorization", c.header)
		if resp.StatusCode < 400 || c.method == "DELETE" && strings.Contains(body, part) || c.path == "/v1/jobs" && strings.Contains(body, part) {
			t.Errorf("%s %.20s with %.10s…: %s %s", c.method, c.path, c.header, resp.Status, body)
		}
	}
	if log := r.Logged.String(); strings.Contains(log, part) {
		t.Errorf("a token is logged:\n%s", log)
	}
}

// TestRightsThatOneGaveHimselfEndWithHisOwn: who is no administrator any more has no
// token of one that he made for himself. One that another made for him stays.
func TestRightsThatOneGaveHimselfEndWithHisOwn(t *testing.T) {
	for _, c := range []struct {
		by     job.Actor
		admins []string
		want   int
	}{
		{job.Actor{Name: "anna", UID: 2001}, []string{"anna"}, http.StatusOK},
		{job.Actor{Name: "anna", UID: 2001}, nil, http.StatusForbidden},
		{job.Actor{Name: "root", UID: 0}, nil, http.StatusOK},
	} {
		r := start(t, servertest.NewPlane(), func(cfg *Config) { cfg.Admins = c.admins })
		secret := r.Token(t, "anna", func(k *state.Token) { k.Admin, k.By = true, c.by })
		if resp, body := r.Ask(t, "GET", "/v1/audit", secret, ""); resp.StatusCode != c.want {
			t.Errorf("made by %s, administrators %v: %s %s", c.by.Name, c.admins, resp.Status, body)
		}
		r.Stop()
	}
}
