package tools_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
)

func TestCompletion(t *testing.T) {
	f := newFake(t)
	f.Mux.HandleFunc("GET /v1/jobs", clitest.ServeRows(map[string]string{"name": "8_3", "job_name": "sweep\x1b", "user": "ben", "state": "RUNNING"}))
	r := f.Cox(t, "__complete", "exec", "")
	if !strings.HasPrefix(r.Out, "8_3\tsweep� (ben) RUNNING\n") {
		t.Errorf("%q", r.Out)
	}
	if got := f.Last(t, nil); !strings.Contains(got, "states=RUNNING") {
		t.Error(got)
	}
	if r := f.Cox(t, "__complete", "queue", "-u", "anna,"); !strings.HasPrefix(r.Out, "anna,ben\n") {
		t.Errorf("%q", r.Out)
	}
	if r := f.Cox(t, "__complete", "queue", "-o", ""); !strings.HasPrefix(r.Out, "wide\njson\n") {
		t.Errorf("%q", r.Out)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		f.Cox(t, "completion", shell).Check(t, 0, "~__complete", "")
	}
	f.Cox(t, "completion", "tcsh").Check(t, 2, "", "~cox completion needs the name of a shell")
}

// TestCompletionWithoutAServerIsQuickAndSilent: also with one that never answers.
func TestCompletionWithoutAServerIsQuickAndSilent(t *testing.T) {
	f := newFake(t)
	f.Mux.HandleFunc("GET /v1/jobs", clitest.ServeNothing)
	for _, server := range []string{"unix:///nowhere/s", f.URL} {
		began := time.Now()
		r := coxAt(t, server, "", "__complete", "show", "")
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: %s", server, took)
		}
		if !strings.HasPrefix(r.Out, ":") {
			t.Errorf("%s: %q", server, r.Out)
		}
	}
}
